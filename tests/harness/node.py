"""Node, in which the plugins of agents run that are not here themselves."""

import shutil

from tests.harness.home import BinaryMissingError


def node() -> str:
    """Return the executable of Node. Raises BinaryMissingError."""
    found = shutil.which("node")
    if found is None:
        raise BinaryMissingError("no Node: it comes with npm")
    return found

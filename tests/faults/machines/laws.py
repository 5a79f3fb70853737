"""What must be true of several machines after a round, beside the laws of every round."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


def no_secret(folder: Path, secrets: Collection[str]) -> Iterator[str]:
    """No log and no output of a machine says a password or the token."""
    for file in sorted([*folder.glob("*.log"), *folder.glob("logs/*"), *folder.glob("*.out")]):
        text = file.read_text("utf-8", "replace")
        for secret in secrets:
            if secret in text:
                yield f"a secret is in {file.parent.name}/{file.name}"

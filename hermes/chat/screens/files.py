"""Words about the files of a project that a person fetches with /get. Pure."""

from __future__ import annotations

from typing import Final

from hermes.chat.screens.screen import Screen, note, project
from hermes.chat.screens.text import Span, phrase
from hermes.model.project_file import FileFault
from hermes.model.prompt import Target

_PATH: Final = 200
_HERE: Final = 40
_WHY: Final = 300
_FAULTS: Final[dict[FileFault, str]] = {
    "missing": " is not there: no such file in ",
    "folder": " is a folder. Please name one file in ",
    "special": " is not a plain file, so I do not send it from ",
    "outside": " is outside of the project. I only fetch files in ",
    "secret": " may hold secrets, so I do not send it from ",
    "ignored": " is ignored by git, so I do not send it from ",
    "unchecked": " may be one that git ignores, and git does not say. So I do not send it from ",
    "large": " is too large (a bot can send 50 MB at most), so I do not send it from ",
    "empty": " is empty, so I do not send it from ",
    "unreadable": " cannot be read in ",
}


HOW_TO_FETCH: Final = note(
    "To fetch a file of a project, reply to a message about its session: the end of a turn, your own prompt, or what "
    "you tapped in /sessions. Write, for example: ", Span("/get README.md", "code"),
)  # fmt: skip
"""The answer to a /get without a session or a path."""
NO_FOLDER: Final = note("I do not know the folder of that session, so I cannot fetch its files.")
NOT_ALLOWED: Final = note("I may not send files in this group. Please look at it on the computer.")
"""The message in the place of a file, in a group that lets the bot send none."""


def elsewhere(machine: str) -> Screen:
    """Return that the session is on another machine than this one, which has the phone."""
    here = phrase(machine, _HERE, empty="this machine")
    return note("That session is on another machine. I can only fetch files of ", here, ", which has the phone.")


def not_fetched(path: str, target: Target, fault: FileFault) -> Screen:
    """Return why a file is not sent."""
    file, agent = phrase(path, _PATH, "code", empty="That"), phrase(target.agent_name, _HERE)
    excluded = (" is excluded by the permissions of ", agent, ", so I do not send it from ")
    said = excluded if fault == "excluded" else (_FAULTS[fault],)
    return note(file, *said, project(target.source), ".")


def not_asked(path: str, target: Target, why: str) -> Screen:
    """Return that nobody tells whether the permissions exclude a file. `why` is "" if the agent gives none."""
    file, agent = phrase(path, _PATH, "code", empty="That"), phrase(target.agent_name, _HERE)
    because = phrase(why or f"{target.agent_name} does not answer now", _WHY)
    unknown = (", so I do not know whether the permissions of ", agent, " exclude it.")
    return note("I do not send ", file, " from ", project(target.source), ": ", because, *unknown)


def fetched(path: str, target: Target) -> Screen:
    """Return the caption of a file."""
    return note(phrase(path, _PATH, "bold", empty="A file"), " · ", project(target.source))


def not_sent(path: str, *, may_be_there: bool) -> Screen:
    """Return that Telegram did not take a file, or, if `may_be_there`, that it did not say whether it took it."""
    said, again = "Telegram did not take ", ". Please send /get again."
    if may_be_there:
        said, again = "Telegram did not say whether it took ", ". If the file is not here, please send /get again."
    return note(said, phrase(path, _PATH, "code", empty="that file"), again)


def failed(path: str, machine: str) -> Screen:
    """Return that a file was not sent because something in Hermes failed."""
    file, here = phrase(path, _PATH, "code", empty="that file"), phrase(machine, _HERE, empty="this machine")
    return note("Hermes failed to send ", file, ". Its log on ", here, " says why.")

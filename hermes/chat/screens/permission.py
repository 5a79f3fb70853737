"""The screen of a permission: all that the agent wants to do, or its beginning with a note that it is cut. Pure.

The command, file or address and the details stand in separate blocks, so that they do not look like words of Hermes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from hermes.chat.screens.buttons import Rows, copying, press
from hermes.chat.screens.screen import Caps, decided, header, project
from hermes.chat.screens.text import HIDDEN, Line, Mark, Span, line, one_line, passage, phrase
from hermes.core.ends import is_refused
from hermes.core.permission_rules import LONGEST_PATTERN
from hermes.model.actions import Arm, AskTwice, Pick, ShowWhole
from hermes.model.answer import Always
from hermes.model.ask import DeedKind, Permission
from hermes.model.entry import Entry

ALLOW: Final = "Allow once"
_PARTS: Final = {
    True: "⚠️ Only parts of the command are known.",
    False: "⚠️ Not all of it is known.",
}
_WHAT: Final = 1400
_DETAIL: Final = 1200
_TOOL: Final = 60
TRAIL_LINES: Final = 8
_TRAIL_LINE: Final = 80
_WORD: Final = 300

_HEADINGS: Final[Mapping[DeedKind, str]] = {
    "command": "wants to run:",
    "change": "wants to change this file:",
    "folder": "wants to leave its project for:",
    "fetch": "wants to fetch:",
    "other": "wants to use:",
}
# The header of the first file in a diff, right above the first hunk ("@@ "). No line of a file can be mistaken for the
# start of a hunk, because each begins with a space, + or -.
_HEAD: Final = re.compile(r"^(?:Index: .*\n)?(?:=+\n)?--- .*\n\+\+\+ .*\n\Z", re.MULTILINE)


def deed(entry: Entry, permission: Permission) -> Callable[[Caps], list[Line]]:
    """Return a function that draws the permission: who wants it, `what`, `detail`, the warnings and the trail.

    The work that reads the whole permission is done here, once, because the lines may be drawn several times.
    """
    tool = (" ", phrase(permission.tool, _TOOL, "italic")) if permission.kind == "other" else ()
    hidden = HIDDEN.search(permission.what) or HIDDEN.search(permission.detail)
    detail, changes, left_out = _detail(permission), _changes(permission), _cut(permission)
    before = trail(entry)
    heading = f"{_who(entry, 'The agent')} {_HEADINGS[permission.kind]}"

    def lines(caps: Caps) -> list[Line]:
        return [
            line(Span(heading, "bold"), *tool),
            line(passage(permission.what, min(_WHAT, max(caps.question, _TOOL)), "pre")),
            line(Span("" if permission.what.strip() else "It does not say what exactly.", "italic")),
            line(Span(_PARTS[permission.kind == "command"] if permission.partial else "", "bold")),
            line(Span(changes)),
            line(passage(detail, min(_DETAIL, caps.question), _mark(permission))),
            line(Span(left_out, "italic")),
            line("⚠️ It holds characters that cannot be seen." if hidden else ""),
            before,
        ]

    return lines


def _detail(permission: Permission) -> str:
    """Return the details; of a diff without the header of its first file, which only repeats the name of the file."""
    text = permission.detail
    if permission.kind != "change" or text.startswith("@@ "):
        return text
    first = text.find("\n@@ ") + 1
    return _HEAD.sub("", text[:first]) + text[first:]


def _mark(permission: Permission) -> Mark:
    return "expandable_blockquote" if permission.kind == "change" else "pre"


def _changes(permission: Permission) -> str:
    """Return the numbers of lines that a diff adds and removes, in words, or "" without any."""
    if permission.kind != "change" or not permission.detail:
        return ""
    lines = f"\n{permission.detail}"
    added = lines.count("\n+") - lines.count("\n+++ ")
    gone = lines.count("\n-") - lines.count("\n--- ")
    if not added + gone:
        return ""
    return f"+{added} −{gone} line{'' if added + gone == 1 else 's'}"


def is_cut(permission: Permission) -> bool:
    """Tell whether the permission is too long for a message."""
    return bool(_over(permission.what, _WHAT, "pre") + _over(_detail(permission), _DETAIL, _mark(permission)))


def _over(text: str, limit: int, mark: Mark) -> int:
    """Return about how many characters of the text are cut; 0 if it fits."""
    if passage(text, limit, mark) == passage(text, 4 * limit, mark):
        return 0
    return max(1, len(text) - limit)


def _cut(permission: Permission) -> str:
    more = _over(permission.what, _WHAT, "pre") + _over(_detail(permission), _DETAIL, _mark(permission))
    return f"Cut here: about {more:,} more characters." if more else ""


def whole(permission: Permission) -> str:
    """Return `what` and `detail` uncut, as the agent wrote them, for the document."""
    return f"{permission.what}\n\n{permission.detail}".strip() + "\n"


def file_name(permission: Permission) -> str:
    """Return the file name of the document that holds the whole permission."""
    return {"command": "command.txt", "change": "change.diff"}.get(permission.kind, "request.txt")


def trail(entry: Entry) -> Line:
    """Return the outcomes of the permissions that had this message before (last `TRAIL_LINES`), in a folded quote."""
    said = [phrase(one, _TRAIL_LINE).text for one in entry.trail[-TRAIL_LINES:]]
    return line(Span("\n".join(said), "expandable_blockquote"))


def trail_line(entry: Entry) -> str:
    """Return the outcome of a permission and its name, for the message of the next permission."""
    return f"{word_on(entry)}: {one_line(header(entry.ask, 0))}"


def word_on(entry: Entry) -> str:
    """Return the outcome of a permission in a few words, also one at the desk or together with another request."""
    outcome = entry.state.outcome
    together = outcome is not None and outcome.reason == "together"
    where = "together with another request" if together else "on the computer"
    match outcome.kind if outcome is not None else "gone":
        case "answered_at_desk":
            always = outcome is not None and outcome.answers == Always()
            return f"{'✅' if together else '🖥'} {'Always allowed' if always else 'Allowed'} {where}"
        case "rejected_at_desk":
            return f"{'✋' if together else '🖥'} Refused {where}"
        case "gone":
            return "No longer needed"
        case "expired":
            return "⌛ Nobody answered"
        case "answered" if outcome is not None and outcome.answers:
            return "✅ Allowed"
        case _:
            # A receipt proves only that the decision was handed over; an earlier answer in the agent's dialog counts.
            proof, can = outcome.proof if outcome is not None else "", entry.ask.capabilities
            unless = ", unless the computer was quicker" if proof == "receipt" and can.desk_stays_open else ""
            return f"{'✋' if is_refused(entry) else '✅'} {decided(entry, _WORD)}{_consequence(entry)}{unless}"


def _consequence(entry: Entry) -> str:
    """Return what a plain refusal did to the agent, if it stopped it."""
    refused = entry.state.decision is not None and entry.state.decision.kind == "reject"
    return "; its turn ended" if refused and entry.ask.capabilities.reject_stops else ""


def keyboard(entry: Entry, permission: Permission) -> Rows:
    """Return all buttons of a permission."""
    armed = entry.state.armed
    why = press(entry, "✏️ Cancel typing" if armed else "✏️ Refuse with a reason", Arm(0, on=not armed))
    yes = press(entry, ALLOW, Pick(0, 0), "success")
    no = press(entry, "✋ Refuse", AskTwice("reject"), "danger")
    always = press(entry, "Always…", AskTwice("always")) if permission.always else None
    more = "📄 Show more of it" if permission.partial else "📄 Show all of it"
    show = press(entry, more, ShowWhole()) if is_cut(permission) else None
    copy = () if permission.partial else copying("📋 Copy", permission.what)
    return ((yes, no), *((button,) for button in (why, always, show) if button), copy)


def always(entry: Entry, permission: Permission) -> list[Line]:
    """Return the question whether to allow "always": the patterns that it covers, the project, and the duration."""
    where = project(entry.ask.source)
    covered = [line(phrase(_covers(permission, one), LONGEST_PATTERN, "code")) for one in permission.always]
    return [
        line(Span("Always allow all of this?", "bold"), " It covers:"),
        *covered,
        line(
            "In all sessions of ",
            *((where,) if where.text else ("this project",)),
            ", for good." if entry.ask.capabilities.always_stays else f", until {_who(entry, 'the agent')} restarts.",
        ),
    ]


def _who(entry: Entry, unnamed: str) -> str:
    return phrase(entry.ask.capabilities.agent_name, _TOOL, empty=unnamed).text


def _covers(permission: Permission, pattern: str) -> str:
    """Return the pattern, or words for it if it is "*", because the sign alone says little."""
    if pattern != "*":
        return pattern
    return {"change": "every change of every file", "fetch": "every address"}.get(permission.kind, "everything")

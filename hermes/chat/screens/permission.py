"""The screen of a permission: all that the agent wants to do, or its beginning with a note that it is cut. Pure.

The command, file or address and the details stand in separate blocks, so that they do not look like words of Hermes.
"""

import re
from collections.abc import Mapping
from typing import Final

from hermes.chat.screens.buttons import Rows, copying, press
from hermes.chat.screens.screen import decided, header, project
from hermes.chat.screens.text import Line, Span, exact, line, one_line, phrase
from hermes.chat.screens.unseen import HIDDEN, verbatim
from hermes.core.ends import is_refused
from hermes.core.permission_rules import LONGEST_PATTERN
from hermes.model.actions import Arm, AskTwice, Pick, ShowWhole
from hermes.model.answer import Always
from hermes.model.ask import Permission, PermissionKind
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
_KEPT: Final = ", and of other copies of its repository, for good."

_HEADINGS: Final[Mapping[PermissionKind, str]] = {
    "command": "wants to run:",
    "change": "wants to change this file:",
    "folder": "wants to leave its project for:",
    "fetch": "wants to fetch:",
    "other": "wants to use:",
}


def body(entry: Entry, permission: Permission) -> list[Line]:
    """Return the lines of a permission: who wants it, `what`, `detail`, the warnings and the trail."""
    tool = (" ", phrase(permission.tool, _TOOL, "italic")) if permission.kind == "other" else ()
    what, detail, over = _blocks(permission)
    hidden = any(map(HIDDEN.search, (permission.what, permission.detail)))
    return [
        line(Span(f"{_who(entry, 'The agent')} {_HEADINGS[permission.kind]}", "bold"), *tool),
        line(what),
        line(Span("" if permission.what.strip() else "It does not say what exactly.", "italic")),
        line(Span(_PARTS[permission.kind == "command"] if permission.partial else "", "bold")),
        line(Span(_changes(permission))),
        line(detail),
        line(Span(f"Cut here: about {over:,} more characters." if over else "", "italic")),
        line("⚠️ It holds characters that cannot be seen." if hidden else ""),
        trail(entry),
    ]


def _blocks(permission: Permission) -> tuple[Span, Span, int]:
    """Return `what` and the details as they are shown, and about how many characters of them are cut."""
    what, over = exact(permission.what, _WHAT, "pre")
    if permission.kind == "change":
        detail, more = exact(headless(permission.detail, permission.what), _DETAIL, "expandable_blockquote")
    else:
        detail, more = exact(permission.detail, _DETAIL, "pre")
    return what, detail, over + more


def is_whole(permission: Permission) -> bool:
    """Tell whether the message shows all of the permission: nothing is cut, and no sign stands for anything."""
    _, _, over = _blocks(permission)
    return not over and all(verbatim(one) == one for one in (permission.what, permission.detail))


def _changes(permission: Permission) -> str:
    """Return the numbers of lines that a diff adds and removes, in words, or "" without any."""
    added, removed = changed_lines(permission.detail) if permission.kind == "change" else (0, 0)
    if not added + removed:
        return ""
    return f"+{added} −{removed} line{'' if added + removed == 1 else 's'}"


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
    """Return the effect of a plain refusal on the agent, if it stops it: at the end of its step, which may ask more."""
    refused = entry.state.decision is not None and entry.state.decision.kind == "reject"
    return "; its turn ends here" if refused and entry.ask.capabilities.reject_stops else ""


def keyboard(entry: Entry, permission: Permission) -> Rows:
    """Return all buttons of a permission."""
    armed = entry.state.armed
    why = press(entry, "✏️ Cancel typing" if armed else "✏️ Refuse with a reason", Arm(0, on=not armed))
    yes = press(entry, ALLOW, Pick(0, 0), "success")
    no = press(entry, "✋ Refuse", AskTwice("reject"), "danger")
    always = press(entry, "Always…", AskTwice("always")) if _can_be_always(permission) else None
    more = "📄 Show more of it" if permission.partial else "📄 Show all of it"
    show = press(entry, more, ShowWhole()) if not is_whole(permission) else None
    copy = () if permission.partial else copying("📋 Copy", permission.what)
    return ((yes, no), *((button,) for button in (why, always, show) if button), copy)


def _can_be_always(permission: Permission) -> bool:
    """Tell whether "always" is possible, and the screen of the second tap shows each pattern as it is."""
    return bool(permission.always) and all(
        phrase(verbatim(one), LONGEST_PATTERN, "code").text == " ".join(one.split()) for one in permission.always
    )


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
            _KEPT if entry.ask.capabilities.always_stays else f", until {_who(entry, 'the agent')} restarts.",
        ),
    ]


def _who(entry: Entry, unnamed: str) -> str:
    return phrase(entry.ask.capabilities.agent_name, _TOOL, empty=unnamed).text


def _covers(permission: Permission, pattern: str) -> str:
    """Return the pattern, or words for it if it is "*", because the sign alone says little."""
    if pattern != "*":
        return pattern
    return {"change": "every change of every file", "fetch": "every address"}.get(permission.kind, "everything")


# --- diffs: a changed line may look like a header, as "--- old" removes the line "-- old" ---------------------------

_HEADER: Final = re.compile(r"(?:Index: (.*)\n)?(?:=+\n)?--- (.*?)\t?\n\+\+\+ (.*?)\t?\n(?=@@ -\d)")
_HUNK: Final = re.compile(r"^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.MULTILINE)


def headless(diff: str, name: str) -> str:
    """Return the diff without the header that it begins with, if that only repeats the name of the one file."""
    header = _HEADER.match(diff)
    if header is None or not all(f"/{one}".endswith(f"/{name}") for one in header.groups(name)):
        return diff
    return diff[header.end() :]


def changed_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes.

    The first line of a hunk says how many lines follow; a header can only be outside of them.
    """
    added = removed = old = new = 0
    has_hunks = bool(_HUNK.search(diff))
    for one in diff.split("\n"):
        inside = old > 0 or new > 0
        if not inside and (hunk := _HUNK.match(one)):
            old, new = (int(count or 1) for count in hunk.groups())
        elif inside or not (has_hunks and one.startswith(("--- ", "+++ "))):
            added, removed = added + one.startswith("+"), removed + one.startswith("-")
            old, new = old - (one[:1] in "- "), new - (one[:1] in "+ ")
    return added, removed

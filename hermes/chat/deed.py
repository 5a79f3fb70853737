"""What an agent wants to do, as a person sees it before saying yes: whole, or honestly cut. Pure.

What the agent wrote stands in a block of its own below Hermes' words, so that it can never pose as them.
"""

import re
from collections.abc import Mapping
from typing import Final

from hermes.chat.buttons import Rows, press
from hermes.chat.screen import Caps, decided, header, project
from hermes.chat.text import Line, Mark, Span, line, one_line, passage, phrase, units
from hermes.model import Arm, AskTwice, DeedKind, Entry, Permission, Pick, ShowWhole

ALLOW: Final = "Allow once"
_WHAT: Final = 1400
_DETAIL: Final = 1200
_PATTERN: Final = 80
_PATTERNS: Final = 6
_TRAIL: Final = 8
_TRAIL_LINE: Final = 80
_TRAIL_WORD: Final = 40

_HEADINGS: Final[Mapping[DeedKind, str]] = {
    "command": "May it run this?",
    "change": "May it change this file?",
    "folder": "May it go outside of the project?",
    "fetch": "May it fetch this?",
    "other": "May it do this?",
}
# What no screen shows: controls but for breaks and tabs, what turns the direction of writing, what has no width.
_HIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def heading(permission: Permission) -> str:
    """Return what Hermes asks."""
    return _HEADINGS[permission.kind]


def deed(entry: Entry, permission: Permission, caps: Caps) -> list[Line]:
    """Return the question, what it is about, and what was cut."""
    tool = (" ", phrase(permission.tool, _PATTERN, "italic")) if permission.kind == "other" else ()
    return [
        line(Span(heading(permission), "bold"), *tool),
        line(passage(permission.what, min(_WHAT, max(caps.question, _PATTERN)), "pre")),
        line(Span(_changes(permission))),
        line(passage(_detail(permission), min(_DETAIL, caps.question), _mark(permission))),
        line(Span(_cut(permission), "italic")),
        line("⚠️ It holds characters that cannot be seen." if _HIDDEN.search(whole(permission)) else ""),
        trail(entry),
    ]


def _detail(permission: Permission) -> str:
    """Return what stands below: of a diff what comes after its head, which names the file once more."""
    if permission.kind != "change":
        return permission.detail
    return permission.detail[max(0, permission.detail.find("@@ ")) :]


def _mark(permission: Permission) -> Mark:
    return "expandable_blockquote" if permission.kind == "change" else "pre"


def _changes(permission: Permission) -> str:
    """Return how many lines a diff adds and takes away."""
    if permission.kind != "change" or not permission.detail:
        return ""
    lines = permission.detail.splitlines()
    added = sum(one.startswith("+") and not one.startswith("+++ ") for one in lines)
    gone = sum(one.startswith("-") and not one.startswith("--- ") for one in lines)
    return f"+{added} −{gone} line{'' if added + gone == 1 else 's'}"


def is_cut(permission: Permission) -> bool:
    """Tell whether a message has no room for all of it."""
    return units(permission.what) > _WHAT or units(_detail(permission)) > _DETAIL


def _cut(permission: Permission) -> str:
    if not is_cut(permission):
        return ""
    more = max(0, len(permission.what) - _WHAT) + max(0, len(_detail(permission)) - _DETAIL)
    return f"Cut here: about {more:,} more characters."


def whole(permission: Permission) -> str:
    """Return all of it as the agent gave it."""
    return f"{permission.what}\n\n{permission.detail}".strip() + "\n"


def file_name(permission: Permission) -> str:
    """Return what a document with all of it is called."""
    return {"command": "command.txt", "change": "change.diff"}.get(permission.kind, "request.txt")


def trail(entry: Entry) -> Line:
    """Return what was decided about the requests before this one, folded."""
    said = [phrase(one, _TRAIL_LINE).text for one in entry.trail[-_TRAIL:]]
    return line(Span("\n".join(said), "expandable_blockquote"))


def trail_line(entry: Entry) -> str:
    """Return what became of a permission, for the message of the next one."""
    kind = entry.state.outcome.kind if entry.state.outcome is not None else "gone"
    said = {
        "answered_at_desk": "🖥 Allowed on the computer",
        "rejected_at_desk": "🖥 Refused on the computer",
        "gone": "No longer needed",
        "expired": "⌛ Nobody answered",
    }.get(kind, decided(entry, _TRAIL_WORD))
    sign = "" if said[0] in "🖥⌛N" else "✋ " if said.startswith("Refused") else "✅ "
    return f"{sign}{said}: {one_line(header(entry.ask, 0))}"


def keyboard(entry: Entry, permission: Permission) -> Rows:
    """Return all buttons of a permission."""
    stops = entry.ask.capabilities.reject_stops
    armed = entry.state.armed
    why = press(entry, "✏️ Not now" if armed else "✏️ Refuse, and say why", Arm(0, on=not armed))
    no = press(entry, "⏹ Refuse and stop" if stops else "✋ Refuse", AskTwice("reject"))
    always = (press(entry, "Always…", AskTwice("always")),) if permission.always else ()
    rows: Rows = ((press(entry, ALLOW, Pick(0, 0)), no), (why, *always))
    return (*rows, (press(entry, "📄 Show all of it", ShowWhole()),)) if is_cut(permission) else rows


def always(entry: Entry, permission: Permission) -> list[Line]:
    """Return the second thought about "always": what it would cover, and for how long."""
    who = phrase(entry.ask.capabilities.agent_name, _PATTERN, empty="the agent").text
    where = project(entry.ask)
    covered = [line(phrase(_covers(permission, one), _PATTERN, "code")) for one in permission.always[:_PATTERNS]]
    more = len(permission.always) - _PATTERNS
    return [
        line(Span("Always allow all of this?", "bold")),
        *covered,
        line(f"… and {more} more" if more > 0 else ""),
        line("In all sessions of ", *((where,) if where.text else ("this project",)), f", until {who} restarts."),
    ]


def _covers(permission: Permission, pattern: str) -> str:
    """Say what a pattern covers, where the agent's own sign for it says little."""
    if pattern != "*":
        return pattern
    return {"change": "every change of every file", "fetch": "every address"}.get(permission.kind, "everything")

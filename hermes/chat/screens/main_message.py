"""The main message of an ask on the phone, in every phase of the dialog. Pure.

A person reads the message in two seconds while walking, so the question comes first, then the choices, then the origin.
Hermes' own buttons stand in separate rows below the options, so that no option can be mistaken for one of them. Hermes
writes the last line, and it ends with the short code: a reply to any copy of the message is recognised by this code.
"""

from dataclasses import replace
from typing import Final

from hermes.chat.screens.buttons import press
from hermes.chat.screens.permission import body, keyboard as buttons
from hermes.chat.screens.question_page import asked, keyboard, options, own_row, page
from hermes.chat.screens.review import confirm, numbers, review, send_button
from hermes.chat.screens.screen import Caps, Look, Screen, draw, name, origin
from hermes.chat.screens.settled import after
from hermes.chat.screens.text import Line, Span, ending, line, phrase
from hermes.model.actions import Send
from hermes.model.entry import Entry

_NAME: Final = 24


def main(entry: Entry, look: Look) -> Screen:
    """Return the main message of this entry as the phone should show it now."""
    if entry.state.phase not in ("open", "matching"):
        return draw(lambda caps: after(entry, look, caps))
    if not entry.ask.answerable:
        return draw(lambda caps: [*_unanswerable(entry, caps), *_foot(entry, look, caps)])
    if entry.state.confirm is not None:
        return confirm(entry, look)
    if (permission := entry.ask.permission) is not None:
        lines = body(entry, permission)
        return draw(lambda caps: [*lines, *_foot(entry, look, caps)], buttons(entry, permission))
    if not entry.ask.questions:
        go_on = press(entry, "Let it go on", Send())
        return draw(lambda caps: [*_bare(), *_foot(entry, look, caps)], ((go_on,), own_row(entry)))
    if entry.state.page >= len(entry.ask.questions):
        rows = (*numbers(entry), (send_button(entry),), own_row(entry))
        return draw(lambda caps: [*review(entry, caps), origin(entry, look)], rows)
    return draw(lambda caps: [*page(entry, caps), *_foot(entry, look, caps)], keyboard(entry))


def _foot(entry: Entry, look: Look, caps: Caps) -> list[Line]:
    """Return the end of the agent's last words in a folded quote, and the line with the origin of the ask."""
    words = ending(entry.ask.source.last_text, min(caps.context, look.context_chars), "expandable_blockquote")
    return [line(words), origin(entry, look)]


def _bare() -> list[Line]:
    """Return the lines of an ask without questions."""
    return [line(Span("Go on?", "bold")), line("It asks nothing in particular; let it go on?")]


def _unanswerable(entry: Entry, caps: Caps) -> list[Line]:
    """Return the questions of an ask that only the computer can answer (no buttons), with options if there is one."""
    last = line(Span("🖥 Please answer this one on the computer.", "bold"))
    if not entry.ask.questions:
        return [*_bare()[:1], last]
    if len(entry.ask.questions) == 1:
        first = replace(entry, state=replace(entry.state, page=0))
        return [*asked(first, caps), *options(first, caps), last]
    limit = caps.label
    shown = entry.ask.questions[: caps.listed]
    lines = [
        line(
            f"{index + 1} ",
            name(entry.ask, index, _NAME),
            " – ",
            phrase(question.text, limit, empty="…"),
        )
        for index, question in enumerate(shown)
    ]
    more = len(entry.ask.questions) - len(shown)
    return [*lines, line(f"… and {more} more" if more else ""), last]

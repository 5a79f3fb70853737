"""One page of the dialog: a question, the answer so far, and the keyboard. Pure.

The effects of buttons are absolute, never a toggle. The rows with the options come first, Hermes' own rows below them.
"""

from typing import Final

from hermes.chat.screens.buttons import LIMITS, Row, Rows, faces, in_columns, in_rows, press, shown_label
from hermes.chat.screens.screen import HEADING, SHORT, Caps, has_header, header, name, quoted, subject
from hermes.chat.screens.text import Line, Span, exact, line, one_line, passage, phrase, shortened
from hermes.core.answers import leaves_at_once, unanswered, utf16_units
from hermes.model.actions import Arm, AskTwice, ClearText, Go, Pick, Send, Shelve
from hermes.model.answer import Answer
from hermes.model.entry import Entry

_BRIEF: Final = 300
_MARK_NAME: Final = 14
_NAMED_MARKS: Final = 60
_MARKS_AROUND: Final = 8
_NAV_NAME: Final = 12


def page(entry: Entry, caps: Caps) -> list[Line]:
    """Return the question on show, with its options and the answer so far."""
    return [_marks(entry), *asked(entry, caps), *options(entry, caps), *_writing(entry, caps)]


def asked(entry: Entry, caps: Caps) -> list[Line]:
    """Return the question on show: below its header, or beside the header if the ask has several questions."""
    index = entry.state.page
    question = entry.ask.questions[index]
    alone = not has_header(question) and len(question.text) <= SHORT
    text = passage(question.text, caps.question, "bold" if alone else "")
    any_of = (" " if text.text else "", Span("Choose any.", "italic")) if question.multiple else ()
    if not has_header(question) and text.text:
        return [line(text, *any_of)]
    named = name(entry.ask, index, HEADING)
    if len(entry.ask.questions) > 1:
        return [line(named, " – " if text.text else "", text, *any_of)]
    return [line(named), line(text, *any_of)]


def title(entry: Entry, caps: Caps) -> list[Line]:
    """Return the ask in brief, such as "Database – Which database should I use?"; of a permission, its `what`."""
    if entry.ask.permission is not None:
        what, _ = exact(entry.ask.permission.what or "It does not say what exactly.", _BRIEF, "pre")
        return [line(what)]
    if len(entry.ask.questions) != 1:
        return [subject(entry.ask)]
    question = entry.ask.questions[0]
    limit = min(caps.question, _BRIEF)
    short = not has_header(question) and len(question.text) <= SHORT
    text = phrase(question.text, limit, "bold" if short else "")
    if not has_header(question) and text.text:
        return [line(text)]
    return [line(name(entry.ask, 0, HEADING), " – " if text.text else "", text)]


def options(entry: Entry, caps: Caps) -> list[Line]:
    """Return the numbered options; of a long list the part on show, its range, and the numbers chosen elsewhere."""
    question = entry.ask.questions[entry.state.page]
    count = len(question.options)
    if not count:
        free = "Reply to this message with your answer." if question.custom else "It offers nothing to choose from."
        return [line(Span(free, "italic"))]
    shelf = _shelf(entry)
    lines = [_option(entry, index, caps) for index in shelf]
    if len(shelf) == count:
        return lines
    elsewhere = [str(pick + 1) for pick in _given(entry).picks if pick not in shelf]
    also = Span(f"Also chosen: {', '.join(elsewhere[:20])}" if elsewhere else "", "italic")
    return [line(Span(f"{_range(shelf)} of {count}", "italic")), *lines, line(also)]


def _option(entry: Entry, index: int, caps: Caps) -> Line:
    question = entry.ask.questions[entry.state.page]
    star = " ⭐" if question.recommended == index else ""
    described = phrase(question.options[index].description, caps.description)
    label = phrase(shown_label(question, index), caps.label, "bold")
    return line(f"{_box(entry, index)}{index + 1} ", label, star, " – " if described.text else "", described)


def _box(entry: Entry, index: int) -> str:
    on = index in _given(entry).picks
    if entry.ask.questions[entry.state.page].multiple:
        return "☑ " if on else "☐ "
    return "● " if on else ""


def _given(entry: Entry) -> Answer:
    """Return the answer so far to the question on show."""
    page = entry.state.page
    return entry.state.answers[page] if page < len(entry.state.answers) else Answer()


def _shelf(entry: Entry) -> range:
    """Return the indices of the options on show."""
    count = len(entry.ask.questions[entry.state.page].options)
    last = max(0, count - 1) // LIMITS.shelf
    start = min(max(entry.state.shelf, 0), last) * LIMITS.shelf
    return range(start, min(start + LIMITS.shelf, count))


def _range(shelf: range) -> str:
    return f"{shelf.start + 1}–{shelf.stop}"


def _writing(entry: Entry, caps: Caps) -> list[Line]:
    """Return the text written for this question, and a line while Hermes waits for a text or receives one."""
    written = _given(entry).text
    lines = [] if written is None else [line("✏️ ", quoted(written, caps.label))]
    if entry.state.joining:
        lines.append(line(Span("✏️ …receiving your text", "italic")))
    elif entry.state.armed:
        lines.append(line(Span("✏️ Waiting for your text…", "italic")))
    return lines


def _marks(entry: Entry) -> Line:
    """Return a mark for each question near this one (○ open, ● answered, this one bold), with names if they fit."""
    ask, page, count = entry.ask, entry.state.page, len(entry.ask.questions)
    if count == 1:
        return ()
    open_ones = set(unanswered(entry.state))
    signs = ["○" if index in open_ones else "●" for index in range(count)]
    named = range(count) if count <= _MARKS_AROUND else [page]
    names = [f"{sign} {name(ask, at, _MARK_NAME).text}" if at in named else sign for at, sign in enumerate(signs)]
    if sum(map(utf16_units, names)) > _NAMED_MARKS:
        names = [names[index] if index == page else sign for index, sign in enumerate(signs)]
    first, last = max(0, page - _MARKS_AROUND), min(count, page + _MARKS_AROUND + 1)
    pieces: list[Span] = [Span("… " if first else "")]
    for index in range(first, last):
        pieces += [Span(names[index], "bold" if index == page else ""), Span("  ")]
    return line(*pieces, "…  " if last < count else "", f"({page + 1}/{count})")


# --- the keyboard ---------------------------------------------------------------------------------


def keyboard(entry: Entry) -> Rows:
    """Return all buttons of the question on show."""
    rows = (*_option_rows(entry), _shelves(entry), _done(entry), _clear(entry), _nav(entry), own_row(entry))
    return tuple(row for row in rows if row)


def _option_rows(entry: Entry) -> Rows:
    index = entry.state.page
    question, picks, shelf = entry.ask.questions[index], _given(entry).picks, _shelf(entry)
    said = faces(question, shelf)
    buttons = [
        press(
            entry,
            f"{_box(entry, at)}{said[at]}",
            Pick(index, at, on=not question.multiple or at not in picks),
        )
        for at in shelf
    ]
    listed = not question.multiple and len(question.options) <= LIMITS.listed_one_a_row
    return in_rows(buttons, 1) if listed else in_columns(buttons)


def _shelves(entry: Entry) -> Row:
    """Return the buttons to the previous and the next part of a long list of options."""
    count, here = len(entry.ask.questions[entry.state.page].options), _shelf(entry)
    number = here.start // LIMITS.shelf
    row = []
    if number:
        before = range(here.start - LIMITS.shelf, here.start)
        row.append(press(entry, f"◀ {_range(before)}", Shelve(number - 1)))
    if here.stop < count:
        after = range(here.stop, min(here.stop + LIMITS.shelf, count))
        row.append(press(entry, f"More ▶ ({_range(after)} of {count})", Shelve(number + 1)))
    return tuple(row)


def _done(entry: Entry) -> Row:
    """Return Done if the ask is a single question that one choice does not answer; several questions have a review."""
    if len(entry.ask.questions) > 1 or leaves_at_once(entry.ask):
        return ()
    count = len(_given(entry).picks) + (_given(entry).text is not None)
    if not count:
        return (press(entry, "Done (nothing chosen)", AskTwice("send")),)
    return (press(entry, f"Done ({count})", Send()),)


def _clear(entry: Entry) -> Row:
    written = _given(entry).text
    if written is None:
        return ()
    words = shortened(one_line(written) or "…", LIMITS.columns - len("✖ Without “”"))
    return (press(entry, f"✖ Without “{words}”", ClearText(entry.state.page)),)


def _nav(entry: Entry) -> Row:
    page, count = entry.state.page, len(entry.ask.questions)
    if count == 1:
        return ()
    row = []
    if page:
        row.append(press(entry, f"◀ {_short(entry, page - 1)}", Go(page - 1)))
    following = _short(entry, page + 1) if page + 1 < count else "Review"
    row.append(press(entry, f"{following} ▶", Go(page + 1)))
    return tuple(row)


def _short(entry: Entry, index: int) -> str:
    return shortened(header(entry.ask, index), _NAV_NAME)


def own_row(entry: Entry) -> Row:
    """Return Hermes' own buttons: type an answer, skip, and stop (or refuse)."""
    state, can = entry.state, entry.ask.capabilities
    row = []
    if state.page < len(entry.ask.questions) and entry.ask.questions[state.page].custom:
        other = "✏️ Other" if entry.ask.questions[state.page].options else "✏️ Answer"
        arm = Arm(state.page, on=not state.armed)
        row.append(press(entry, "✏️ Cancel typing" if state.armed else other, arm))
    if can.can_skip and entry.ask.questions:
        row.append(press(entry, "⏭ Skip", AskTwice("skip")))
    row.append(press(entry, "⏹ Stop" if can.reject_stops else "✋ Refuse", AskTwice("reject")))
    return tuple(row)

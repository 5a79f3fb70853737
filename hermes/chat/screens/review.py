"""The review of several answers before they are sent, and the screens that ask for a second tap. Pure."""

from typing import Final

from hermes.chat.screens.buttons import LIMITS, Button, Rows, in_columns, press
from hermes.chat.screens.permission import always
from hermes.chat.screens.question_page import title
from hermes.chat.screens.screen import Caps, Look, Screen, answer_in_words, draw, name, origin
from hermes.chat.screens.text import Line, Span, line
from hermes.core.answers import unanswered
from hermes.model.actions import AskTwice, Back, Confirmed, Go, Send
from hermes.model.entry import Entry
from hermes.model.state import Confirm

_NAME: Final = 24
_NAMED_MISSING: Final = 4


def review(entry: Entry, caps: Caps) -> list[Line]:
    """Return the lines of the review: all answers before they are sent."""
    return [line(Span("Ready to send?", "bold")), *answer_list(entry, caps, "⚠️ no answer yet")]


def answer_list(entry: Entry, caps: Caps, none: str) -> list[Line]:
    """Return one line for each question: its number, its name, and its answer or `none`."""
    shown = _listed(entry, caps.listed)
    words = {index: answer_in_words(entry, index, caps.label) for index in shown}
    lines = [
        line(f"{index + 1} ", name(entry.ask, index, _NAME, ""), ": ", Span(words[index], "bold"))
        if words[index]
        else line(f"{index + 1} ", name(entry.ask, index, _NAME, ""), f": {none}")
        for index in shown
    ]
    more = len(entry.ask.questions) - len(shown)
    return [*lines, line(f"… and {more} more" if more else "")]


def _listed(entry: Entry, limit: int) -> list[int]:
    """Return the indices of at most `limit` questions, in order; if not all fit, the unanswered ones have priority."""
    open_ones = unanswered(entry.state)
    answered = set(range(len(entry.ask.questions))).difference(open_ones)
    return sorted([*open_ones, *sorted(answered)][:limit])


def numbers(entry: Entry) -> Rows:
    """Return a button for each listed question; it shows the page of the question."""
    open_ones = set(unanswered(entry.state))
    shown = _listed(entry, LIMITS.review)
    said = [f"{index + 1} ⚠️" if index in open_ones else str(index + 1) for index in shown]
    buttons = [press(entry, text, Go(index)) for text, index in zip(said, shown, strict=True)]
    return in_columns(buttons, at_most=5)


def _without(entry: Entry) -> str:
    """Name the missing answers: "answer 3", "answers 2 and 3", "7 answers", "any answer"."""
    missing = [str(index + 1) for index in unanswered(entry.state)]
    if len(missing) == len(entry.ask.questions):
        return "any answer"
    if len(missing) == 1:
        return f"answer {missing[0]}"
    if len(missing) > _NAMED_MISSING:
        return f"{len(missing)} answers"
    return f"answers {', '.join(missing[:-1])} and {missing[-1]}"


def send_button(entry: Entry) -> Button:
    """Return Send, or, if an answer is missing, the first of two taps."""
    if unanswered(entry.state):
        return press(entry, f"Send without {_without(entry)}", AskTwice("send"))
    return press(entry, "Send", Send())


# --- the second tap -------------------------------------------------------------------------------


def confirm(entry: Entry, look: Look) -> Screen:
    """Return the screen that asks for the second tap."""
    what = entry.state.confirm or "send"
    asked, yes = _second_tap(entry, what)
    rows = ((press(entry, yes, Confirmed(what)), press(entry, "Back", Back())),)

    def lines(caps: Caps) -> list[Line]:
        reviewed = what == "send" and len(entry.ask.questions) > 1
        above = answer_list(entry, caps, "⚠️ no answer yet") if reviewed else title(entry, caps)
        return [*above, *asked, origin(entry, look)]

    return draw(lines, rows)


def _second_tap(entry: Entry, what: Confirm) -> tuple[list[Line], str]:
    """Return the question, and the text of the button that says yes."""
    stops, permission = entry.ask.capabilities.reject_stops, entry.ask.permission
    match what:
        case "always":
            return [] if permission is None else always(entry, permission), "Yes, always"
        case "send":
            without = f" without {_without(entry)}" if unanswered(entry.state) else " it"
            return [line(Span(f"Send{without}?", "bold"))], "Yes, send"
        case "skip":
            return [line(Span("Let it decide by itself?", "bold"))], "Yes"
    if not stops:
        return [line(Span("Refuse?", "bold"), " It will be told no and carry on.")], "Yes, refuse"
    if permission is not None:
        return [line(Span("Refuse?", "bold"), " The agent ends its turn here.")], "Yes, refuse"
    return [line(Span("Stop the agent?", "bold"), " It ends its turn here.")], "Yes, stop"

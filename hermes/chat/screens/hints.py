"""Short texts for the person: acknowledgements of taps, hints, and messages about Hermes itself. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from hermes.chat.screens.buttons import EMPTY, LIMITS, shown_label
from hermes.chat.screens.permission import word_on
from hermes.chat.screens.screen import (
    Caps,
    Look,
    Screen,
    all_in_words,
    clock,
    computer,
    decided,
    draw,
    header,
    name,
    note,
    subject,
)
from hermes.chat.screens.text import Line, Span, cut, line, one_line, phrase, plain
from hermes.core.answers import bare_label, has_numbers
from hermes.model.answer import Outcome
from hermes.model.entry import Entry
from hermes.model.state import Hint, Toast

TOAST_UNITS: Final = 200
TORN: Final = "a part of it may be lost. Please send it again."
EDITED_WHILE_LOCKED: Final = "it was edited while the phone was locked. Please send it again."
"""Why a text is not sent to an agent."""
SHUT_OUT: Final = "the person who wrote it may write here no longer"
"""Why a text of somebody who was taken off the list of users is not sent."""
_ANSWER: Final = 300


# --- the acknowledgement of a tap -----------------------------------------------------------------

TOASTS: Final[Mapping[str, str]] = {
    "page_changed": "This page has changed",
    "typing_off": "All right, no typing",
    "sure": "Sure? One more tap.",
    "kept_waiting": "All right, I keep waiting",
    "receiving": "One moment, I am still receiving your text",
    "forgotten": "All right, that was not an answer",
    "not_answerable": "Please answer this one on the computer",
    "whole": "Here it comes",
    "as_message": "I send it as a message",
    "in_topic": "It comes in its topic",
    "prompts_off": "This phone may not write to agents",
    "other_chat": "I use another chat now",
    "fresh": "This is the next one. Please look first, then tap again.",
}


def toast(entry: Entry, said: Toast, look: Look) -> str:
    """Return the text of an acknowledgement, 200 UTF-16 units at most."""
    return cut(_toast(entry, said, look), TOAST_UNITS)


def _toast(entry: Entry, said: Toast, look: Look) -> str:
    label = one_line(bare_label(said.text)[: 2 * TOAST_UNITS])
    match said.kind:
        case "picked":
            return label or EMPTY
        case "dropped":
            return f"☐ {label}" if label else "Taken out"
        case "on_its_way":
            return f"{_on_its_way(entry, 'On its way')}: {plain(decided(entry, TOAST_UNITS))}"
        case "settled":
            return plain(_ended(entry))
        case "moved":
            return _place(entry)
        case "type_now":
            return _type_now(why=entry.ask.permission is not None, look=look)
        case kind:
            return TOASTS[kind]


def _type_now(*, why: bool, look: Look) -> str:
    if look.group:
        return "Reply with why not" if why else "Reply with your answer"
    return "Write why not, as your next message" if why else "Type your answer as your next message"


def _place(entry: Entry) -> str:
    page, count = entry.state.page, len(entry.ask.questions)
    if page >= count:
        return "Review" if count else "Go on?"
    place = f" ({page + 1}/{count})" if count > 1 else ""
    return cut(header(entry.ask, page), TOAST_UNITS - len(place)) + place


def _ended(entry: Entry) -> str:
    """Return a few words about how an ask ended."""
    words = decided(entry, TOAST_UNITS)
    if entry.ask.permission is not None and entry.state.outcome is not None:
        return f"Already decided: {word_on(entry)}"
    match entry.state.outcome:
        case Outcome(kind="answered"):
            return f"Already answered: {words}"
        case Outcome(kind="rejected"):
            return "Already stopped" if entry.ask.capabilities.reject_stops else "Already refused"
        case Outcome(kind="skipped"):
            return "Already skipped"
        case Outcome(kind="answered_at_desk", reason=reason):
            at_desk = f"Already answered on the computer: {all_in_words(entry, TOAST_UNITS)}"
            return "The agent's own timer has decided" if reason == "timer" else at_desk
        case Outcome(kind="rejected_at_desk"):
            return "Already dismissed on the computer"
        case Outcome(kind="gone"):
            return "The agent no longer needs this"
        case _:
            return "Nobody answered this in time"


# --- why a text changed nothing -------------------------------------------------------------------

HintWord = Hint | Literal["two_open", "none_open", "too_early", "no_words", "how_to_answer"]
_HOW_TO_ANSWER: Final = "Tap a button below a question, or reply to the question with your own words."

_WITHOUT_ENTRY: Final[Mapping[HintWord, str]] = {
    "settled": "I take no more answers to that question.",
    "taken": "That answer is already on its way.",
    "no_such_option": "That is none of the options. Please tap one.",
    "which_question": "Which question is that for? Please tap its number, then write it again.",
    "none_open": "No question is open just now that you can answer here. I write when an agent asks.",
    "too_early": "No question was waiting when you wrote that. To answer the one above, tap a button or reply to it.",
    "no_words": "An answer can only be words. Please type it, or tap a button.",
    "how_to_answer": _HOW_TO_ANSWER,
}
_NUMBERS: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def hint(kind: HintWord, entry: Entry | None, *, count: int = 2) -> Screen:
    """Return a short message that explains why a text changed nothing; "two_open" names `count` open questions."""
    match kind:
        case "two_open":
            number = _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)
            return note(f"{number} questions are open. Reply to the one you mean.")
        case "settled" if entry is not None:
            return note(_ended(entry), ".")
        case "taken" if entry is not None:
            return _taken(entry)
        case "no_such_option" if entry is not None:
            return _no_such_option(entry)
        case "how_to_answer" if entry is not None:
            return _how_to_answer(entry)
        case "which_question" if entry is not None and not entry.ask.questions:
            return _how_to_answer(entry)
    return note(_WITHOUT_ENTRY[kind])


def _taken(entry: Entry) -> Screen:
    if not entry.ask.answerable:
        return note("Please answer this one on the computer.")
    if entry.state.joining:
        return note("One moment: somebody's answer to ", *subject(entry.ask), " is just coming in.")
    said = _on_its_way(entry, "An answer is already on its way")
    return note(f"{said}: ", Span(decided(entry, _ANSWER), "bold"))


def _on_its_way(entry: Entry, said: str) -> str:
    """Add to what is said of a decision on its way that no person made it."""
    decision = entry.state.decision
    return said if decision is None or decision.by is not None else "On its way, since time was up"


def _no_such_option(entry: Entry) -> Screen:
    index = entry.state.page
    if index >= len(entry.ask.questions):
        return note(_WITHOUT_ENTRY["which_question"])
    question = entry.ask.questions[index]
    options, more = question.options, len(question.options) - LIMITS.shelf
    sent = "label" if has_numbers(question) else "number"
    said = line("That is none of the options of ", name(entry.ask, index), f". Please tap one, or send its {sent}:")

    def lines(caps: Caps) -> list[Line]:
        labels = [
            line("• " if has_numbers(question) else f"{at + 1} ", phrase(shown_label(question, at), caps.label, "bold"))
            for at in range(min(len(options), LIMITS.shelf))
        ]
        return [said, *labels, line(f"… and {more} more" if more > 0 else "")]

    return draw(lines)


def _how_to_answer(entry: Entry) -> Screen:
    own = ", or reply to it with your own words" if entry.ask.questions else ""
    return note("To answer ", *subject(entry.ask), f", tap one of its buttons{own}.")


# --- about Hermes itself --------------------------------------------------------------------------


COMMANDS: Final[Mapping[str, str]] = {
    "open": "show everything that is open again",
    "status": "what is open, and who is connected",
    "away": "you leave the computer: everything comes here at once",
    "desk": "you are at the computer: what comes up waits for you there first",
    "lock": "take no answers, and send no prompts, until you run `hermes unlock` on the computer",
    "help": "what this chat is for",
}


PROMPT_COMMANDS: Final[Mapping[str, str]] = {
    "sessions": "your agents' sessions: write to one, stop it, mute it",
    "new": "begin a new session in a project",
    "stop": "end what an agent is doing",
    "get": "fetch a file of a session's project: reply with /get and its path",
}
"""The commands of a chat in which prompts are on."""


def help_screen(*, has_prompts: bool = False) -> Screen:
    """Return the answer to /help and /start: the purpose of this chat, and its commands."""
    commands = {**COMMANDS, **PROMPT_COMMANDS} if has_prompts else COMMANDS
    listed = [line(f"/{name} – {about}") for name, about in commands.items()]
    opening = line("When your coding agent asks something, it comes here. Tap a button, or reply with your own words.")
    prompts = "To write to an agent, reply to a message about its session, or tap /sessions." if has_prompts else ""
    return draw(lambda _: [opening, line(prompts), *listed])


def prompts_off(machine: str) -> Screen:
    """Return the answer to a command of prompts while these are off."""
    setup = Span("hermes setup", "code")
    return note("This phone may not write to agents. To change that, run on ", computer(machine), ": ", setup)


def other_projects(machine: str) -> Screen:
    """Return the answer to a text for a session of a project to which the phone may not write."""
    where, key, part = computer(machine), Span("projects", "code"), Span("[prompts]", "code")
    return note(
        "Not sent: this phone may not write to that project. On ", where, ", ", key, " in the ", part,
        " part of the configuration (", Span("hermes config", "code"), " says where it is) names those that it may."
    )  # fmt: skip


def voice_off(machine: str) -> Screen:
    """Return the answer to a voice note while no program hears them."""
    where, key = computer(machine), Span("transcribe", "code")
    return note(
        "I can't hear voice notes yet: on ", where, ", name a program that turns them into text, as ", key, " in the ",
        Span("[prompts]", "code"), " part of the configuration (", Span("hermes config", "code"), " says where it is)."
    )  # fmt: skip


UNKNOWN_COMMAND: Final = note(f"I don't know that command; /help lists those that I know. {_HOW_TO_ANSWER}")
"""The answer to a command that is none, such as a mistyped /lock."""
ONLY_WORDS: Final = note(
    "I can take words, and the pictures and files that the agent takes. Please type your prompt, or send one of these."
)
"""The answer to a sticker, a place or a contact for a session."""
WORDS_BEHIND_NEW: Final = note(
    "I did not use the words behind /new. Please choose a project first, then send them without /new."
)
"""The answer to /new with a prompt behind it: nobody has said yet in which project the session begins."""
NOT_BEGUN: Final = note("That session has not begun yet. Please write this again when it has.")
"""The answer to a reply to a prompt whose new session does not exist yet."""
EDITED_TOO_LATE: Final = note(
    "Your edit came too late: that prompt stays as it was. If you want something else, please write again."
)
"""The answer to the edit of a prompt that is over, or may have reached the agent."""
EDITED_IN_VAIN: Final = note(
    "That edit changes nothing. To change an answer while its question is open, show that question and reply again."
)
"""The answer to the edit of a text that is no prompt: of an answer, the words that were sent first count."""
EDITED_VOICE: Final = note(
    "An edit below a voice note changes nothing. To say something else, please send a new prompt."
)
"""The answer to the edit of the text below a voice note, at any time."""


def open_the_link(*, in_group: bool) -> Screen:
    """Return the answer to a plain /start during `hermes setup`, which waits for a person or, `in_group`, a group."""
    then = "add me to the group." if in_group else "press Start again."
    return note(
        "Almost there. Please scan the code that ", Span("hermes setup", "code"),
        f" shows on your computer, or open its link on this phone; then {then}",
    )  # fmt: skip


def connected(*, has_prompts: bool = False) -> Screen:
    """Return the first message to a chat that `hermes setup` has connected."""
    prompts = " To write to an agent yourself, tap /sessions." if has_prompts else ""
    return note(f"✅ Connected. When your coding agent asks something, it comes here.{prompts}")


def reposted(count: int, *, coming: int = 0, is_apart: bool = False) -> Screen:
    """Return the answer to /open: the number of open asks that are posted again after it.

    `coming` is that of those that were not posted yet: they wait for the person at the computer, for example.
    `is_apart`: some are posted in other topics than the one in which this answer stands.
    """
    if not count and coming:
        one = "One question is open, but not here yet. It comes by itself."
        return note(one if coming == 1 else f"{coming} questions are open, but not here yet. They come by themselves.")
    if not count:
        return note("Nothing is open just now. I write when an agent asks.")
    if is_apart:
        posted = "I post it again, in its topic." if count == 1 else f"I post {count} again, each in its topic."
        return note(posted, " Others are open that come by themselves." if coming > 0 else "")
    here = "Here is one" if count == 1 else f"Here are {count}"
    if coming > 0:  # one may have ended meanwhile
        others = "the other one comes by itself" if coming == 1 else "the others come by themselves"
        return note(f"{here} of the {count + coming} that are open; {others}:")
    return note("Here is the one that is open:" if count == 1 else f"Here are the {count} that are open:")


def locked(machine: str) -> Screen:
    """Return the message that Hermes takes no answers from this chat until `hermes unlock` runs on the computer."""
    unlock = Span("hermes unlock", "code")
    return note("🔒 Locked: I take no answers here. To unlock, run on ", computer(machine), ": ", unlock)


def locked_toast(machine: str) -> str:
    """Return the same message as `locked`, short enough for the acknowledgement of a tap."""
    return cut(f"🔒 Locked. On {one_line(machine) or 'the computer'}: hermes unlock", TOAST_UNITS)


def digest_screen(count: int) -> Screen:
    """Return the message at the end of quiet hours, with the number of open questions."""
    waiting = "one question is" if count == 1 else f"{count or 'no'} questions are"
    return note(f"Quiet hours have ended: {waiting} waiting for you.")


def was_away(from_s: float, until_s: float, look: Look) -> Screen:
    """Return the message after an absence of Hermes, in which taps may have been lost."""
    since, until = clock(from_s, look, near_s=until_s), clock(until_s, look, near_s=until_s)
    return note(f"I was offline from {since} to {until}. If you tapped something then, please tap again.")


def unreadable(count: int, machine: str) -> Screen:
    """Return the warning that a start found damaged questions; their buttons no longer work."""
    what, it, comes = ("A question", "it", "it does") if count == 1 else (f"{count} questions", "them", "they do")
    again = f" can't be read any more: damaged on disk. If {comes} not come again, please answer {it} there."
    return note("⚠️ ", what, " from ", computer(machine), again)


def question_not_saved(machine: str, why: str = "disk full") -> Screen:
    """Return the warning that a new question could not be saved and therefore is not on the phone."""
    rest = "). Please answer it on the computer, or free some space."
    return note("⚠️ A question could not be saved (", phrase(why, 40), " on ", computer(machine), rest)


def store_made_again(count: int, machine: str) -> Screen:
    """Return the warning that Hermes' folder was removed while `count` questions were open."""
    what, they = ("one open question", "it") if count == 1 else (f"{count} open questions", "them")
    again = f" was removed while I ran. I made it again with {what}; you can answer {they} as before."
    return note("⚠️ My folder on ", computer(machine), again)


def not_saved(machine: str, why: str = "disk full", *, what: str = "tap") -> Screen:
    """Return the warning that something could not be saved; it is short enough for a toast.

    `what` the person has to do again: "tap", "send it" or "edit it".
    """
    again = f"). Please {what} again in a moment."
    return note("⚠️ I could not save that (", phrase(why, 40), " on ", computer(machine), again)


def defect(machine: str, *, is_kept: bool) -> Screen:
    """Return the warning that a tap or a text met a defect of Hermes; it is short enough for a toast."""
    where, doctor = computer(machine), Span("hermes doctor", "code")
    kept = "I kept it. To find it" if is_kept else "I could not keep it. To find out why"
    return note(f"⚠️ That may not have worked, because of a defect of mine. {kept}, run on ", where, ": ", doctor)


def other_poller(machine: str) -> Screen:
    """Return the warning that another program uses this bot, so that it may receive the taps."""
    doctor = Span("hermes doctor", "code")
    return note("⚠️ Another program is using this bot; taps may go there. On ", computer(machine), ": ", doctor, ".")

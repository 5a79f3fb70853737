"""The lists of sessions, and the card of one. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hermes.chat.screens.buttons import Row, Rows, copying, of_record
from hermes.chat.screens.prompts import apart, called, origin, place
from hermes.chat.screens.screen import Caps, Look, Screen, agent_at, clock, draw, note, project
from hermes.chat.screens.text import Line, Span, dotted, ending, line, phrase
from hermes.model.actions import Back, ListPage, Mute, ShowCard, StopTurn, WriteTo
from hermes.model.ask import Source
from hermes.model.card import Card, Wanted
from hermes.model.prompt import PromptAbilities

PAGE: Final = 8
"""So many sessions are shown at once."""
_HEADS: Final = {
    "sessions": "Your sessions. Tap one to write to it.",
    "new": "Where should the new session begin?",
    "stop": "What should stop?",
}
_NONE: Final = {
    "sessions": "No agent runs a session that I can write to.",
    "new": "I know no project yet in which I could begin a session.",
    "stop": "Nothing is running that I can stop.",
}
_STATES: Final = {"busy": "▶️", "idle": "💤", "gone": "✖️"}
NOT_LISTED: Final = note("Telegram did not take this list. Please ask for it again later.")
_NAME: Final = 40
_TITLE: Final = 60


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, of `pages` in all. `silent` are agents that did not answer."""

    wanted: Wanted
    cards: tuple[Card, ...]
    silent: tuple[str, ...] = ()
    number: int = 0
    pages: int = 1


def session_list(page: Page, look: Look, now_s: float) -> Screen:
    """Return one page of a list: a line and a button for each session."""
    wanted, cards = page.wanted, page.cards
    quiet = [line("⚠️ No answer from ", phrase(", ".join(page.silent), 100), ".")] if page.silent else []
    listed = [_listed(number, card, wanted, look, now_s) for number, card in enumerate(cards, page.number * PAGE + 1)]
    nothing = "" if page.silent else _NONE[wanted]
    head = line(_HEADS[wanted] if cards else nothing)
    action = StopTurn() if wanted == "stop" else WriteTo() if wanted == "new" else ShowCard()
    labels = apart([_named(card, wanted) for card in cards], page.number * PAGE + 1)
    buttons = [(of_record(card.id, label, action),) for card, label in zip(cards, labels, strict=True)]
    turning: Row = ()
    if page.number > 0:
        turning += (of_record("sessions", "◀", ListPage(page.number - 1)),)
    if page.number + 1 < page.pages:
        turning += (of_record("sessions", "▶", ListPage(page.number + 1)),)
    return draw(lambda _: [head, *listed, *quiet], (*buttons, turning))


def _listed(number: int, card: Card, wanted: Wanted, look: Look, now_s: float) -> Line:
    source = card.target.source
    who = agent_at(card.target.agent_name, source)
    if wanted == "new":
        return line(f"{number} ", *dotted([phrase(_named(card, wanted), _NAME), who]))
    used = Span("running" if card.state == "busy" else clock(card.used_s, look, near_s=now_s))
    named, folder = phrase(_named(card, wanted), _NAME, "bold"), project(source)
    names = [named] if folder.text == named.text else [named, folder]
    return line(f"{number} {_STATES[card.state]} ", *dotted([*names, used, who]))


def _named(card: Card, wanted: Wanted) -> str:
    return (place(card.target) or "The agent's own folder") if wanted == "new" else called(card.target)


def session_card(card: Card, open_asks: Sequence[str], look: Look) -> Screen:
    """Return the card of a session: its state, the agent's last words, its open questions, and the buttons.

    If it is still stale, its session could not be looked at.
    """
    target = card.target
    state = {"busy": "▶️ is working", "idle": "💤 waits for you", "gone": "✖️ does not exist any more"}[card.state]
    state = "⚠️ can't be reached just now" if card.is_stale else state
    told = {"asked": " · stopping …", "told": " · told to stop", "refused": " · could not be stopped"}
    muted = " · no notices" if card.is_muted else ""

    def lines(caps: Caps) -> list[Line]:
        head = line(phrase(called(target), _TITLE), f" {state}{told.get(card.stop, '')}{muted}")
        asks = [line("❓ ", phrase(ask, _NAME, "bold"), " waits for an answer.") for ask in open_asks[:3]]
        words = ending(target.source.last_text, min(caps.context, look.context_chars), "expandable_blockquote")
        return [head, *asks, line(words), origin(target)]

    return draw(lines, _card_rows(card, look))


def _card_rows(card: Card, look: Look) -> Rows:
    if card.state == "gone":
        return ()
    if card.stop == "sure":
        return ((of_record(card.id, "Yes, stop", StopTurn(is_sure=True)), of_record(card.id, "Back", Back())),)
    row: Row = (of_record(card.id, "✏️ Write a prompt", WriteTo()),)
    if card.target.can.stops and card.state == "busy" and card.stop != "asked" and not card.is_stale:
        row += (of_record(card.id, "⏹ Stop", StopTurn()),)
    mute = ("🔔 Notices on", Mute(on=False)) if card.is_muted else ("🔕 Mute", Mute())
    resuming = _resuming(card.target.source, look)
    return row, (of_record(card.id, *mute),), copying("📋 Copy the command to resume", resuming)


def _resuming(source: Source, look: Look) -> str:
    """Return the line that opens this session in a terminal, "" if none is known.

    Its program is what this machine knows of the agent: another machine could write any command into its list.
    """
    resumes = look.prompted.get(source.agent, PromptAbilities()).resumes
    if not resumes or not source.session_id or source.session_id.startswith("-"):  # it would be an option
        return ""
    there = f"cd {shlex.quote(source.directory)} && " if source.directory else ""
    return f"{there}{resumes} {shlex.quote(source.session_id)}"


def write_now(card: Card, look: Look) -> Screen:
    """Return the message that asks for the text of a prompt."""
    target = card.target
    where: tuple[str | Span, ...] = (phrase(called(target), _TITLE),)
    if not target.source.session_id:
        where = ("a new session in ", phrase(place(target) or "its folder", _NAME))
    if card.about:
        where = (*where, " about ", phrase(card.about, _NAME, "bold"))
    if look.group:
        return note("Reply to this with your prompt for ", *where, ".", force_reply=True)
    rows = ((of_record(card.id, "✏️ Cancel typing", WriteTo(on=False)),),)
    return note("Type your prompt for ", *where, " as your next message.", rows=rows)

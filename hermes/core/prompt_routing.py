"""Decide whether a written message is a prompt, and for which session. Pure.

The first of these rules that fits decides:

 1. The text is a further part of a prompt whose parts are still arriving, or a further picture of its album.
 2. It replies to a message that stands for a session: a notice, the line of a prompt, or a card.
 3. It is a plain text in the topic of a session. It is offered by a button if it may be an answer that comes too late
    (`routing.may_be_late`).
 4. It is the next plain text after "Write a prompt" on a card, in a private chat (in a group people reply). A text that
    was only forwarded is none.

Any other text is a prompt only if the person says so by a button.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hermes.core.prompts import is_free, is_over
from hermes.core.routing import follows
from hermes.core.topics import is_of, root_of
from hermes.model.ask import Source
from hermes.model.card import Card
from hermes.model.chat_memory import Topic
from hermes.model.events import Text
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt, PromptAbilities, Target

ARMED_S: Final = 1800.0
"""After this time a card no longer takes a text: the person may have forgotten it."""
OFFERED: Final = 3
"""So many sessions are offered for a text without a target."""


@dataclass(frozen=True, slots=True)
class ToPrompt:
    """The text is the next part of this prompt."""

    prompt_id: str


@dataclass(frozen=True, slots=True)
class ToSession:
    """The text is a prompt for this session.

    `card_id`: the card that waits for it, and takes no further one. `about`: a question that it answers too late.
    """

    target: Target
    card_id: str = ""
    about: str = ""


PromptDestination = ToPrompt | ToSession


@dataclass(frozen=True, slots=True)
class Sessions:
    """All sessions that a person can mean: those of prompts, cards and notices; and the abilities of each agent."""

    prompts: Sequence[Prompt]
    cards: Sequence[Card]
    notices: Sequence[Notice]
    abilities: Mapping[str, PromptAbilities]
    projects: tuple[str, ...] = ()


def route(text: Text, known: Sessions, here: Target | None = None) -> PromptDestination | None:
    """Return where the text goes as a prompt, None if it is none. `here`: the session of the topic (`in_topic`)."""
    target = session_of(text, known, here)
    is_aimed = text.reply_to is not None or here is not None
    for prompt in known.prompts:
        if _is_part(text, prompt, target, is_aimed=is_aimed):
            return ToPrompt(prompt.id)
    card = None if text.is_forwarded else armed_card(known.cards, text.user.id, text.at_s)
    if is_aimed:
        return None if target is None else _aimed(text, target, card, known)
    if text.group or text.thread_id:
        return None  # a text in the topic of another session or project is not meant for the card
    armed = None if card is None else _still(card.target, known)
    return None if card is None or armed is None else ToSession(armed, card.id, card.about)


def _aimed(text: Text, target: Target, card: Card | None, known: Sessions) -> ToSession:
    """Return where a text goes that is aimed at this session. `card`: it takes this person's next text, or None."""
    if card is None or not is_same(card.target, target):
        place = (text.chat_id, text.reply_to)
        asked = (one.about for one in known.cards if text.reply_to and (one.chat_id, one.typing) == place)
        return ToSession(target, about=next(asked, ""))
    if card.about and text.reply_to not in {None, card.typing}:
        return ToSession(target)  # it answers another message, not the question that is over
    return ToSession(target, card.id, card.about)


def session_of(text: Text, known: Sessions, here: Target | None = None) -> Target | None:
    """Return the session for which the message stands that this text replies to; `here` if it replies to none."""
    if text.reply_to is None:
        return here
    found = replied_to(text, known)
    return None if found is None else _still(found, known)


def replied_to(text: Text, known: Sessions) -> Target | None:
    """Return the session of the message that this text replies to as it was noted: it may take no prompts now."""
    for prompt in known.prompts:
        if prompt.line_place == (text.chat_id, text.reply_to) and prompt.target is not None:
            return prompt.target
    for card in known.cards:
        if card.chat_id == text.chat_id and text.reply_to in card.messages:
            return card.target
    for notice in known.notices:
        if (text.chat_id, text.reply_to) in notice.places:
            return _of_notice(notice)
    return None


def in_topic(topic: Topic, known: Sessions, armed: Card | None) -> Target | None:
    """Return the session to which a text in this topic goes; None if there is none, or if it takes no prompts.

    `armed` is the card that takes the person's next text: one of this topic, or one that they wished for in it. Without
    one, a text in the topic of a project goes to none of its sessions: the person may mean one that is not known here.
    """
    if armed is not None and (armed.armed_in == topic.thread_id or is_of(topic, armed.target.source)):
        return _still(armed.target, known)
    if not topic.about.session_id:
        return None
    mine = Target(topic.about, topic.agent_name, PromptAbilities())
    found = [(at_s, one) for at_s, one in _used(known) if is_same(one, mine)]
    return _still(max(found, key=lambda one: one[0])[1] if found else mine, known)


def armed_card(cards: Iterable[Card], user_id: int, at_s: float) -> Card | None:
    """Return the card that takes the next plain text of this user; of several, the one that was armed last."""
    armed = [card for card in cards if card.armed_for == user_id and abs(at_s - card.armed_s) < ARMED_S]
    return max(armed, key=lambda card: card.armed_s, default=None)


def offered(known: Sessions, first: Target | None = None) -> tuple[Target, ...]:
    """Return what to offer for a text without a target: `first`, if there is one, then the sessions used last.

    Behind them stands a new session in the project of the one that is nearest to the top and allows it.
    """
    used: dict[tuple[str, str, str], tuple[float, Target]] = {}
    for at_s, found in _used(known):
        target = _still(found, known)
        if target is None:
            continue
        key = target.source.session
        if target.source.session_id and used.get(key, (0.0, target))[0] <= at_s:
            used[key] = (at_s, target)
    newest = sorted(used.values(), key=lambda one: one[0], reverse=True)
    others = [target for _, target in newest if not is_same(target, first)]
    sessions = [*(() if first is None else (first,)), *others][:OFFERED]
    new = [beside(target) for target in sessions if makes_sessions(target)]
    return (*sessions, *[one for one in new[:1] if one not in sessions])


def makes_sessions(target: Target) -> bool:
    """Tell whether the agent of a session can begin another one in its project."""
    return target.can.makes_sessions and bool(target.source.directory)


def beside(target: Target) -> Target:
    """Return a session that is still to be made, in the project of this one."""
    return replace(target, source=replace(target.source, session_id="", session_title=""))


def target_of(source: Source, agent_name: str, known: Sessions) -> Target | None:
    """Return the session of an ask or a notice as a target; None if it takes no prompts from the phone."""
    if not may_write(source, known.abilities, known.projects):
        return None
    return Target(root_of(source), agent_name, known.abilities[source.agent])


def may_write(source: Source, abilities: Mapping[str, PromptAbilities], projects: tuple[str, ...]) -> bool:
    """Tell whether the phone may send prompts to this session; `abilities` are those of the agents by their names."""
    can = abilities.get(source.agent)
    return can is not None and is_in(source, projects) and not (source.session_id == can.no_session != "")


def is_in(source: Source, projects: tuple[str, ...]) -> bool:
    """Tell whether a session is in one of `projects` (`Source.is_in`); () is all of them, ("",) none."""
    return not projects or source.is_in(projects)


def moved(prompt: Prompt, server: str) -> Prompt:
    """Return the prompt for the process of its session at this server ("": without one). One that was tried stays."""
    target = prompt.target
    if target is None or not is_free(prompt):
        return prompt
    return replace(prompt, target=replace(target, source=replace(target.source, server=server)))


def refusal(source: Source, projects: tuple[str, ...] | None) -> str:
    """Return why the phone may no longer write to a session, "" if it may. `projects` as of `is_in`; None: to none."""
    is_allowed = projects is not None and is_in(source, projects)
    return "" if is_allowed else "this phone may no longer write to that project"


def is_same(one: Target | None, other: Target | None) -> bool:
    """Tell whether both are the same session, or none."""
    if one is None or other is None:
        return one is other
    return one.source.session == other.source.session


def _used(known: Sessions) -> Iterable[tuple[float, Target]]:
    for prompt in known.prompts:
        if prompt.target is not None:
            yield prompt.asked_s, prompt.target
    for card in known.cards:
        yield card.used_s, card.target
    for notice in known.notices:
        turn = notice.turn
        target = None if turn is None else target_of(turn.source, turn.agent_name, known)
        if target is not None:
            yield notice.heard_s, target


def _still(target: Target, known: Sessions) -> Target | None:
    """Return the session, None if the configuration no longer lets the phone write to it."""
    return target_of(target.source, target.agent_name, known)


def _of_notice(notice: Notice) -> Target | None:
    retry = notice.retry if notice.retry_shown is None else notice.retry_shown.retry
    about = notice.turn or retry
    return None if about is None else Target(about.source, about.agent_name, PromptAbilities())


def _is_part(text: Text, prompt: Prompt, target: Target | None, *, is_aimed: bool) -> bool:
    """Tell whether `text`, which replies to a message of `target`, is the next part of a prompt that still arrives.

    Each part of a split text, or of an album, replies to the same message (`is_aimed`), or stands in the same topic.
    The first part has no target if that message could be noted only after it, because the disk was full.
    """
    if prompt.target is not None and (text.is_forwarded or (is_aimed and not is_same(target, prompt.target))):
        return False
    last = prompt.parts[-1]
    if prompt.due_s is None or is_over(prompt) or prompt.user.id != text.user.id or prompt.chat_id != text.chat_id:
        return False
    if last.file is not None or text.file is not None:
        return text.album != "" and last.file is not None and last.file.album == text.album
    return bool(text.text) and follows(text, last)

"""Makes all parts of a listener from its configuration, and connects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.chat.tls import tls_context
from hermes.config.settings import AGENT_ONLY, Config, Questions
from hermes.core.answer_clock import AnswerableClock, AnswerTimes, Quiet
from hermes.errors import ConfigError
from hermes.hook import spool
from hermes.listener.agent.parts import AgentParts, agent_parts
from hermes.listener.background import Background
from hermes.listener.circumstances import Circumstances
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.ping import Pinger
from hermes.listener.store_watch import Locks, StoreWatch
from hermes.listener.workers import Step, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.listener.phone.parts import PhoneParts
    from hermes.listener.wakes import Worker
    from hermes.storage.store import Store


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a listener. `phone_side` is None if this machine is not the phone side now."""

    background: Background
    times: AnswerTimes
    entries: Entries
    kept: Kept
    phone_side: PhoneParts | None
    agent: AgentParts
    connected: dict[str, bool]
    steps: Steps
    watch: StoreWatch
    pinger: Pinger | None

    @property
    def phone(self) -> PhoneParts:
        """The parts of the phone side. Raises ConfigError where this machine is not the phone side."""
        if self.phone_side is None:
            raise ConfigError(AGENT_ONLY)
        return self.phone_side


async def make_parts(given: Circumstances, store: Store, locks: Locks) -> Parts:
    """Make the parts of a listener, whose `locks` are taken. Raises StoreError."""
    config, monotonic, machine = given.config, given.monotonic, spool.host()
    memory = Memory(store, await store.load_chat(config.telegram.bot_id)) if store.is_phone() else None
    background, times = Background(), _times(config.questions, memory, store, monotonic)
    entries = Entries(store, times, chat_id=0 if memory is None else memory.chat_id(config.telegram.chat_id))
    rules = config.notices.rules(has_prompts=config.prompts.enabled)
    kept = Kept(store, rules, entries.wakes)
    connected: dict[str, bool] = {}
    known = store.home.followed()
    if known is None:  # an earlier version kept it in the memory of the chat
        known = () if memory is None else memory.at.followed
    agent = agent_parts(config, entries, kept, known, background, connected, machine, monotonic)
    phone = None
    if memory is not None:
        from hermes.listener.phone.parts import phone_parts  # noqa: PLC0415 (the library of Telegram is large)

        phone = phone_parts(given, entries, kept, memory, times, background, connected, agent.ways)
    steps = Steps({**_agent_steps(agent), **({} if phone is None else _phone_steps(phone))}, entries.wakes)
    watch = StoreWatch(locks, entries, kept, agent.errands, phone)
    return Parts(background, times, entries, kept, phone, agent, connected, steps, watch, _pinger(config))


def _agent_steps(agent: AgentParts) -> dict[Worker, Step]:
    return {
        "errand": agent.errands.step,
        "prompt": agent.prompting.step,
        "session": agent.listing.serve,
        "list": agent.listing.list_all,
    }


def _phone_steps(phone: PhoneParts) -> dict[Worker, Step]:
    return {
        "phone": phone.posting.step,
        "join": phone.updates.join,
        "notice": phone.turn_notices.step,
        "line": phone.prompt_lines.step,
        "joining": phone.updates.join_prompt,
        "file": phone.downloads.step,
        "card": phone.cards.step,
        "listed": phone.cards.show_lists,
    }


def _times(questions: Questions, memory: Memory | None, store: Store, monotonic: Callable[[], float]) -> AnswerTimes:
    hours = questions.quiet_hours
    return AnswerTimes(
        AnswerableClock(0.0 if memory is None else memory.at.answerable_s, monotonic=monotonic),
        ttl_s=questions.ttl,
        remind_s=questions.remind_at,
        now=store.now,
        quiet=None if hours is None else Quiet(hours.start, hours.end, questions.zone),
        at_desk_s=questions.post_after,
        is_away=memory is not None and memory.at.is_away,
    )


def _pinger(config: Config) -> Pinger | None:
    telegram, url = config.phone, config.monitor.ping_url.get_secret_value()
    proxy = telegram.proxy.get_secret_value() if telegram and telegram.proxy else None
    ca_file = telegram.ca_file if telegram else None
    return Pinger(url, proxy=proxy, tls=tls_context(ca_file, proxy, url)) if url else None

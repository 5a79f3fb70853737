"""Makes all parts of a listener from its configuration, and connects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.agents.registry import PROMPT_ABILITIES
from hermes.chat.bot import tls_context
from hermes.core.answer_clock import AnswerableClock, AnswerTimes, Pace, Quiet
from hermes.hook import spool
from hermes.listener.agent.parts import AgentParts, Given as AgentGiven, agent_parts
from hermes.listener.background import Background
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.parts import Given, PhoneParts, phone_parts
from hermes.listener.ping import Pinger
from hermes.listener.sessions import SessionLists
from hermes.listener.store_watch import StoreWatch
from hermes.listener.workers import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.config.settings import Config, Questions
    from hermes.listener.sd_notify import Supervisor
    from hermes.listener.store_watch import Locks
    from hermes.storage.store import Store


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a listener is made with beside its store.

    `monotonic` is a clock that never jumps, in seconds; `rate_scale` 2 sends twice as fast as Telegram is known to take
    it.
    """

    config: Config
    supervisor: Supervisor
    monotonic: Callable[[], float]
    rate_scale: float


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a listener."""

    background: Background
    memory: Memory
    times: AnswerTimes
    entries: Entries
    kept: Kept
    phone: PhoneParts
    agent: AgentParts
    steps: Steps
    watch: StoreWatch
    pinger: Pinger | None


async def make_parts(given: Circumstances, store: Store, locks: Locks) -> Parts:
    """Make the parts of a listener, whose `locks` are taken. Raises StoreError."""
    config, monotonic, machine = given.config, given.monotonic, spool.host()
    background, memory = Background(), Memory(store, await store.load_chat(config.telegram.bot_id))
    times = _times(config.questions, memory, store, monotonic)
    entries = Entries(store, times, chat_id=memory.chat_id(config.telegram.chat_id))
    has_prompts = config.prompts.enabled
    rules = config.notices.rules(post_after_s=config.questions.post_after, has_prompts=has_prompts)
    kept, lists = Kept(store, rules, entries.wakes), SessionLists(entries.wakes)
    connected: dict[str, bool] = {}
    phone = phone_parts(
        config,
        Given(
            entries,
            kept,
            lists,
            memory,
            times,
            background,
            given.supervisor,
            connected,
            PROMPT_ABILITIES if has_prompts else {},
            machine,
            monotonic,
            rate_scale=given.rate_scale,
        ),
    )
    agent = agent_parts(
        config,
        AgentGiven(entries, kept, lists, memory.at.followed, background, connected, machine, monotonic),
    )
    steps = Steps(
        {
            "phone": phone.posting.step,
            "errand": agent.errands.step,
            "join": phone.updates.join,
            "notice": phone.turn_notices.step,
            "prompt": agent.prompting.step,
            "line": phone.prompt_lines.step,
            "joining": phone.updates.join_prompt,
            "card": phone.cards.step,
            "session": agent.listing.serve,
            "list": agent.listing.list_all,
            "listed": phone.cards.show_lists,
        },
        entries.wakes,
    )
    watch = StoreWatch(locks, entries, kept, agent.errands, memory, phone.messenger)
    return Parts(background, memory, times, entries, kept, phone, agent, steps, watch, _pinger(config))


def _times(questions: Questions, memory: Memory, store: Store, monotonic: Callable[[], float]) -> AnswerTimes:
    hours = questions.quiet_hours
    return AnswerTimes(
        AnswerableClock(memory.at.answerable_s, monotonic=monotonic),
        Pace(questions.ttl, questions.remind_at),
        now=store.now,
        quiet=None if hours is None else Quiet(hours.start, hours.end, questions.zone),
    )


def _pinger(config: Config) -> Pinger | None:
    telegram, url = config.telegram, config.monitor.ping_url.get_secret_value()
    proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
    return Pinger(url, proxy=proxy, tls=tls_context(telegram.ca_file, proxy, url)) if url else None

"""Makes the parts of the phone side from the configuration, and connects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from hermes.agents.prompting import HasPrompts
from hermes.agents.registry import PROMPT_ABILITIES
from hermes.chat.bot import Bot, always
from hermes.chat.outbox import Outbox
from hermes.chat.poll import Poller
from hermes.chat.screens.screen import Look
from hermes.config import logs
from hermes.config.settings import Config, Telegram
from hermes.core.answer_clock import AnswerTimes
from hermes.hook import spool
from hermes.listener.background import Background
from hermes.listener.circumstances import Circumstances
from hermes.listener.entries import Entries
from hermes.listener.kept import Kept
from hermes.listener.phone.chat_commands import Commands, Presence
from hermes.listener.phone.chat_link import ChatLink
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.downloads import Downloads
from hermes.listener.phone.file_requests import FileRequests
from hermes.listener.phone.late_answers import LateAnswers
from hermes.listener.phone.machines import Machines
from hermes.listener.phone.messenger import Messenger
from hermes.listener.phone.permission_queue import PermissionQueue
from hermes.listener.phone.phone import PhoneSide
from hermes.listener.phone.polling import Connection
from hermes.listener.phone.posting import Posting
from hermes.listener.phone.prompt_lines import PromptLines
from hermes.listener.phone.prompt_texts import PromptTexts
from hermes.listener.phone.session_cards import SessionCards
from hermes.listener.phone.taps import Taps
from hermes.listener.phone.texts import Texts
from hermes.listener.phone.timekeeper import Timekeeper, Upkeep
from hermes.listener.phone.topics import Topics
from hermes.listener.phone.transcribing import Transcriber
from hermes.listener.phone.turn_notices import TurnNotices
from hermes.listener.phone.updates import Updates
from hermes.model.prompt import PromptAbilities
from hermes.storage.prompt_files import PromptFolder


@dataclass(frozen=True, slots=True)
class PhoneParts:
    """The parts of the phone side."""

    bot: Bot
    outbox: Outbox
    messenger: Messenger
    link: ChatLink
    commands: Commands
    connection: Connection
    updates: Updates
    posting: Posting
    turn_notices: TurnNotices
    prompt_lines: PromptLines
    downloads: Downloads
    cards: SessionCards
    timekeeper: Timekeeper
    machines: Machines
    memory: Memory
    upkeep: Upkeep


def phone_parts(
    given: Circumstances,
    entries: Entries,
    kept: Kept,
    memory: Memory,
    times: AnswerTimes,
    background: Background,
    connected: Mapping[str, bool],
    ways: Mapping[str, HasPrompts],
) -> PhoneParts:
    """Make the parts of the phone side. `ways` lead to the agents of this machine."""
    config, monotonic = given.config, given.monotonic
    telegram, abilities = config.telegram, PROMPT_ABILITIES if config.prompts.enabled else {}
    look = look_of(config, abilities)
    bot = bot_of(telegram, may_call=entries.store.is_phone if entries.store.is_shared else always)
    outbox = Outbox(bot, rate_scale=given.rate_scale, now=monotonic)
    link, queue = ChatLink(entries, kept, memory), PermissionQueue(entries, look)
    messenger = Messenger(entries, outbox, background, link, machine=spool.host())
    topics = Topics(memory, outbox, messenger, background, telegram.topics, monotonic=monotonic)
    prompt_texts = PromptTexts(
        kept, outbox, messenger, topics, abilities, config.prompts.projects, hears=bool(config.prompts.transcribe)
    )
    cards = SessionCards(kept, entries, outbox, topics, look, background, messenger, prompt_texts)
    machines = Machines(entries.store, monotonic=monotonic)
    presence = Presence(memory, times, entries, kept.notices)
    private, remote = _own_files(given, entries), {server.name for server in config.opencode if not server.is_here}
    files = FileRequests(
        prompt_texts, entries, outbox, background, messenger, ways=ways, private=private, remote=remote
    )
    commands = Commands(entries, look, cards, machines, presence, files, messenger, connected=connected)
    late = LateAnswers(entries, prompt_texts, cards, outbox, look)
    turn_notices = TurnNotices(kept.notices, entries, outbox, topics, look, times, messenger)
    takers = (turn_notices, late, prompt_texts, cards)
    taps = Taps(entries, outbox, look, messenger, queue, kept, takers, has_prompts=bool(abilities))
    texts = Texts(entries, outbox, messenger, commands, prompt_texts, topics, kept)
    bot_id, users = telegram.bot_id, frozenset(telegram.users)
    phone = PhoneSide(entries, outbox, taps, texts, messenger, bot_id=bot_id, users=users)
    connection = Connection(entries, kept.prompts, messenger, memory, link, look, supervisor=given.supervisor)
    timekeeper = Timekeeper(entries, times, look, messenger, machines, memory)
    upkeep = Upkeep(
        entries,
        memory,
        times,
        timekeeper,
        connection,
        messenger,
        keep_done_s=config.store.keep_done,
        monotonic=monotonic,
    )
    poller, sounds = Poller(bot, connection.offset(), now=entries.now), PromptFolder(entries.store.home.root)
    hears = Transcriber(config.prompts.transcribe) if config.prompts.transcribe else None
    downloads = Downloads(
        kept.prompts, entries.store, sounds, bot, hears, config.prompts.writable, keep_s=config.store.keep_done
    )
    return PhoneParts(
        bot,
        outbox,
        messenger,
        link,
        commands,
        connection,
        Updates(poller, entries, kept.prompts, phone, connection, sleep=given.supervisor.pause),
        Posting(entries, outbox, topics, look, queue, times, link),
        turn_notices,
        PromptLines(kept.prompts, entries, outbox, topics, times, machines, messenger),
        downloads,
        cards,
        timekeeper,
        machines,
        memory,
        upkeep,
    )


def _own_files(given: Circumstances, entries: Entries) -> list[Path]:
    """Return the files and folders that are Hermes' own."""
    config = given.config
    own = [user_config_path("hermes"), entries.store.home.root, config.opencode2.file, *config.secret_files()]
    own += logs.files(config.log.file)
    return [*own, given.followed.place] if given.followed else own


def look_of(config: Config, prompted: Mapping[str, PromptAbilities]) -> Look:
    """Return how asks look on the phone; `prompted` are the agents that take prompts."""
    questions = config.questions
    return Look(
        tz=questions.zone,
        group=config.telegram.chat_id < 0,
        context_chars=questions.context_chars,
        on_expiry=questions.on_expiry,
        permission_expiry=config.permissions.on_expiry,
        remind_s=questions.remind_at,
        prompted=prompted,
        projects=config.prompts.projects,
    )


def bot_of(telegram: Telegram, *, may_call: Callable[[], bool] = always) -> Bot:
    """Return the bot of the configuration."""
    proxy = telegram.proxy.get_secret_value() if telegram.proxy else None
    return Bot(
        telegram.token.get_secret_value(),
        api_base=telegram.api_base,
        proxy=proxy,
        ca_file=telegram.ca_file,
        may_call=may_call,
    )

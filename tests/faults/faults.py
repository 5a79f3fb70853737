"""What can go wrong. A fault is begun, and lifted by what its beginning returned (None: nothing is left to lift).

Everything here is done to processes that this run started.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Final

from hermes.sandbox.botapi.serving import SpawnedBotApi
from tests.faults import enclosures, locking, surroundings, topics, words
from tests.faults.asks import token
from tests.faults.twins import Twins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.faults.asks import Json
    from tests.faults.round import Round

    Lift = Callable[[], None]

DAY_S: Final = 86400.0
LEFT_TO_THE_FIRST: Final = 3
WITHOUT_CONFIGURATION: Final = 2
AWAY: Final = {"configuration away", "configuration bad for a while"}
SHARED_S: Final = 3.0
"""Within this somebody has sent files, if they do so in this round."""
TAPS_LIVE_S: Final = 151.0
ENDINGS: Final = {
    "listener killed",
    "listener killed, started",
    "listener ended",
    "a text before its question",
    "a long text, cut in two",
    "an album in pieces",
    "a hostile environment",
    "host name changed",
    "configuration away",
}
DAMAGING: Final = {"entry damaged", "entry empty"}
JUMPS: Final = {"clock ahead", "clock back"}
METHODS: Final = ("*", "getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery", "getFile", "file")
"""The last one is a download."""
UNAVAILABLE: Final = "Bad Request: wrong file_id or the file is temporarily unavailable"
ROUTES: Final = (
    "*",
    "questions",
    "reply",
    "reject",
    "message",
    "messages",
    "status",
    "session",
    "all_sessions",
    "prompt",
    "abort",
    "config",
    "providers",
)


# --- Telegram -----------------------------------------------------------------------------------------------------


def _telegram(play: Round, action: str = "error", **fault: object) -> Lift:
    phone = play.world.stage.phone
    times = play.rng.randint(1, 4)
    methods = METHODS if play.world.topics == "off" else (*METHODS, "createForumTopic")
    phone.fault(play.rng.choice(methods), action, **{"times": times, **fault})  # type: ignore[arg-type]
    return phone.clear_faults


def _timed_out_but_sent(play: Round) -> Lift:
    phone = play.world.stage.phone
    phone.fault("sendMessage", "hang", hang_s=60, processed=True, times=play.rng.randint(1, 2))
    return phone.clear_faults


def _odd_update(play: Round) -> None:
    odd: list[Json] = [
        {"message": 5},
        {"callback_query": {"id": []}},
        {"message": {"date": "x"}},
        {"my_chat_member": {}},
        {},
    ]
    play.world.stage.phone.inject(play.rng.choice(odd))


def _again(play: Round) -> None:
    """Updates that were taken in come once more."""
    updates = [update for person in play.persons for update in person.updates]
    for update in play.rng.sample(updates, min(3, len(updates))):
        with contextlib.suppress(LookupError):
            play.world.stage.phone.redeliver(update)
    written = _shared(play)
    written += [one for talk in play.talks for letter in talk.letters for one in letter.ids[:1] if not letter.enclosed]
    for message_id in play.rng.sample(written, min(3, len(written))):
        play.world.stage.phone.repeat(message_id)


def _old_pages(play: Round) -> None:
    """Buttons of pages long gone are tapped."""
    pressed = [one for person in play.persons for one in person.pressed]
    for message_id, data in play.rng.sample(pressed, min(3, len(pressed))):
        with contextlib.suppress(LookupError):
            play.world.stage.phone.tap(message_id, data=data)


def _frozen_telegram(play: Round) -> None:
    telegram = play.world.stage.api
    assert isinstance(telegram, SpawnedBotApi)
    _frozen(telegram.process.pid, play.rng.uniform(0.1, 0.6))


def _download_cut(play: Round) -> Lift:
    phone = play.world.stage.phone
    phone.fault("file", "cut", times=play.rng.randint(1, 4))
    return phone.clear_faults


def _download_refused(play: Round) -> Lift:
    phone = play.world.stage.phone
    if play.rng.random() < 0.3:
        phone.fault("file", "html", status=502, times=play.rng.randint(1, 4))
    else:
        phone.fault("file", status=play.rng.choice([401, 404, 429, 500]), times=play.rng.randint(1, 4))
    return phone.clear_faults


def _get_file_refused(play: Round) -> Lift:
    phone = play.world.stage.phone
    fault: Json = play.rng.choice(
        [
            {"status": 500},
            {"status": 429, "retry_after_s": play.rng.randint(1, 5)},
            {"status": 400, "description": UNAVAILABLE},
        ]
    )
    phone.fault("getFile", times=play.rng.randint(1, 4), **fault)
    return phone.clear_faults


def _files_lost(play: Round) -> Lift:
    """Telegram no longer has files that were just sent, and were not downloaded yet; the person is told."""
    phone = play.world.stage.phone
    phone.fault("getFile", times=play.rng.randint(2, 6))
    play.meanwhile(lambda: bool(_shared(play)), SHARED_S)
    for message_id in _shared(play):
        phone.lose_files(message_id)
    return phone.clear_faults


def _shared(play: Round) -> list[int]:
    return [one for talk in play.talks for letter in talk.letters if letter.enclosed for one in letter.ids]


# --- Hermes -------------------------------------------------------------------------------------------------------


def _kill_listener(play: Round) -> Lift:
    play.world.signal_listeners(signal.SIGKILL)
    return play.world.start


def _restart_listener(play: Round) -> Lift:
    """Killed and started at once, while everything goes on."""
    play.world.signal_listeners(signal.SIGKILL)
    play.world.start()
    return play.world.start


def _end_listener(play: Round) -> Lift:
    play.world.signal_listeners(signal.SIGTERM)
    return play.world.start


def _freeze_listener(play: Round) -> Lift:
    play.world.signal_listeners(signal.SIGSTOP)
    return lambda: play.world.signal_listeners(signal.SIGCONT)


def _second_listener(play: Round) -> Lift:
    second = play.world.second()

    def lift() -> None:
        # One that still lives may have won: the first was killed, or is just starting.
        status = LEFT_TO_THE_FIRST if second.alive() else second.wait()
        without = {WITHOUT_CONFIGURATION} if AWAY & set(play.planned) else set()
        if status not in {LEFT_TO_THE_FIRST, -signal.SIGKILL, -signal.SIGTERM, 0, *without}:
            play.violations.append(f"a second listener left with {status}: {second.output()[-300:]}")

    return lift


def _freeze_hooks(play: Round) -> Lift:
    _signal_hooks(play, signal.SIGSTOP)
    return lambda: _signal_hooks(play, signal.SIGCONT)


def _signal_hooks(play: Round, number: signal.Signals) -> None:
    terminal = play.world.terminal
    for pid in [*terminal.hooks(), *terminal.runners()]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


# --- the agent ----------------------------------------------------------------------------------------------------


def _agent(play: Round, action: str, **fault: object) -> Lift:
    agent = play.agent()
    agent.do("fault", route=play.rng.choice(ROUTES), action=action, times=play.rng.randint(1, 6), **fault)
    return lambda: agent.do("clear_faults")


def _for_a_while(begin: Json, end: Json) -> Callable[[Round], Lift]:
    """Let one of the agents do something, and later something else."""

    def fault(play: Round) -> Lift:
        agent = play.agent()
        agent.do(**begin)
        return lambda: agent.do(**end)

    return fault


def _agent_lies(play: Round) -> Lift:
    agent = play.agent()
    agent.do("fault", route=play.rng.choice(["reply", "reject", "prompt"]), action="lie", times=play.rng.randint(1, 2))
    return lambda: agent.do("clear_faults")


def _agent_frozen(play: Round) -> None:
    _frozen(play.agent().pid, play.rng.uniform(0.1, 0.6))


def _agent_restarts(play: Round) -> None:
    """What was asked is gone; OpenCode 2 goes on by itself, and its model asks the same under another id."""
    agent = play.agent()
    again = agent.do("restart") or {}
    for person in play.persons:
        ask = person.ask
        if ask.route != "terminal" and ask.agent == agent.manner and ask.request_id:
            if ask.request_id in again:
                person.begin_again(again[ask.request_id])
            else:
                ask.ended_by.add("restarted")


def _disposed(play: Round) -> None:
    """A reload of the agent's configuration: what was asked is gone, and its part stays as it is."""
    agent = play.agent()
    for person in play.persons:
        ask = person.ask
        stays = ask.is_permission and agent.keeps_permissions
        if ask.route in {"server", "both"} and ask.agent == agent.manner and ask.request_id and not stays:
            ask.ended_by.add("disposed")
    agent.do("dispose", directory=play.world.directory)


def _twins(play: Round) -> None:
    leave = play.rng.random() < 0.5
    twins = Twins(token(play.number, "twin"), play.world.programs, play.world.stage.phone, leave)
    twins.ask()
    play.twins.append(twins)


def _events_late(play: Round) -> Lift:
    """Events are held back, and come in order, the last first, or not at all (then the stream breaks, as it would)."""
    agent = play.agent()
    agent.do("hold_events")
    how = play.rng.choice([{}, {"backwards": True}, {"lost": True}])

    def lift() -> None:
        agent.do("release_events", **how)
        if "lost" in how:
            agent.do("cut_events")

    return lift


def _prompts_late(play: Round) -> Lift:
    """The agent has accepted prompts, and writes them down after a while, or never."""
    agent = play.agent()
    agent.do("hold_prompts")
    lost = play.rng.random() < 0.4
    return lambda: agent.do("release_prompts", lost=lost)


# --- disk and clock -----------------------------------------------------------------------------------------------


def _disk_full(play: Round) -> Lift:
    play.no_hooks = True  # what a hook can't write down is said in the log, and its agent goes on: nothing to promise
    play.world.fill_disk()

    def lift() -> None:
        play.world.free_disk()
        play.no_hooks = False

    return lift


def _unwritable(name: str) -> Callable[[Round], Lift]:
    """A folder of the store takes and gives nothing up for a while."""

    def fault(play: Round) -> Lift:
        folder = play.world.stage.store / name

        def obey(mode: int) -> None:
            with contextlib.suppress(FileNotFoundError):  # it is not there yet, or the whole store was removed
                folder.chmod(mode)

        obey(0o500)
        return lambda: obey(0o700)

    return fault


def _planted(play: Round, content: bytes) -> None:
    name = "".join(play.rng.choices("abcdefghjkmnpqrstuvwxyz", k=8))
    play.world.plant(f"{name}.json", content)


def _damaged(play: Round) -> None:
    _planted(play, play.rng.randbytes(play.rng.randint(1, 300)))
    if not ENDINGS & set(play.planned):  # a listener knows what stood there, for as long as it lives
        play.world.tear()


def _frozen(pid: int, for_s: float) -> None:
    """Freeze a process that the driver itself talks to, for so long that nobody else can lift it."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(for_s)
    os.kill(pid, signal.SIGCONT)


FAMILIES: Final[Mapping[str, Mapping[str, Callable[[Round], Lift | None]]]] = {
    "Telegram": {
        "telegram 401": lambda play: _telegram(play, status=401),
        "telegram 404": lambda play: _telegram(play, status=404),
        "telegram 409": lambda play: _telegram(play, status=409),
        "telegram 429": lambda play: _telegram(play, status=429, retry_after_s=play.rng.randint(1, 5)),
        "telegram 500": lambda play: _telegram(play, status=500),
        "telegram 502, a page": lambda play: _telegram(play, "html", status=502),
        "telegram cut": lambda play: _telegram(play, "cut"),
        "telegram done, but cut": lambda play: _telegram(play, "cut_after"),
        "telegram sent, but timed out": _timed_out_but_sent,
        "telegram frozen": _frozen_telegram,
    },
    "files on their way": {
        "download cut": _download_cut,
        "download refused": _download_refused,
        "getFile refused": _get_file_refused,
        "files lost": _files_lost,
        "an album in pieces": words.album_in_pieces,
        "folder of files unwritable": _unwritable(enclosures.FOLDER),
    },
    "taps and updates": {
        "an odd update": _odd_update,
        "updates again": _again,
        "taps vanish": lambda play: play.world.stage.phone.advance(TAPS_LIVE_S),
        "taps on old pages": _old_pages,
    },
    "what people write": {
        "plain texts": words.plain_texts,
        "a text before its question": words.text_before_its_question,
        "another bot's code": words.another_bots_code,
        "a long text, cut in two": words.long_text_cut_in_two,
        "the phone locked": locking.phone_locked,
    },
    "Hermes' own processes": {
        "listener killed": _kill_listener,
        "listener killed, started": _restart_listener,
        "listener ended": _end_listener,
        "listener frozen": _freeze_listener,
        "a second listener": _second_listener,
        "hooks killed": lambda play: _signal_hooks(play, signal.SIGKILL),
        "hooks frozen": _freeze_hooks,
    },
    "the agent and its events": {
        "agent 500": lambda play: _agent(play, "error", status=play.rng.choice([500, 502, 503])),
        "agent lies": _agent_lies,
        "agent slow": lambda play: _agent(play, "slow", delay_s=play.rng.uniform(0.1, 1.5)),
        "agent cut": lambda play: _agent(play, play.rng.choice(["cut", "cut_after"])),
        "agent away": _for_a_while({"act": "away"}, {"act": "back"}),
        "agent frozen": _agent_frozen,
        "agent restarted": _agent_restarts,
        "events cut": lambda play: play.agent().do("cut_events"),
        "events doubled": _for_a_while({"act": "double_events", "on": True}, {"act": "double_events", "on": False}),
        "events late": _events_late,
        "tools end late": _for_a_while({"act": "hold_tools"}, {"act": "release_tools"}),
        "prompts kept late": _prompts_late,
        "instance disposed": _disposed,
        "identical calls": _twins,
    },
    "the disk": {
        "disk full": _disk_full,
        "folder unwritable": _unwritable("pending"),
        "entry damaged": _damaged,
        "entry empty": lambda play: _planted(play, b""),
        "entry of a newer version": lambda play: _planted(
            play, json.dumps({"v": 99, "entry": {"id": "future"}}).encode()
        ),
        "quarantine blocked": surroundings.no_quarantine,
        "folders in place of files": surroundings.folders_for_files,
    },
    "what is around Hermes": {
        "a hostile environment": surroundings.hostile_environment,
        "host name changed": surroundings.another_hostname,
        "store folder removed": surroundings.no_store,
        "socket removed": surroundings.no_socket,
        "configuration away": surroundings.no_configuration,
        "configuration bad for a while": surroundings.bad_configuration,
    },
    "the clock": {
        "clock ahead": lambda play: play.world.jump(play.rng.choice([60.0, 3600.0, 3 * DAY_S])),
        "clock back": lambda play: play.world.jump(-play.rng.choice([60.0, 3600.0, DAY_S])),
    },
    "topics": topics.FAULTS,
}
"""Every fault, by what it befalls."""
CATALOGUE: Final = {kind: begin for family in FAMILIES.values() for kind, begin in family.items()}
DOWNLOADS: Final = frozenset(FAMILIES["files on their way"])
"""Where these come somebody sends files."""
ALONE: Final = frozenset({"a hostile environment", "configuration away", "the phone locked"})
"""What these show is seen while they last, so that no other trouble may stand in the way then."""
MILD: Final = ("an odd update", "events doubled", "updates again", "taps on old pages")
WORDLESS: Final = frozenset({"plain texts", "a text before its question", "another bot's code"})
"""Where these are said nobody else writes: what is whose answer would be a riddle for people, too."""
LONELY: Final = frozenset({"a text before its question"})
"""Their own question is the only one: beside another one a text is nobody's answer anyway."""
IN_GROUPS: Final = frozenset({"another bot's code"}) | topics.IN_GROUPS

"""The whole way of a question: from the agent to the phone, and of a tap back to the agent."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hermes.agents.opencode.install import install
from hermes.sandbox.phone_values import ShownMessage
from tests.bench.agents import (
    OPENCODE,
    TITLE,
    WORDS,
    Agent,
    Answerable,
    Heard,
    RealOpenCode,
    ScriptedProcess,
    SecondProcess,
    followed,
    monotonic_s,
    real,
)
from tests.bench.figures import Effort, Figure, middle_ms, ms, paced, ratios
from tests.harness.processes import Proc, until
from tests.scenes.stage import Stage, staged

ASKED: Final = Figure(f"question.asked on the event stream → sendMessage, real OpenCode {OPENCODE}", "ms", 8.0)
REPLIED: Final = Figure(f"tap → question.replied on the event stream, real OpenCode {OPENCODE}", "ms")
BESIDE_FLOOR: Final = Figure("the same, against its floor", "×", 1.5)
REAL_TAP: Final = Figure(f"tap → answerCallbackQuery, real OpenCode {OPENCODE}", "ms", 4.0)
FLOOR: Final = Figure("the floor of that: a plain HTTP reply → question.replied, no Hermes on the way", "ms")
CALLS: Final = Figure("Bot API calls per single-choice question, polling aside", "calls", 3.0)
TAP: Final = Figure("tap → answerCallbackQuery, scripted agent server", "ms", 4.0)
WISHED: Final = Figure(f"permission.asked on the event stream → sendMessage, real OpenCode {OPENCODE}", "ms")
PERMITTED: Final = Figure(f"tap → permission.replied on the event stream, real OpenCode {OPENCODE}", "ms")
PERMISSIONS: Final = (WISHED, PERMITTED)
WITH_OPENCODE: Final = (ASKED, REAL_TAP, REPLIED, FLOOR, BESIDE_FLOOR, CALLS)
BARE_TAP: Final = Figure("the floor of that: the same library, polling and acknowledging, nothing else", "ms")
SCRIPTED: Final = (TAP, BARE_TAP)
PLUGIN_ASKED: Final = Figure("question.asked → sendMessage by the plugin, against the route by a server", "×", 1.5)
PLUGIN_REPLIED: Final = Figure("tap → question.replied by the plugin, against the route by a server", "×")
PLUGIN: Final = (PLUGIN_ASKED, PLUGIN_REPLIED)
SECOND_ASKED: Final = Figure("form.created on the event stream → sendMessage, stand-in for OpenCode 2", "ms")
SECOND_REPLIED: Final = Figure("tap → form.replied on the event stream, stand-in for OpenCode 2", "ms")
SECOND_FLOOR: Final = Figure("the floor of that: a plain HTTP reply → form.replied, no Hermes on the way", "ms")
SECOND: Final = (SECOND_ASKED, SECOND_REPLIED, SECOND_FLOOR)

QUIET_S: Final = 0.3
"""Nobody looks while it is measured: looking takes the processor that is needed."""


@dataclass(frozen=True, slots=True)
class Round:
    """One question from its asking to its end; seconds."""

    to_phone_s: float
    to_toast_s: float
    to_agent_s: float
    calls: Counter[str]
    with_context: bool


def with_opencode(effort: Effort, root: Path) -> list[Figure]:
    """Measure with a real OpenCode. Raises BinaryMissingError where there is none."""
    with real(root / "opencode") as agent:
        rounds, by_hand_s = _with_floor(agent, effort, root / "hermes")
    told = sum(one.with_context for one in rounds)
    kinds = sum((one.calls for one in rounds), Counter[str]())
    per_question = ", ".join(f"{name} {count / len(rounds):g}" for name, count in sorted(kinds.items()))
    return [
        ASKED.measured(*ms([one.to_phone_s for one in rounds]), note=f"with its context: {told} of {len(rounds)}"),
        REAL_TAP.measured(*ms([one.to_toast_s for one in rounds])),
        REPLIED.measured(*ms([one.to_agent_s for one in rounds])),
        FLOOR.measured(*ms(by_hand_s)),
        BESIDE_FLOOR.measured(*ratios([one.to_agent_s for one in rounds], by_hand_s)),
        CALLS.measured(*(float(one.calls.total()) for one in rounds), note=per_question),
    ]


def with_second(effort: Effort, root: Path) -> list[Figure]:
    """Measure with the stand-in for OpenCode 2."""
    with SecondProcess() as agent:
        rounds, by_hand_s = _with_floor(agent, effort, root)
    told = sum(one.with_context for one in rounds)
    waits = f"waits a second, because `run` cancels its own questions; with its context: {told} of {len(rounds)}"
    return [
        SECOND_ASKED.measured(*ms([one.to_phone_s for one in rounds]), note=waits),
        SECOND_REPLIED.measured(*ms([one.to_agent_s for one in rounds])),
        SECOND_FLOOR.measured(*ms(by_hand_s)),
    ]


def permissions(effort: Effort, root: Path) -> list[Figure]:
    """Measure what an agent asks leave for. Raises BinaryMissingError where there is no OpenCode."""
    with (
        real(root / "opencode") as agent,
        staged(root / "hermes", spawned=True) as stage,
        followed(agent, root / "follower") as heard,
    ):
        stage.servers.append({"name": "desk", "url": agent.url})
        stage.start(log={"level": "info", "file": str(stage.log)})
        took = []
        for number in range(effort.warm_up + effort.rounds):
            with paced(effort):
                took.append(_permitted(stage, agent, heard, f"echo round {number}"))
    to_phone_s, to_agent_s = zip(*took[effort.warm_up :], strict=True)
    return [WISHED.measured(*ms(list(to_phone_s))), PERMITTED.measured(*ms(list(to_agent_s)))]


def with_plugin(effort: Effort, root: Path) -> list[Figure]:
    """Measure two real OpenCodes by turns: one is a server of the listener, only its plugin tells of the other one."""
    took: dict[str, list[Round]] = {"server": [], "plugin": []}
    with staged(root / "hermes", spawned=True) as stage, real(root / "server") as server:
        stage.servers.append({"name": "desk", "url": server.url})
        stage.start(log={"level": "info", "file": str(stage.log)})
        with (
            real(root / "plugin", lambda home: stage.install(install, home.environ())) as plugged,
            followed(server, root / "at-server") as at_server,
            followed(plugged, root / "at-plugin") as at_plugin,
        ):
            for number in range(effort.warm_up + effort.rounds):
                for route, agent, heard in (("server", server, at_server), ("plugin", plugged, at_plugin)):
                    with paced(effort):
                        took[route].append(_round(stage, agent, heard, f"Round {number}, by {route}: which one?"))
    by_server, by_plugin = (rounds[effort.warm_up :] for rounds in took.values())
    return [
        _against(PLUGIN_ASKED, [one.to_phone_s for one in by_plugin], [one.to_phone_s for one in by_server]),
        _against(PLUGIN_REPLIED, [one.to_agent_s for one in by_plugin], [one.to_agent_s for one in by_server]),
    ]


def _against(figure: Figure, plugin_s: list[float], server_s: list[float]) -> Figure:
    note = f"plugin {middle_ms(plugin_s)}, server {middle_ms(server_s)}"
    return figure.measured(*ratios(plugin_s, server_s), note=note)


def _permitted(stage: Stage, agent: RealOpenCode, heard: Heard, command: str) -> tuple[float, float]:
    """Want to run a command, and let it: the seconds from the event to the phone, and from the tap to the event."""
    agent.wish(command)
    asked_s, request = heard.first(
        lambda told: told["type"] == "permission.asked" and told["properties"]["patterns"] == [command], command
    )
    time.sleep(QUIET_S)
    message = stage.asked(command)
    (sent,) = [call for call in stage.phone.calls("sendMessage") if command in call.params["text"]]
    tapped_s = monotonic_s(stage.phone.tap(message, "Allow once").at_s)
    time.sleep(QUIET_S)
    replied_s, _ = heard.first(
        lambda told: told["type"] == "permission.replied" and told["properties"]["requestID"] == request["id"], command
    )
    stage.wait_closed()
    return sent.at_s - asked_s, replied_s - tapped_s


def with_script(effort: Effort, root: Path) -> list[Figure]:
    """Measure with the scripted agent server: the listener's own part, with little else on the machine."""
    bare_s: list[float] = []
    with ScriptedProcess() as agent:
        rounds = _rounds(agent, effort, root, then=lambda stage: bare_s.extend(_bare(stage, effort)))
    return [TAP.measured(*ms([one.to_toast_s for one in rounds])), BARE_TAP.measured(*ms(bare_s))]


def _bare(stage: Stage, effort: Effort) -> list[float]:
    """Let a bot that does nothing else take the place of Hermes; the seconds from each tap to its acknowledgement."""
    stage.stop()
    told = {"TOKEN": stage.api.token, "API_BASE": stage.api.base_url, "CHAT_ID": str(stage.chat_id)}
    command = (sys.executable, str(Path(__file__).with_name("bare_bot.py")))
    with Proc(command, cwd=stage.root, environ={**stage.environ(), **told}, log_dir=stage.root / "logs", name="bare"):
        message = stage.asked("Tap me")
        took_s = [_acknowledged_s(stage, message) for _ in range(effort.warm_up + effort.rounds)]
    return took_s[effort.warm_up :]


def _acknowledged_s(stage: Stage, message: ShownMessage) -> float:
    """Tap, and return the seconds until the bot acknowledged it."""
    time.sleep(QUIET_S)
    tap = stage.phone.tap(message, "SQLite")
    tapped_s = monotonic_s(tap.at_s)
    time.sleep(QUIET_S)
    return _when(lambda: _answers(stage, tap.tap_id)) - tapped_s


def _rounds(
    agent: Agent,
    effort: Effort,
    root: Path,
    *,
    beside: Callable[[Stage, Heard, str], None] | None = None,
    then: Callable[[Stage], object] = lambda _: None,
) -> list[Round]:
    """Go through all rounds; after each, do what is measured `beside` it, by turns, and `then` the rest."""
    with staged(root) as stage, followed(agent, root / "follower") as heard:
        stage.servers.append({"name": "desk", "url": agent.url, "password": agent.password})
        stage.start(log={"level": "info", "file": str(stage.log)})
        rounds = []
        for number in range(effort.warm_up + effort.rounds):
            with paced(effort):
                rounds.append(_round(stage, agent, heard, f"Round {number}: which database?"))
            if beside is None:
                continue
            with paced(effort):
                beside(stage, heard, f"Round {number}, at the desk: which database?")
        then(stage)
    return rounds[effort.warm_up :]


def _with_floor(agent: Answerable, effort: Effort, root: Path) -> tuple[list[Round], list[float]]:
    """Go through all rounds, and by turns answer without Hermes: the rounds, and the seconds of the others."""
    by_hand_s: list[float] = []
    rounds = _rounds(
        agent,
        effort,
        root,
        beside=lambda stage, heard, text: by_hand_s.append(_answered_by_hand(stage, agent, heard, text)),
    )
    return rounds, by_hand_s[effort.warm_up :]


def _answered_by_hand(stage: Stage, agent: Answerable, heard: Heard, text: str) -> float:
    """Ask, answer without Hermes, and return the seconds until the agent told of it."""
    agent.ask(text)
    _, request_id = heard.asked(text)
    stage.asked(text)
    time.sleep(QUIET_S)
    left_s = agent.answer(request_id)
    time.sleep(QUIET_S)
    replied_s = heard.replied(request_id)
    stage.wait_closed()
    return replied_s - left_s


def _round(stage: Stage, agent: Agent, heard: Heard, text: str) -> Round:
    """Ask, tap, and wait until it is over; each leg by itself, with nobody looking meanwhile."""
    before = _calls(stage)
    agent.ask(text)
    asked_s, request_id = heard.asked(text)
    time.sleep(QUIET_S)
    message = stage.asked(text)
    (sent,) = [call for call in stage.phone.calls("sendMessage") if text in call.params["text"]]
    tap = stage.phone.tap(message, "SQLite")
    tapped_s = monotonic_s(tap.at_s)
    time.sleep(QUIET_S)
    answered_s = _when(lambda: _answers(stage, tap.tap_id))
    replied_s = heard.replied(request_id)
    stage.wait_closed()
    with_context = all(words in sent.params["text"] for words in (TITLE, WORDS))
    return Round(sent.at_s - asked_s, answered_s - tapped_s, replied_s - tapped_s, _calls(stage) - before, with_context)


def _answers(stage: Stage, tap_id: str) -> list[float]:
    found = stage.phone.calls("answerCallbackQuery")
    return [call.at_s for call in found if call.params["callback_query_id"] == tap_id]


def _when(look: Callable[[], list[float]]) -> float:
    return until(look, 20, "the acknowledgement")[0]


def _calls(stage: Stage) -> Counter[str]:
    counts = Counter(stage.phone.state().calls)
    del counts["getUpdates"]
    return counts

"""The way of a prompt: from the phone to the agent, and of the end of its turn back to the phone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hermes.sandbox.model_server import script
from tests.bench.agents import OPENCODE, Heard, RealOpenCode, followed, monotonic_s, real
from tests.bench.figures import Effort, Figure, ms, ratios
from tests.harness.processes import until
from tests.scenes.stage import staged

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenes.stage import Stage

CAME: Final = Figure(f"text on the phone → prompt on the event stream, real OpenCode {OPENCODE}", "ms")
CAME_FLOOR: Final = Figure("the floor of that: a plain HTTP prompt → the same event, no Hermes on the way", "ms")
CAME_BESIDE: Final = Figure("text on the phone → prompt, against its floor", "×")
ENDED: Final = Figure(f"session.idle on the event stream → sendMessage of the notice, real OpenCode {OPENCODE}", "ms")
ENDED_FLOOR: Final = Figure("the floor of that: a plain HTTP look at the session's messages", "ms")
ENDED_BESIDE: Final = Figure("the end of a turn → notice, against its floor", "×")
FIGURES: Final = (CAME, CAME_FLOOR, CAME_BESIDE, ENDED, ENDED_FLOOR, ENDED_BESIDE)
PART: Final = "message.part.updated"
IDLE: Final = "session.idle"
QUIET_S: Final = 0.5
"""Nobody looks while it is measured: looking takes the processor that is needed."""


def measure(effort: Effort, root: Path) -> list[Figure]:
    """Measure by turns from the desk and from the phone, at Telegram's pace. Raises BinaryMissingError."""
    came_s: list[float] = []
    by_hand_s: list[float] = []
    ended_s: list[float] = []
    read_s: list[float] = []
    with (
        real(root / "opencode") as agent,
        staged(root / "hermes", spawned=True) as stage,
        followed(agent, root / "follower", PART, IDLE) as heard,
    ):
        stage.servers.append({"name": "desk", "url": agent.url})
        log = {"level": "info", "file": str(stage.log)}
        stage.start(log=log, prompts={"enabled": True}, notices={"finished": "0s"})
        session = agent.begin()
        for number in range(effort.warm_up + effort.rounds):
            to_agent_s, to_phone_s = _by_hand(stage, agent, heard, session, f"desk {number}")
            by_hand_s.append(to_agent_s)
            ended_s.append(to_phone_s)
            read_s.append(agent.look(session))
            time.sleep(effort.pause_s)
            came_s.append(_prompted(stage, heard, f"phone {number}"))
            time.sleep(effort.pause_s)
    came_s, by_hand_s, ended_s, read_s = (one[effort.warm_up :] for one in (came_s, by_hand_s, ended_s, read_s))
    return [
        CAME.measured(*ms(came_s)),
        CAME_FLOOR.measured(*ms(by_hand_s)),
        CAME_BESIDE.measured(*ratios(came_s, by_hand_s)),
        ENDED.measured(*ms(ended_s)),
        ENDED_FLOOR.measured(*ms(read_s)),
        ENDED_BESIDE.measured(*ratios(ended_s, read_s)),
    ]


def _prompted(stage: Stage, heard: Heard, name: str) -> float:
    """Reply to the newest notice; the seconds from the text to the prompt. Its line and its notice follow."""
    text, words = _text(name)
    (message_id,) = stage.phone.write(text, reply_to=stage.phone.message_with("is done"))
    time.sleep(QUIET_S)
    came_s = _came(heard, text, name)
    _notice_s(stage, words)
    until(lambda: _is_done(stage, message_id), 60, f"the line of {name}")
    return came_s - monotonic_s(stage.phone.message(message_id).versions[0].at_s)


def _by_hand(stage: Stage, agent: RealOpenCode, heard: Heard, session: str, name: str) -> tuple[float, float]:
    """Send a prompt without Hermes; the seconds until the agent told of it, and from the turn's end to its notice."""
    text, words = _text(name)
    left_s = agent.send(session, text)
    time.sleep(QUIET_S)
    came_s = _came(heard, text, name)
    idle_s = heard.next(IDLE, came_s)
    return came_s - left_s, _notice_s(stage, words) - idle_s


def _came(heard: Heard, text: str, name: str) -> float:
    """Return when (monotonic) the agent told of this prompt."""
    return heard.first(lambda told: told["type"] == PART and told["properties"]["part"].get("text") == text, name)[0]


def _notice_s(stage: Stage, words: str) -> float:
    """Return when (monotonic) the notice with these last words was sent."""

    def found() -> list[float]:
        told = [call for call in stage.phone.calls("sendMessage") if "is done" in call.params["text"]]
        return [call.at_s for call in told if words in call.params["text"]]

    return until(found, 60, f"the notice of {words!r}")[0]


def _is_done(stage: Stage, message_id: int) -> bool:
    return any(one.reply_to == message_id and one.text.startswith("✅ Done") for one in stage.phone.shown())


def _text(name: str) -> tuple[str, str]:
    words = f"This was {name}."
    return script([{"text": words}], name.replace(" ", "-")), words

"""The short form of the suite: a few rounds that hold, and a Hermes broken on purpose that does not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.faults import hostname, opencode2
from tests.faults.faults import MILD
from tests.faults.playing import played
from tests.faults.round import SETTLING_S, STALLED, Round
from tests.faults.world import World, created

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.round import Outcome

ONE_AT_A_TIME: Final = pytest.mark.xdist_group("faults")
"""Worlds are many processes: one worker plays them all, one after another."""
SEED: Final = 966
NIGHTLY: Final = pytest.mark.nightly
MILD_SEED: Final = 6
MILD_ROUND: Final = 105
"""One question, answered by its person through its server."""
ALBUM_SETTLES_S: Final = 60.0
ALBUM_ROUND: Final = 36885
"""The same with a prompt, which is an album of pictures. They come at once: pieces may be late on a slow machine."""
OF_THE_ALBUM: Final = f"Q{ALBUM_ROUND}tk (plain, card)"
"""How each violation by that prompt begins: it has several lines, or lacks a file, if the machine is slow."""
OFTEN_BEGUN: Final = {
    "a listener that is killed": {"listener killed", "listener killed, started"},
    "hooks that are killed": {"hooks killed"},
    "a disk that refuses": {"disk full", "folder unwritable"},
    "Telegram in trouble": {"telegram done, but cut", "telegram sent, but timed out", "telegram 429"},
    "an agent in trouble": {"agent restarted", "agent lies", "agent away"},
    "a clock that jumps": {"clock ahead", "clock back"},
    "files that do not come": {"download cut", "download refused", "getFile refused"},
    "an album that comes in pieces": {"an album in pieces"},
}


def violations(outcomes: list[Outcome]) -> list[str]:
    """What went wrong in these rounds, with what plays them again."""
    return [f"seed {one.seed} round {one.number}: {violation}" for one in outcomes for violation in one.violations]


@NIGHTLY
@ONE_AT_A_TIME
@pytest.mark.timeout(1200)
def test_nothing_is_lost_in_ten_rounds_of_trouble() -> None:
    """Every law holds after each, and each family of faults was among them."""
    outcomes = played(SEED, range(10))
    assert violations(outcomes) == []
    begun = {kind for outcome in outcomes for kind in outcome.faults}
    assert {family for family, kinds in OFTEN_BEGUN.items() if not kinds & begun} == set(), "take another SEED"


NEWER: Final = {
    "plain texts": (9, 2),
    "a text before its question": (5, 1),
    "another bot's code": (5, 11),
    "a long text, cut in two": (5, 0),
    "instance disposed": (5, 1),
    "identical calls": (5, 0),
    "quarantine blocked": (5, 0),
    "folders in place of files": (5, 0),
    "a hostile environment": (5, 1),
    "host name changed": (9, 0),
    "store folder removed": (5, 0),
    "socket removed": (5, 0),
    "configuration away": (5, 0),
    "download refused": (5, 0),
    "an album in pieces": (5, 0),
}
"""Kinds of trouble with the seed and the round in which they found a defect; those of files found none so far."""


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", NEWER)
def test_nothing_is_lost_in_the_newer_kinds_of_trouble(kind: str) -> None:
    """One round of each, without any other trouble."""
    if kind == "host name changed" and not hostname.leave_the_machines():
        pytest.skip("only the superuser of Linux can have a host name of its own")
    seed, number = NEWER[kind]
    outcomes = played(seed, [number], kinds=[kind])
    assert violations(outcomes) == []
    assert {kind for outcome in outcomes for kind in outcome.faults} - {STALLED} == {kind}


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(1200)
def test_time_runs_out_rightly_in_trouble() -> None:
    """In a world where nobody answers in time an ask expires, and never too early.

    Where a gap leaves it more time than the driver waits for, the next round is played.
    """
    for seed, number in ((22, 43), (17, 40), (27, 43)):
        (outcome,) = played(seed, [number])
        assert violations([outcome]) == []
        if "expired" in outcome.ends:
            return
    pytest.fail("nothing ever expires")


@pytest.mark.nightly
def test_nothing_is_lost_with_the_real_one(opencode_version: str) -> None:
    """A round with a real OpenCode holds, too."""
    assert violations(played(3, [0], opencode_version)) == []


OF_THE_SECOND: Final = {"listener killed, started": 2, "agent restarted": 22, "instance disposed": 0, "events late": 3}
"""Kinds of trouble for two OpenCode 2, with a round of each."""


@pytest.mark.nightly
@ONE_AT_A_TIME
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", OF_THE_SECOND)
def test_nothing_is_lost_with_the_second_one(kind: str) -> None:
    """A stand-in of each shape: one is given by hand, one is found by its file."""
    (outcome,) = played(3, [OF_THE_SECOND[kind]], opencode2.VERSION, [kind])
    assert violations([outcome]) == []
    assert kind in outcome.faults


# --- a Hermes that is broken on purpose -----------------------------------------------------------------------------

BROKEN: Final = """
import sys
sys.argv = sys.argv[4:]  # behind the honest command line: python -I -m hermes
{}
from hermes.__main__ import main
main()
"""
ANSWERS_FOR_YOU: Final = """
from hermes.agents.opencode import adapter
adapter.answers = lambda ask, decision: tuple((question.options[0].label,) for question in ask.questions)
"""
BELIEVES_ITSELF: Final = """
from hermes.agents.opencode.client import OpenCodeServer
from hermes.model.verdicts import AnsweredWith
honestly_reply, honestly_judge, sent = OpenCodeServer.reply, OpenCodeServer.verdict, {}
async def reply(self, ask, answers):
    if sent:
        return await honestly_reply(self, ask, answers)
    sent[ask.source.request_id] = answers
async def verdict(self, ask):
    if ask.source.request_id in sent:
        return AnsweredWith(sent[ask.source.request_id])
    return await honestly_judge(self, ask)
OpenCodeServer.reply, OpenCodeServer.verdict = reply, verdict
"""
LEAVES_BUTTONS: Final = """
from hermes.chat.bot import Bot
honestly = Bot.edit
async def edit(self, chat_id, message_id, screen):
    if screen.rows:
        await honestly(self, chat_id, message_id, screen)
Bot.edit = edit
"""
FORGETS_A_FILE: Final = """
from dataclasses import replace
from hermes.agents.opencode.prompting import OpenCodePrompts
honestly = OpenCodePrompts.send
async def send(self, source, record_id, content):
    await honestly(self, source, record_id, replace(content, files=content.files[1:]))
OpenCodePrompts.send = send
"""
TEARS_ALBUMS: Final = """
from hermes.model.events import Text
Text.album = property(lambda text: "")
"""
KEEPS_FILES: Final = """
from hermes.storage.prompt_files import PromptFolder
async def remove(self, prompt_id):
    pass
PromptFolder.remove = remove
"""
TELLS_OF_FILES: Final = """
import logging
from hermes.storage.prompt_files import PromptFolder
honestly = PromptFolder.write
async def write(self, prompt_id, message_id, data):
    logging.getLogger("hermes").info("got %r", data[:60])
    await honestly(self, prompt_id, message_id, data)
PromptFolder.write = write
"""


@ONE_AT_A_TIME
@pytest.mark.parametrize(
    ("break_it", "said", "settling_s"),
    [
        pytest.param(ANSWERS_FOR_YOU, "its person meant", SETTLING_S, id="it answers for you"),
        # This one never comes to an end, and is waited for all the time.
        pytest.param(BELIEVES_ITSELF, "has no end; acknowledged: True", 75.0, marks=NIGHTLY, id="it believes itself"),
        pytest.param(LEAVES_BUTTONS, "still has buttons", SETTLING_S, marks=NIGHTLY, id="it leaves buttons"),
    ],
)
def test_a_broken_hermes_is_seen(break_it: str, said: str, settling_s: float, tmp_path: Path) -> None:
    """A real listener with one function replaced violates a law, and the round says so."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(break_it))
    with created(tmp_path / "world", prefix=(sys.executable, "-I", str(script))) as world:
        outcome = a_mild_round(world, settling_s).play()
    assert any(said in violation for violation in outcome.violations), outcome
    assert not any("the log says" in violation for violation in outcome.violations), outcome


@ONE_AT_A_TIME
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        pytest.param("", "", id="it is honest"),
        pytest.param(FORGETS_A_FILE, "of them right, and not the", marks=NIGHTLY, id="it forgets a file"),
        pytest.param(TEARS_ALBUMS, OF_THE_ALBUM, marks=NIGHTLY, id="it tears albums"),
        pytest.param(KEEPS_FILES, "is kept for no prompt", marks=NIGHTLY, id="it keeps files"),
        pytest.param(TELLS_OF_FILES, "the log has a piece of a file", marks=NIGHTLY, id="it tells of files"),
    ],
)
def test_a_hermes_that_is_careless_with_files_is_seen(break_it: str, said: str, tmp_path: Path) -> None:
    """Whatever it does with them."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(break_it))
    with created(tmp_path / "world", prefix=(sys.executable, "-I", str(script))) as world:
        outcome = a_mild_round(world, ALBUM_SETTLES_S, ALBUM_ROUND).play()
    assert any(said in violation for violation in outcome.violations) == bool(said), outcome
    assert said or not outcome.violations, outcome


def a_mild_round(world: World, settling_s: float, number: int = MILD_ROUND) -> Round:
    """Let one ask be answered, with little trouble; not for long, where it comes to nothing."""
    world.kinds = MILD
    return Round(world, MILD_SEED, number, settling_s=settling_s)

"""The line of a prompt: every phase, every button, and whatever an agent or a person writes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from hermes.chat.screens.buttons import decode
from hermes.chat.screens.hints import TORN
from hermes.chat.screens.prompts import prompt_line, title
from hermes.chat.screens.unseen import seen
from hermes.core import prompts
from hermes.core.prompt_files import MOST_BYTES
from hermes.core.prompts import STARTS_S
from hermes.model.actions import Address, Back, SendAgain, SendNow, StopTurn, Withdraw
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.prompt import Prompt, PromptAbilities, PromptPhase, StopPhase, Target
from hermes.model.state import Part
from tests.chat.screens import entries
from tests.chat.screens.entries import ANN, ASKED_S
from tests.chat.screens.show import shown
from tests.chat.screens.sound import assert_sound

CAN = PromptAbilities(("text", "note", "task", "command"), steers=True, stops=True, makes_sessions=True)
SOURCE = Source("opencode", "m1", "ses_1", "/home/dev/shop-api", session_title="Fix login flow", host="laptop")
TARGET = Target(SOURCE, "OpenCode", CAN)
PHASES: tuple[PromptPhase, ...] = get_args(PromptPhase)
STOPS: tuple[StopPhase, ...] = get_args(StopPhase)
OURS = re.compile(r"(?<!/)\b(desk|entry|ask|gone|route|callback|session expired|anew)\b", re.IGNORECASE)
FILES = replace(CAN, files=("picture", "pdf", "text"))
WHERE = "shop-api · Fix login flow · OpenCode on laptop"


def prompt(phase: PromptPhase = "queued", text: str = "Rename it", **more: Any) -> Prompt:
    """A prompt of 18:10."""
    made = Prompt("p1", ANN, 11, (Part(5, text),), ASKED_S, phase, target=TARGET, starts_until_s=ASKED_S + STARTS_S)
    return replace(made, **more)


PICTURE, VOICE = File("f1"), File("f2", is_voice=True)
TRIED: dict[str, Any] = {"tries": 1, "tried_s": ASKED_S, "began_s": ASKED_S}


@pytest.mark.parametrize(
    ("given_", "passed_s", "said"),
    [
        (prompt(), 1, "⏳ Waits for the current turn\n{}\n[ ▶️ Send now ]  [ ✖️ Cancel ]"),
        (prompt(parts=(Part(5, "", file=PICTURE),)), 1, "📥 Getting your file from Telegram\n{}\n[ ✖️ Cancel ]"),
        (
            prompt(parts=(Part(5, "", file=PICTURE), Part(6, "", file=PICTURE))),
            1,
            "📥 Getting 2 files from Telegram\n{}\n[ ✖️ Cancel ]",
        ),
        (prompt(parts=(Part(5, "", file=VOICE),)), 1, "🎤 Listening to your voice note\n{}\n[ ✖️ Cancel ]"),
        (
            prompt(parts=(Part(5, "Fix it", file=replace(VOICE, is_here=True)),)),
            1,
            "🎤 I heard: **Fix it** – shall I send that?\n{}\n[ ✅ Send ]  [ ✖️ Cancel ]",
        ),
        (
            prompt(parts=(Part(5, "Fix it", file=replace(VOICE, is_here=True)),)),
            1860,
            "⏳ Not sent yet, for 31 min. 🎤 I heard: **Fix it** – shall I send that?\n{}\n[ ✅ Send ]  [ ✖️ Cancel ]",
        ),
        (prompt(is_hurried=True), 1, "⏳ Waits for the current turn\n{}\n[ ✖️ Cancel ]"),
        (prompt(is_edited=True, is_hurried=True), 1, "⏳ Waits for the current turn · edited\n{}\n[ ✖️ Cancel ]"),
        (
            prompt(target=replace(TARGET, can=PromptAbilities())),
            1,
            "⏳ Waits for the current turn\n{}\n[ ✖️ Cancel ]",
        ),
        (prompt(), 1860, "⏳ Not sent yet, for 31 min. Send it now?\n{}\n[ ▶️ Send now ]  [ ✖️ Cancel ]"),
        (
            prompt(is_away=True),
            1,
            "💾 Saved. OpenCode on laptop can't be reached; it gets this as soon as it is back.\n{}\n[ ✖️ Cancel ]",
        ),
        (prompt(is_away=True), 1860, "⏳ Not sent yet, for 31 min. Send it now?\n{}\n[ ▶️ Send now ]  [ ✖️ Cancel ]"),
        (
            prompt("sending", is_away=True, tries=1),
            1,
            "💾 Saved. OpenCode on laptop can't be reached; it gets this as soon as it is back.\n{}",
        ),
        (prompt("sending", tries=1), 1, "📨 Sending\n{}"),
        (prompt("admitted", **TRIED), 1, "📨 Sent\n{}\n[ ⏹ Stop ]"),
        (prompt("running", **TRIED), 1, "▶️ Working\n{}\n[ ⏹ Stop ]"),
        (prompt("running", **TRIED, tool="bash"), 185, "▶️ Working · 3 min · bash\n{}\n[ ⏹ Stop ]"),
        (prompt("running", **TRIED, is_away=True), 1, "▶️ Working · can't be reached now\n{}\n[ ⏹ Stop ]"),
        (
            prompt("running", **TRIED, stop="sure"),
            1,
            "Stop the agent? It ends its turn here.\n{}\n[ Yes, stop ]  [ Back ]",
        ),
        (prompt("running", **TRIED, stop="asked"), 1, "⏹ Stopping …\n{}"),
        (prompt("running", **TRIED, stop="told"), 1, "▶️ Working · told to stop\n{}\n[ ⏹ Stop ]"),
        (prompt("running", **TRIED, stop="refused"), 1, "▶️ Working · it could not be stopped\n{}\n[ ⏹ Stop ]"),
        (prompt("finished", **TRIED, ended_s=ASKED_S + 300), 999, "✅ Done · 5 min\n{}"),
        (prompt("finished", **TRIED, ended_s=ASKED_S + 3), 999, "✅ Done\n{}"),
        (
            prompt("finished", "/note Mind the tests", **TRIED),
            1,
            "✅ Noted. The agent reads it with your next prompt.\n{}",
        ),
        (prompt("stopped", **TRIED, ended_s=ASKED_S + 300), 999, "⏹ Stopped · 5 min\n{}"),
        (
            prompt("failed", **TRIED, reason="the key was refused (401)"),
            1,
            "❌ the key was refused (401)\n{}\n[ 🔁 Send again ]",
        ),
        (prompt("failed", reason="no such agent"), 1, "❌ Not sent: no such agent\n{}\n[ 🔁 Send again ]"),
        (prompt("withdrawn"), 1, "✖️ Cancelled\n{}"),
        (prompt("withdrawn", reason=TORN), 1, "✖️ Cancelled: a part of it may be lost. Please send it again.\n{}"),
    ],
)
def test_each_phase_is_said_in_plain_words(given_: Prompt, passed_s: float, said: str) -> None:
    """With the buttons for what a person can do then, and the origin below."""
    assert shown(prompt_line(given_, ASKED_S + passed_s)) == said.format(WHERE)


PLAIN = replace(TARGET, can=PromptAbilities())
CLIP = File("f3", name="clip.mp4", mime="video/mp4")
LARGE = replace(PICTURE, size=MOST_BYTES + 1)


@pytest.mark.parametrize(
    "in_vain",
    [
        prompt("failed", "/run"),
        prompt("failed", "/run build `id`"),
        prompt("failed", "/run build", target=PLAIN),
        prompt("failed", parts=(Part(5, "", file=PICTURE),), target=PLAIN),
        prompt("failed", parts=(Part(5, "", file=LARGE),), target=replace(TARGET, can=FILES)),
        prompt("failed", parts=(Part(5, "", file=CLIP),), target=replace(TARGET, can=FILES)),
    ],
)
def test_a_prompt_that_would_fail_in_the_same_way_is_not_offered_again(in_vain: Prompt) -> None:
    """Its text lacks something, or its agent does not take that, or its files."""
    said = prompt_line(replace(in_vain, reason="it cannot be sent"), ASKED_S + 1)
    assert shown(said) == f"❌ Not sent: it cannot be sent\n{WHERE}"


@pytest.mark.parametrize(
    "hopeful",
    [
        prompt("failed", "/run build"),
        prompt("failed", parts=(Part(5, "", file=replace(PICTURE, is_here=True)),), target=replace(TARGET, can=FILES)),
        prompt("failed", parts=(Part(5, "Fix it", file=VOICE),), target=PLAIN),
        prompt("failed", due_s=ASKED_S + 2),
    ],
)
def test_a_prompt_that_may_be_taken_the_next_time_is_offered_again(hopeful: Prompt) -> None:
    """A command may be made at the computer, a model chosen that takes pictures, or a program be mended."""
    said = prompt_line(replace(hopeful, reason="not now"), ASKED_S + 1)
    assert shown(said) == f"❌ Not sent: not now\n{WHERE}\n[ 🔁 Send again ]"


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (prompt(), "⏳ Waits until the phone is unlocked\n{}\n[ ✖️ Cancel ]"),
        (prompt(is_edited=True), "⏳ Waits until the phone is unlocked · edited\n{}\n[ ✖️ Cancel ]"),
        (prompt(parts=(Part(5, "", file=PICTURE),)), "⏳ Waits until the phone is unlocked\n{}\n[ ✖️ Cancel ]"),
        (prompt(is_away=True), "⏳ Waits until the phone is unlocked\n{}\n[ ✖️ Cancel ]"),
        (prompt("sending", is_clear=True), "⏳ Waits until the phone is unlocked\n{}\n[ ✖️ Cancel ]"),
        (prompt("sending", is_clear=True, tries=1), "⏳ Waits until the phone is unlocked\n{}"),
    ],
)
def test_a_prompt_that_a_lock_holds_up_says_so(held: Prompt, said: str) -> None:
    """Also if something else has to happen before it is sent."""
    assert shown(prompt_line(held, ASKED_S + 1, is_locked=True)) == said.format(WHERE)


@pytest.mark.parametrize(
    ("other", "passed_s"),
    [
        (prompt(), 1860),
        (prompt(parts=(Part(5, "Fix it", file=replace(VOICE, is_here=True)),)), 1),
        (prompt("sending", tries=1), 1),
        (prompt("admitted", **TRIED), 1),
        (prompt("running", **TRIED), 1),
        (prompt("finished", **TRIED), 1),
        (prompt("withdrawn"), 1),
        (prompt("unaddressed", target=None, choices=(TARGET,)), 1),
    ],
)
def test_a_prompt_that_a_lock_does_not_hold_up_looks_as_without_one(other: Prompt, passed_s: float) -> None:
    """It is with the agent, or over, or waits for the person."""
    now_s = ASKED_S + passed_s
    assert prompt_line(other, now_s, is_locked=True) == prompt_line(other, now_s)


def test_the_choice_of_a_session() -> None:
    """One row a session; the way out is last, in a row of its own."""
    blog = replace(TARGET, source=replace(SOURCE, session_id="ses_2", session_title="Release 2.0"))
    fresh = replace(TARGET, source=replace(SOURCE, session_id="", session_title=""))
    asked = prompt("unaddressed", target=None, choices=(TARGET, blog, fresh))
    assert shown(prompt_line(asked, ASKED_S)) == (
        "What is this for?\n[ Fix login flow ]\n[ Release 2.0 ]\n[ New in shop-api ]\n[ Nothing ]"
    )
    assert (
        shown(prompt_line(replace(asked, phase="withdrawn", choices=()), ASKED_S)) == "All right, I send it to nobody"
    )
    torn = replace(asked, phase="withdrawn", choices=(), reason=TORN)
    assert shown(prompt_line(torn, ASKED_S)) == "✖️ Cancelled: a part of it may be lost. Please send it again."


def test_sessions_of_one_name_are_offered_with_their_projects() -> None:
    """A person could not tell them apart."""
    blog = replace(TARGET, source=replace(SOURCE, session_id="ses_2", directory="/home/dev/blog"))
    asked = prompt("unaddressed", target=None, choices=(TARGET, blog))
    labels = [row[0].text for row in prompt_line(asked, ASKED_S).rows]
    assert labels == ["Fix login flow · shop-api", "Fix login flow · blog", "Nothing"]
    again = replace(asked, choices=(TARGET, replace(TARGET, source=replace(SOURCE, session_id="ses_2"))))
    labels = [row[0].text for row in prompt_line(again, ASKED_S).rows]
    assert labels == ["1 Fix login flow", "2 Fix login flow", "Nothing"]


def test_sessions_of_two_agents_in_one_folder_are_offered_with_their_agents() -> None:
    """Neither has a title; a second one of an agent has a number beside that."""
    names = ("Claude Code", "oh-my-pi", "oh-my-pi")
    bare = [replace(SOURCE, session_title="", session_id=f"ses_{number}") for number in range(3)]
    choices = tuple(replace(TARGET, source=one, agent_name=name) for one, name in zip(bare, names, strict=True))
    asked = prompt("unaddressed", target=None, choices=choices[:2])
    labels = [row[0].text for row in prompt_line(asked, ASKED_S).rows]
    assert labels == ["shop-api · Claude Code", "shop-api · oh-my-pi", "Nothing"]
    labels = [row[0].text for row in prompt_line(replace(asked, choices=choices), ASKED_S).rows]
    assert labels == ["1 shop-api · Claude Code", "2 shop-api · oh-my-pi", "3 shop-api · oh-my-pi", "Nothing"]


@pytest.mark.parametrize(
    ("title", "labels"),
    [
        ("Fix login flow\u200b", ["Fix login flow · shop-api", "Fix login flow · blog", "Nothing"]),
        ("Nothing", ["Fix login flow · shop-api", "Nothing · blog", "Nothing"]),
    ],
)
def test_a_title_that_looks_like_another_button_is_told_apart(title: str, labels: list[str]) -> None:
    """Of another session, or the one for none: the text would go to a session that the person does not mean."""
    other = replace(TARGET, source=replace(SOURCE, session_id="ses_2", session_title=title, directory="/home/dev/blog"))
    asked = prompt("unaddressed", target=None, choices=(TARGET, other))
    drawn = [seen(row[0].text) for row in prompt_line(asked, ASKED_S).rows]
    assert drawn == labels
    bare = replace(asked, choices=(TARGET, replace(other, source=replace(other.source, directory=""))))
    drawn = [seen(row[0].text) for row in prompt_line(bare, ASKED_S).rows]
    assert len(set(drawn)) == 3


def test_a_session_without_a_title_is_named_by_its_folder() -> None:
    """On Windows, too."""
    for directory in ("/home/dev/shop/", "C:\\code\\shop"):
        bare = replace(TARGET, source=replace(SOURCE, session_title="", directory=directory))
        assert title(bare).text == "shop"


def test_the_folder_of_a_session_is_named_once() -> None:
    """Its name may be that of the session, too; or it is too long for the line."""
    long, cut = "x" * 50, f"{'x' * 39}…"
    for folder, named, said in (("shop", "", "shop"), ("shop", "shop", "shop"), (long, "", cut)):
        source = replace(SOURCE, session_title=named, directory=f"/home/dev/{folder}")
        drawn = shown(prompt_line(prompt("finished", target=replace(TARGET, source=source)), ASKED_S))
        assert drawn == f"✅ Done\n{said} · OpenCode on laptop"


def test_a_session_without_a_visible_name_can_be_chosen() -> None:
    """Telegram takes no empty button."""
    bare = replace(TARGET, source=replace(SOURCE, session_title="\u200b", directory="/"))
    asked = prompt("unaddressed", target=None, choices=(bare,))
    assert all(button.text.strip() for row in prompt_line(asked, ASKED_S).rows for button in row)


def test_each_button_does_what_it_says() -> None:
    """The data names the prompt, and no page: an old button means the same."""

    def does(one: Prompt, passed_s: float = 1.0) -> list[tuple[str, object]]:
        rows = prompt_line(one, ASKED_S + passed_s).rows
        return [(decode(button.data)[0], decode(button.data)[2]) for row in rows for button in row]

    assert does(prompt()) == [("p1", SendNow()), ("p1", Withdraw())]
    assert does(prompt("running", **TRIED)) == [("p1", StopTurn())]
    assert does(prompt("running", **TRIED, stop="sure")) == [("p1", StopTurn(is_sure=True)), ("p1", Back())]
    assert does(prompt("failed", **TRIED)) == [("p1", SendAgain())]
    assert does(prompt("unaddressed", target=None, choices=(TARGET,))) == [("p1", Address(0)), ("p1", Withdraw())]


abilities = st.builds(
    PromptAbilities,
    st.lists(st.sampled_from(("text", "note", "task", "command")), max_size=4).map(tuple),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
targets = st.builds(Target, entries.sources, entries.wild, abilities)
times = st.none() | entries.moments


@st.composite
def hostile(draw: st.DrawFn) -> Prompt:
    """A prompt with whatever can be in one."""
    phase: PromptPhase = draw(st.sampled_from(PHASES))
    target = draw(targets) if phase != "unaddressed" else draw(st.none() | targets)
    if phase == "withdrawn":
        target = draw(st.none() | targets)
    return prompt(
        phase,
        "a text" if phase == "finished" else draw(entries.wild),
        target=target,
        choices=tuple(draw(st.lists(targets, max_size=3))),
        is_edited=draw(st.booleans()),
        is_hurried=draw(st.booleans()),
        is_away=draw(st.booleans()),
        tries=draw(st.integers(0, 3)),
        began_s=draw(times),
        ended_s=draw(times),
        tool=draw(entries.wild),
        reason=draw(entries.wild | entries.wild.map(lambda text: text * 40)),
        stop=draw(st.sampled_from(STOPS)),
        starts_until_s=draw(entries.moments),
    )


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(hostile(), entries.moments, st.booleans())
def test_every_line_is_within_telegrams_limits(one: Prompt, now_s: float, is_locked: bool) -> None:
    """Whatever is in it; nothing of it becomes a link, a command or a mention."""
    screen = prompt_line(one, now_s, is_locked=is_locked)
    assert_sound(screen)
    for row in screen.rows:
        for button in row:
            assert decode(button.data)[0] == "p1"
            assert button.text.strip()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PHASES), st.sampled_from(STOPS), st.booleans(), st.integers(0, 1), entries.moments)
def test_our_own_words_are_plain(phase: PromptPhase, stop: StopPhase, is_away: bool, tries: int, now_s: float) -> None:
    """No word of the house reaches the phone."""
    one = prompt(phase, stop=stop, is_away=is_away, tries=tries, reason="x", tool="bash")
    if phase == "unaddressed":
        one = replace(one, target=None, choices=(TARGET,))
    screen = prompt_line(one, now_s)
    said = " ".join([screen.text, *(button.text for row in screen.rows for button in row)])
    assert not OURS.search(said), said
    assert not prompts.is_over(one) or not any(
        isinstance(decode(button.data)[2], Withdraw | SendNow | StopTurn) for row in screen.rows for button in row
    )

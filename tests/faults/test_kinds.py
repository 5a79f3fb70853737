"""What the newer kinds of trouble are made of, and their laws: each is seen to fail on a made-up violation."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.sandbox.botapi import running_botapi
from hermes.sandbox.botapi.world import Chat, User
from hermes.sandbox.phone_values import Button, Version
from tests.agents.speaking import SPEAKING
from tests.at_once import at_once
from tests.faults import hostname, laws
from tests.faults.asks import Ask, token
from tests.faults.faults import ALONE, CATALOGUE, ENDINGS, IN_GROUPS, LONELY, MILD, WORDLESS
from tests.faults.person import PART
from tests.faults.programs import NAMES, Programs
from tests.faults.round import SPOILT, may_leave
from tests.faults.test_laws import a_message, a_person, a_view, an_ask, told
from tests.faults.trap import trapping
from tests.faults.twins import ALLOW, Twins
from tests.faults.words import CODE
from tests.harness.processes import until
from tests.stores import a_store

if TYPE_CHECKING:
    from pathlib import Path

ANSWERING = """
import json, sys, time
payload = json.loads(sys.stdin.readline())
name, say = sys.argv[1], sys.argv[2]
if payload.get("hook_event_name") == "PostToolUse" or say == "nothing":
    sys.exit()
if say == "wait":
    time.sleep(60)
if say == "allow":
    given = payload["tool_input"]
    given["answers"] = {one["question"]: one["options"][0]["label"] for one in given.get("questions", [])}
    print(json.dumps({"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": given}}}), flush=True)
elif say == "refused":
    print(json.dumps({"kind": "refused", "error": "nobody is there"}), flush=True)
else:
    print(json.dumps({"kind": "answer", "answers": [[say]]}), flush=True)
"""
"""A hook that prints at once what its second argument says."""


def programs(tmp_path: Path, say: str) -> Programs:
    """Return agents whose hooks say this."""
    return Programs([sys.executable, "-I", "-S", "-c", ANSWERING], [say], {}, tmp_path, "/home/dev/project")


# --- the laws -------------------------------------------------------------------------------------------------------


def test_no_code_of_another_ask_holds_a_token(tmp_path: Path) -> None:
    """Its message would count as one of that ask, too."""
    store = a_store(tmp_path / "store", now=lambda: 1000.0)
    codes = "".join(at_once(store.new_code([])) for _ in range(200))
    assert not set(token(3, "y")) <= set(codes)


def test_a_request_to_the_trap_is_a_violation_without_its_token() -> None:
    """Whatever was said to it, and also where it was only spoken to as a proxy."""
    with trapping() as trap:
        told(laws.trapped(trap.heard), "")
        with pytest.raises(httpx.HTTPError):
            httpx.post(f"{trap.url}/bot1:secret/getMe", timeout=10)
        until(lambda: trap.heard, 10, "a request in the trap")
        (violation,) = laws.trapped(trap.heard)
    assert "POST" in violation
    assert "secret" not in violation


def test_to_delete_what_another_one_sent_is_a_violation() -> None:
    """Also where Telegram refuses."""
    with running_botapi(chats=(Chat(-1_002_000_000_001, "Team"),)) as api:
        (theirs,) = api.phone.write("keep this")
        own = httpx.post(
            f"{api.base_url}/bot{api.token}/sendMessage", json={"chat_id": api.phone.state().default_chat, "text": "x"}
        )
        delete = f"{api.base_url}/bot{api.token}/deleteMessage"
        chat = own.json()["result"]["chat"]["id"]
        httpx.post(delete, json={"chat_id": chat, "message_id": own.json()["result"]["message_id"]})
        told(laws.foreign_deletions(api.phone), "")
        httpx.post(delete, json={"chat_id": chat, "message_id": theirs})
        told(laws.foreign_deletions(api.phone), f"delete message {theirs}")


def test_what_another_bot_says_is_seen_by_no_bot() -> None:
    """But a reply to it is, with what it replies to."""
    other = User(2002, "@deploy_bot", is_bot=True)
    with running_botapi(users=(User(1001), other), chats=(Chat(-1_002_000_000_001),), privacy_mode=False) as api:
        (said,) = api.phone.write("done\n#k7x2q", user=other.id)
        api.phone.write("fine", reply_to=said)
        updates = httpx.post(f"{api.base_url}/bot{api.token}/getUpdates", json={"timeout": 0}).json()["result"]
    (update,) = updates
    assert update["message"]["reply_to_message"]["from"]["is_bot"]
    assert CODE.search(update["message"]["reply_to_message"]["text"])


def test_a_question_that_was_asked_twice_is_a_violation() -> None:
    """A message beside it, or one that never had buttons, is no second question."""
    rows = ((Button("q1w1a"),),)
    asked = a_message("✅ q1w: q1w1a", versions=(Version("q1w", (), rows, 0.0),))
    beside = a_message("Your answer to q1w was sent")
    told(laws.shown_once(an_ask(), a_view(asked, beside)), "")
    told(laws.shown_once(an_ask(), a_view(asked, replace(asked, message_id=8))), "was asked 2 times")


def test_a_long_answer_is_told_by_its_ends() -> None:
    """A violation of 7,000 letters can be read."""
    ask = an_ask("reply", long=7000)
    (violation,) = laws.effects(a_person(ask), [((ask.text[:PART],),)])
    assert len(violation) < 1000
    assert "its person meant" in violation


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_every_kind_that_is_spoken_of_is_there() -> None:
    """A misspelt one would never be left out, nor be alone."""
    assert {*ALONE, *ENDINGS, *IN_GROUPS, *LONELY, *MILD, *WORDLESS, SPOILT} <= CATALOGUE.keys()


@pytest.mark.parametrize(
    ("kinds", "may"),
    [
        ({SPOILT, "host name changed"}, True),
        ({SPOILT, "telegram frozen"}, False),
        ({"host name changed"}, False),
        ({"configuration away"}, True),
    ],
)
def test_a_hook_may_leave_only_if_no_listener_can_hear_it(kinds: set[str], may: bool) -> None:
    """One that runs goes on without its configuration; one that ended cannot start again."""
    assert may_leave(kinds) is may


def test_a_host_name_of_ones_own_is_not_the_machines() -> None:
    """Without it, nothing is changed."""
    if not hostname.leave_the_machines():
        with pytest.raises(AssertionError):
            hostname.change("mine")
        return
    usual = socket.gethostname()
    hostname.change("mine")
    assert socket.gethostname() == "mine"
    hostname.change(usual)


# --- people ---------------------------------------------------------------------------------------------------------


class Pen:
    """Notes what is written, and what it replies to."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, int | None]] = []

    def tap(self, message: Any, label: str, *, times: int) -> Any:
        raise AssertionError(f"nobody taps {label!r} here")

    def write(self, text: str, *, reply_to: Any = None, thread_id: Any = None) -> tuple[int, ...]:
        self.texts.append((text, reply_to and reply_to.message_id))
        return (100 + len(self.texts),)


def test_a_long_text_goes_in_parts_and_something_happens_between_them() -> None:
    """The parts together are the text, and both reply to the question."""
    pen, happened = Pen(), []
    ask = an_ask("reply", long=6000)
    person = a_person(ask)
    person.fingers, person.between = pen, lambda: happened.append(len(pen.texts))
    view = a_view(a_message("q1w: which?", rows=((Button("q1w1a"),),)))

    def wrote_both() -> bool:
        person.step(view)
        return len(pen.texts) == 2

    until(wrote_both, 10, "both parts")
    assert "".join(text for text, _ in pen.texts) == ask.text
    assert {to for _, to in pen.texts} == {7}
    assert happened == [1]


# --- agents with hooks of their own -----------------------------------------------------------------------------------


def test_a_printed_answer_is_its_asks_effect(tmp_path: Path) -> None:
    """Until it is printed, nothing came of the ask."""
    agents = programs(tmp_path, "q1w1b")
    ask = Ask("q1w", "single", "program", "generic")
    agents.ask(ask)
    until(lambda: agents.came_of(ask.request_id), 30, "the answer")
    assert agents.came_of(ask.request_id) == [ask.wanted]
    agents.forget(ask.request_id)
    agents.close()


@pytest.mark.parametrize("back_s", [0.0, 100.0])
def test_an_agent_that_tells_late_is_known(back_s: float, tmp_path: Path) -> None:
    """Hermes waits for its word for a while only, and cannot know whether it took the answer."""
    agents = programs(tmp_path, "allow")
    ask = Ask("q1w", "single", "program", "claude-code")
    agents.ask(ask)
    until(lambda: agents.came_of(ask.request_id), 30, "the answer")
    waiting = agents.asks[ask.request_id]
    printed_s = waiting.out.stat().st_mtime - back_s
    os.utime(waiting.out, (printed_s, printed_s))

    def handed_over() -> bool:
        agents.step()
        return agents.idle

    until(handed_over, 30, "the word")
    assert waiting.told
    assert back_s < waiting.late_s < back_s + 90.0
    agents.close()


@pytest.mark.parametrize("say", ["nothing", "refused"])
def test_a_hook_that_leaves_without_an_answer_has_no_effect(say: str, tmp_path: Path) -> None:
    """Neither has a word that nothing could be asked."""
    agents = programs(tmp_path, say)
    ask = Ask("q1w", "single", "program", "generic")
    agents.ask(ask)
    waiting = agents.asks[ask.request_id]
    until(lambda: not waiting.alive, 30, "the end of the hook")
    assert agents.came_of(ask.request_id) == []
    agents.close()


def test_every_agent_with_hooks_of_its_own_is_spoken(tmp_path: Path) -> None:
    """Their ways are known."""
    assert set(NAMES) <= set(SPEAKING)


class Thumb:
    """Says yes to what is shown."""

    def __init__(self) -> None:
        self.taps = 0

    def tap(self, _: Any, label: str) -> None:
        assert label == ALLOW
        self.taps += 1


def twins(agents: Programs) -> Twins:
    """Return two calls that ask leave for the same."""
    pair = Twins("q1twin", agents, Thumb(), asks_leave=True)  # type: ignore[arg-type]
    pair.ask()
    return pair


def test_twins_that_were_both_answered_are_over(tmp_path: Path) -> None:
    """Each tells what it did, and nothing is wrong."""
    agents = programs(tmp_path, "allow")
    pair = twins(agents)

    def answered() -> bool:
        pair.step(a_view())
        return pair.is_over

    until(answered, 30, "both")
    assert list(pair.violations()) == []
    agents.close()


def test_a_twin_that_waits_or_left_without_a_word_is_a_violation(tmp_path: Path) -> None:
    """It says which of the two it was."""
    for say, state in (("wait", "waits"), ("nothing", "has left")):
        agents = programs(tmp_path, say)
        pair = twins(agents)
        if say == "nothing":
            until(lambda: not any(one.alive for one in agents.asks.values()), 30, "their end")  # noqa: B023 (at once)
        assert not pair.is_over
        assert [state in violation for violation in pair.violations()] == [True, True]
        agents.close()

"""Notices on the phone: turns that hooks and servers tell of, restarts, quiet hours, and a full disk."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hermes.hook import spool
from hermes.listener.notices import Notices
from hermes.model.ask import Source
from hermes.model.notice import Notice, Retry, Turn
from hermes.model.signals import Busy, Quiet, Retrying, TurnBegan, TurnEnded
from tests.agents.speaking import CLAUDE_CODE, SINGLE
from tests.harness.folders import remove
from tests.listener.gates import unsaved
from tests.listening import House, a_request, house, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.sandbox.phone_values import ShownMessage

home = house(sections={"opencode2": {"enabled": False}})
WORDS = "Both tests pass now."


class Claude:
    """What the hooks of one session of Claude Code hand over; `at_s` of the records follows the clock of the house."""

    def __init__(self, home: House, session: str = "ses_1") -> None:
        self.home = home
        self.session = session

    def tell(self, event: str, prompt: str, **more: Any) -> None:
        """Let a hook bring this event."""
        payload = {"hook_event_name": event, "session_id": self.session, "prompt_id": prompt, "cwd": "/home/dev/shop"}
        record = spool.record("claude-code", payload | more) | {"at": self.home.clock.now(), "host": "laptop"}
        spool.drop(self.home.store, record)
        spool.nudge(self.home.store)

    async def works(self, prompt: str, seconds: float, **more: Any) -> None:
        """Let a turn begin, last that long, and end."""
        self.tell("UserPromptSubmit", prompt)
        await self.begun(prompt)
        self.home.clock.advance(seconds)
        self.tell("Stop", prompt, **{"last_assistant_message": WORDS} | more)

    def notice(self) -> Notice | None:
        """What is kept of the session."""
        known = self.home.listener._parts.kept.notices._known.values()
        return next((one for one in known if one.session_id == self.session), None)

    def looks(self) -> None:
        """Let the worker look at the notice."""
        notice = self.notice()
        assert notice is not None
        self.home.listener._parts.steps.kick("notice", notice.id)

    async def begun(self, prompt: str) -> None:
        """Wait until the beginning of this turn is kept."""

        def known() -> bool:
            notice = self.notice()
            return notice is not None and any(one.turn_id == prompt for one in notice.begun)

        await until(known, "the turn's beginning")

    async def phase(self, phase: str) -> None:
        """Wait until its notice is in this phase."""
        await until(
            lambda: (notice := self.notice()) is not None and notice.phase == phase, f"a notice that is {phase}"
        )


def finished(home: House) -> list[ShownMessage]:
    """All notices on the phone."""
    return [one for one in home.person.shown() if " is done" in one.text]


@pytest.fixture
async def claude(home: House) -> Claude:
    """A session, and a listener that runs."""
    await home.start()
    return Claude(home)


async def test_a_long_turn_is_told_once(claude: Claude, home: House) -> None:
    """It rings. A second hook that says the same, and a restart, change nothing."""
    await claude.works("p1", 300.0)
    shown = await home.person.sees("✅ shop is done · 5 min")
    assert WORDS in shown.text
    assert "Claude Code on laptop" in shown.text
    assert not shown.silent
    await claude.phase("posted")
    claude.tell("Stop", "p1", last_assistant_message="Once more.")
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    await home.stop()
    await home.start()
    await home.polled()
    assert len(finished(home)) == 1


async def test_a_short_turn_is_not_told(claude: Claude, home: House) -> None:
    """A longer one after it is."""
    await claude.works("p1", 100.0)
    await claude.phase("dropped")
    await claude.works("p2", 121.0)
    await home.person.sees("shop is done · 2 min")
    assert len(finished(home)) == 1


async def test_a_turn_that_failed_is_told_with_its_reason(claude: Claude, home: House) -> None:
    """The program's own words."""
    claude.tell("UserPromptSubmit", "p1")
    await claude.begun("p1")
    home.clock.advance(300.0)
    claude.tell("StopFailure", "p1", error="unknown", last_assistant_message="API Error: 401 the key was refused")
    await home.person.sees("❌ shop stopped: API Error: 401 the key was refused · 5 min")


async def test_a_turn_over_a_restart_is_as_long_as_it_was(claude: Claude, home: House) -> None:
    """Its beginning is on disk."""
    claude.tell("UserPromptSubmit", "p1")
    await claude.begun("p1")
    await home.stop()
    home.clock.advance(600.0)
    claude.tell("Stop", "p1", last_assistant_message=WORDS)
    await home.start()
    await home.person.sees("shop is done · 10 min")


async def test_a_turn_ends_the_asks_of_its_session(claude: Claude, home: House) -> None:
    """As before there were notices."""
    payload = CLAUDE_CODE.ask([dict(SINGLE)]) | {"id": "0011223344556677", "session_id": "ses_1"}
    with home.waiting("0011223344556677", "claude-code"):
        spool.drop(home.store, spool.record("claude-code", payload))
        spool.nudge(home.store)
        await home.person.sees("Which", buttons=True)
        claude.tell("UserPromptSubmit", "p2")
    await home.person.sees("The agent no longer needs this")


async def test_a_prompt_at_the_desk_drops_the_notice_that_waits_for_it(home: House) -> None:
    """Somebody is there."""
    await home.start(questions={"post_after": "30s"})
    claude = Claude(home)
    await claude.works("p1", 300.0)
    await claude.phase("waiting")
    claude.tell("UserPromptSubmit", "p2")
    await claude.phase("dropped")
    home.clock.advance(60.0)
    home.listener._parts.steps.kick("notice", claude.notice().id)  # type: ignore[union-attr]
    await home.polled()
    assert not finished(home)


async def test_it_waits_for_the_desk_as_a_question_does(home: House) -> None:
    """Also over a restart."""
    await home.start(questions={"post_after": "30s"})
    claude = Claude(home)
    await claude.works("p1", 300.0)
    await claude.phase("waiting")
    await home.stop()
    assert not finished(home)
    home.clock.advance(40.0)
    await home.start()
    await home.person.sees("shop is done · 5 min")


async def test_in_quiet_hours_it_makes_no_sound(home: House) -> None:
    """It is there in the morning."""
    await home.start(questions={"quiet_hours": "00:00-23:59", "tz": "UTC"})
    await Claude(home).works("p1", 300.0)
    assert (await home.person.sees("shop is done")).silent


async def test_the_whole_of_long_words_is_one_tap_away(claude: Claude, home: House) -> None:
    """Only on the newest notice of the session."""
    words = "I renamed many things. " * 200
    await claude.works("p1", 300.0, last_assistant_message=words)
    first = await home.person.sees("shop is done · 5 min", buttons=True)
    await claude.phase("posted")
    assert await home.person.taps(first, "Show all") == "Here it comes"
    document = await home.person.sees("The last words of shop")
    assert document.reply_to == first.message_id
    (call,) = home.api.control.calls("sendDocument")
    assert "last-words.txt" in str(call.params["document"])
    await claude.works("p2", 600.0, last_assistant_message=words)
    second = await home.person.sees("shop is done · 10 min", buttons=True)
    await until(lambda: not home.person.message(first.message_id).rows, "the first without buttons")
    assert home.person.message(second.message_id).rows


async def test_a_notice_that_is_not_noted_yet_shows_its_own_words(claude: Claude, home: House) -> None:
    """A person taps as soon as the message is there, and the disk is full at that moment."""
    for number in (1, 2):
        words, turn_id = "They end here. " * 300 * number, f"p{number}"
        with unsaved(home.listener._parts.kept.notices, functools.partial(tells_of, turn_id)):
            await claude.works(turn_id, 300.0 * number, last_assistant_message=words)
            shown = await home.person.sees(f"shop is done · {number * 5} min", buttons=True)
            assert await home.person.taps(shown, "Show all") == "Here it comes"
            await until(functools.partial(are_sent, home, len(words)), "the words")
        home.clock.advance(1.0)
        await until(lambda: tells_of(turn_id, claude.notice()), "the notice noted")  # noqa: B023 (this turn's)


async def test_a_notice_that_cannot_be_noted_is_posted_once(claude: Claude, home: House) -> None:
    """However long the disk is full; and the notice of a later turn takes its buttons."""
    known = home.listener._parts.kept.notices
    words, refused = "I renamed many things. " * 200, Refused(lambda notice: notice.shown is not None)
    with unsaved(known, refused):
        await claude.works("p1", 300.0, last_assistant_message=words)
        first = await home.person.sees("shop is done · 5 min", buttons=True)
        await refused.thrice(claude)
        await claude.works("p2", 600.0, last_assistant_message=words)
        await until(lambda: (one := claude.notice()) is not None and one.turn and one.turn.id == "p2", "the next turn")
        await refused.thrice(claude)
    claude.looks()
    await home.person.sees("shop is done · 10 min", buttons=True)
    await until(lambda: not home.person.message(first.message_id).rows, "the first without buttons")
    assert len(finished(home)) == 2


async def test_while_telegram_is_away_no_answer_is_lost(claude: Claude, home: House) -> None:
    """To a prompt from the phone: the turns after it, of the phone and of the desk, take nothing from it."""
    kept = home.listener._parts.kept
    source = Source("claude-code", "laptop", claude.session, "/home/dev/shop")
    home.api.control.fault(method="sendMessage", status=502, times=999)
    for number, is_ours in ((1, True), (2, True), (3, False)):
        at_s = home.clock.now()
        turn = Turn(source, "Claude Code", f"p{number}", at_s - 5, at_s, f"Answer {number}")
        await kept.notices.take(TurnEnded(turn), is_ours=is_ours)
        home.clock.advance(5.0)
    await until(lambda: home.api.control.calls("sendMessage"), "a try")
    assert not finished(home)
    await kept.forget_before(home.clock.now() + 1)
    assert kept.has_open(), "a store that was removed is made again for it"
    home.api.control.clear_faults()
    for number in (1, 2):
        claude.looks()
        await home.person.sees(f"Answer {number}")
    await until(lambda: not kept.has_open(), "the notes of both")
    assert len(finished(home)) == 2


async def test_a_turn_that_keeps_trying_is_told_once(claude: Claude, home: House) -> None:
    """However long the disk is full; then its message says how it went on."""
    known = home.listener._parts.kept.notices
    source = Source("claude-code", "m1", claude.session, "/home/dev/shop", host="laptop")
    retry = Retry(source, "Claude Code", 4, home.clock.now() + 60.0, "rate limit")
    refused = Refused(lambda notice: notice.retry_shown is not None)
    with unsaved(known, refused):
        await known.take(Retrying(retry))
        shown = await home.person.sees("· 5th try")
        await refused.thrice(claude)
        await known.take(Retrying(replace(retry, attempt=5)))
        await refused.thrice(claude)
        assert [one.message_id for one in home.person.shown()] == [shown.message_id]
    claude.looks()
    assert (await home.person.sees("· 6th try")).message_id == shown.message_id
    await known.take(Quiet(claude.session))
    await until(lambda: not home.person.message(shown.message_id).text.count("try at"), "that it tries no more")
    assert [one.message_id for one in home.person.shown()] == [shown.message_id]


async def test_a_turn_that_keeps_trying_for_long_keeps_its_message(claude: Claude, home: House) -> None:
    """The listener tidies every ten minutes; no turn of this session has ended yet."""
    known = home.listener._parts.kept.notices
    source = Source("claude-code", "m1", claude.session, "/home/dev/shop", host="laptop")
    retry = Retry(source, "Claude Code", 4, home.clock.now() + 60.0, "rate limit")
    await known.take(Retrying(retry))
    shown = await home.person.sees("· 5th try")
    await until(lambda: (notice := claude.notice()) is not None and notice.retry_shown, "the message noted")
    home.clock.advance(601)
    await home.listener._parts.phone.upkeep.tidy(home.listener._parts.kept)
    await known.take(Retrying(replace(retry, attempt=5)))
    assert (await home.person.sees("· 6th try")).message_id == shown.message_id
    await known.take(Quiet(claude.session))
    await until(lambda: not home.person.message(shown.message_id).text.count("try at"), "that it tries no more")


class Refused:
    """Refuse to save the notices that this is true of, and keep them."""

    def __init__(self, is_refused: Callable[[Notice], bool]) -> None:
        self._is_refused = is_refused
        self.notices: list[Notice] = []

    def __call__(self, notice: Notice) -> bool:
        """Tell whether it is refused."""
        is_refused = self._is_refused(notice)
        self.notices += [notice] if is_refused else []
        return is_refused

    async def thrice(self, claude: Claude) -> None:
        """Let the worker look until it was refused three times more."""
        wanted = len(self.notices) + 3
        while len(self.notices) < wanted:
            before = len(self.notices)
            claude.looks()
            await until(lambda before=before: len(self.notices) > before, "the disk's refusal")  # type: ignore[misc]


def are_sent(home: House, size: int) -> bool:
    """Tell whether words of so many bytes came as a document."""
    sent = [str(call.params["document"]) for call in home.api.control.calls("sendDocument")]
    return f"last-words.txt ({size} bytes)" in sent


def tells_of(turn_id: str, notice: Notice | None) -> bool:
    """Tell whether the message about this turn is noted."""
    return notice is not None and notice.shown is not None and notice.shown.turn.id == turn_id


async def test_long_changes_are_a_document(home: House) -> None:
    """Below the notice, as OpenCode's plugin told them."""
    await home.start(notices={"finished": "0s"})
    patch = "--- a.txt\n+++ a.txt\n@@ -0,0 +1,900 @@\n" + "+more\n" * 900
    now_ms = home.clock.now() * 1000
    turn = {"sessionID": "ses_1", "id": "msg_1", "began": now_ms - 5000, "ended": now_ms, "words": "", "failure": ""}
    changes = {"files": 1, "added": 900, "removed": 0, "diffs": [{"file": "a.txt", "patch": patch}]}
    home.hook("turn.ended", turn | {"changes": changes})
    shown = await home.person.sees(" is done", buttons=True)
    assert await home.person.taps(shown, "Changes") == "Here it comes"
    document = await home.person.sees("Changes of project")
    assert document.reply_to == shown.message_id
    (call,) = home.api.control.calls("sendDocument")
    assert "changes.diff" in str(call.params["document"])


async def test_each_session_has_its_own(claude: Claude, home: House) -> None:
    """The buttons of one do not depend on the other."""
    other = Claude(home, "ses_2")
    await claude.works("p1", 300.0)
    await other.works("p1", 600.0)
    await home.person.sees("shop is done · 5 min")
    await home.person.sees("shop is done · 10 min")


async def test_without_notices_nothing_is_told(home: House) -> None:
    """`[notices] enabled = false`."""
    await home.start(notices={"enabled": False})
    claude = Claude(home)
    claude.tell("UserPromptSubmit", "p1")
    home.clock.advance(300.0)
    claude.tell("Stop", "p1", last_assistant_message=WORDS)
    await until(lambda: not spool.listing(home.store), "an empty inbox")
    assert claude.notice() is None
    assert not finished(home)
    assert not (home.store / "notices").exists()


async def test_a_turn_that_was_interrupted_makes_the_next_one_no_longer(claude: Claude, home: House) -> None:
    """No hook tells of an interrupt."""
    claude.tell("UserPromptSubmit", "p1")
    await claude.begun("p1")
    home.clock.advance(4 * 3600.0)
    await claude.works("p2", 5.0)
    await claude.phase("dropped")
    assert not finished(home)


async def test_the_end_of_a_turn_by_the_plugin_ends_no_question(home: House) -> None:
    """The next turn may have asked it meanwhile; the plugin tells of its end in another way."""
    await home.start(notices={"finished": "0s"})
    with home.waiting("que_1"):
        home.hook("question.asked", a_request())
        asked = await home.person.sees("Which database?", buttons=True)
        at_ms = home.clock.now() * 1000
        turn = {"sessionID": "ses_1", "id": "msg_0", "began": at_ms - 9000, "ended": at_ms, "words": WORDS}
        home.hook("turn.ended", turn)
        await home.person.sees(" is done · 9 s")
        await home.person.taps(asked, "SQLite")
        await home.phase("sending")


async def test_a_full_disk_at_the_beginning_of_a_turn_costs_nothing(home: House) -> None:
    """A notice that is on the phone does not change by it."""
    await home.start(notices={"finished": "0s"})
    claude = Claude(home)
    await claude.works("p1", 5.0)
    await claude.phase("posted")
    before = claude.notice()
    assert before is not None
    await home.listener._parts.kept.notices.take(Busy(claude.session))
    assert claude.notice() == before


async def test_a_folder_that_takes_no_notices_holds_up_no_question(home: House) -> None:
    """A file stands in its place; the questions behind the report of a turn come all the same."""
    await home.start()
    (home.store / "notices").write_bytes(b"")
    Claude(home).tell("UserPromptSubmit", "p1")
    with home.waiting("que_1"):
        home.hook("question.asked", a_request())
        await home.person.sees("Which database?", buttons=True)
    await until(lambda: not spool.listing(home.store), "an empty inbox")


async def test_notices_are_in_a_store_that_is_made_again(home: House) -> None:
    """With the asks that are open."""
    await home.start(notices={"finished": "0s"})
    claude = Claude(home)
    await claude.works("p1", 5.0)
    await claude.phase("posted")
    with home.waiting("que_1"):
        home.hook("question.asked", a_request())
        await home.person.sees("Which database?", buttons=True)
        remove(home.store)
        await home.person.sees("I made it again")
    await until(lambda: list((home.store / "notices").glob("*.json")), "the notice in the new store")


async def test_a_notice_of_another_chat_keeps_its_buttons(home: House) -> None:
    """That chat is out of reach; the next notice comes all the same, and nothing is tried for ever."""
    await home.start(notices={"finished": "0s"})
    claude = Claude(home)
    words = "I renamed many things. " * 200
    await claude.works("p1", 5.0, last_assistant_message=words)
    await claude.phase("posted")
    notice = claude.notice()
    assert notice is not None
    assert notice.shown is not None
    elsewhere = replace(notice.shown, chat_id=-5)
    await home.listener._parts.kept.notices.change(notice.id, lambda found: replace(found, shown=elsewhere))
    await claude.works("p2", 6.0, last_assistant_message=words)
    await home.person.sees("shop is done · 6 s")
    await until(lambda: (now := claude.notice()) is not None and not now.outdated, "no message with old buttons")


async def test_old_notices_are_forgotten(claude: Claude, home: House) -> None:
    """With their words, after `keep_done`; and not more sessions are kept than a person has."""
    await claude.works("p1", 300.0)
    await claude.phase("posted")
    notices = home.listener._parts.kept.notices
    await notices.forget_before(home.clock.now() - 60.0)
    assert claude.notice() is not None
    await notices.forget_before(home.clock.now() + 60.0)
    assert claude.notice() is None
    for number in range(Notices.most + 3):
        await notices.take(TurnBegan("claude-code", f"ses_{number}", "p", float(number)))
    assert len(notices._known) == Notices.most
    assert len(list((home.store / "notices").iterdir())) == Notices.most


async def test_a_notice_that_came_out_of_a_database_is_the_one_of_its_session(home: House) -> None:
    """It has the id of its machine, which the others of a folder have not: it has no twin, and stays muted."""
    await home.start()
    notices = home.listener._parts.kept.notices
    moved = Notice("notice_a", "claude-code", "ses_1", machine="desk", is_muted=True)
    await notices.make(lambda _: False, lambda: moved, lambda one: one)
    changed = await notices.of("claude-code", "ses_1", lambda found: replace(found, heard_s=1.0))
    assert (changed.id, changed.is_muted) == ("notice_a", True)
    assert len(notices.all()) == 1

"""The laws and the driver can fail: what violates a law is told in a sentence, and what keeps it is not."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox.phone_values import Button, ShownMessage, Tap, Toast, Version
from tests.faults import laws
from tests.faults.__main__ import main
from tests.faults.asks import Ask
from tests.faults.person import PATIENCE_S, Person, View
from tests.faults.playing import played
from tests.faults.round import Outcome, Round
from tests.faults.terminal import Terminal
from tests.faults.world import FLEETING_S
from tests.harness.processes import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.faults.asks import Answers, Shape

OPTIONS = ((Button("q1w1a"), Button("q1w1b")),)


@dataclass
class Fingers:
    """Notes what a person taps and writes."""

    taps: list[Tap] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def tap(self, message: ShownMessage, label: str, *, times: int) -> Tap:
        number = len(self.taps) + 1
        self.taps.append(Tap(f"tap-{number}", number, 1001, 1001, message.message_id, label, 0.0))
        return self.taps[-1]

    def write(
        self, text: str, *, reply_to: ShownMessage | None = None, thread_id: int | None = None
    ) -> tuple[int, ...]:
        self.texts.append(text)
        return (100 + len(self.texts),)


def an_ask(shape: Shape = "single", **more: Any) -> Ask:
    """Ask a server."""
    return Ask("q1w", shape, "server", "new", **more)


def a_person(ask: Ask | None = None, **more: Any) -> Person:
    """Return who answers the ask."""
    return Person(ask or an_ask(), Fingers(), Random(1), **{"thinks_s": 0.0, **more})


def a_message(text: str, **more: Any) -> ShownMessage:
    """Let the bot say something."""
    return ShownMessage(1001, 7, 4711, True, "text", 0, text, **more)  # noqa: FBT003 (the bot says it)


def a_view(*messages: ShownMessage, toasts: Sequence[Toast] = ()) -> View:
    """Show these messages and toasts, and nothing else."""
    return View(messages, {toast.tap_id: toast for toast in toasts})


def wanted(shape: Shape = "single") -> Answers | None:
    """Return what the person of such an ask means."""
    return an_ask(shape).wanted


# --- the laws -------------------------------------------------------------------------------------------------------

DESK = (("said at the desk",),)


@pytest.mark.parametrize(
    ("came", "ended_by", "broken"),
    [
        ([wanted()], set(), ""),
        ([DESK], {"desk"}, ""),
        ([None], {"dismissed"}, ""),
        ([], {"restarted"}, ""),
        ([wanted(), wanted()], set(), "took effect 2 times"),
        ([wanted(), DESK], {"desk"}, "took effect 2 times"),
        ([(("q1w1a",),)], set(), "its person meant"),
        ([DESK], set(), "its person meant"),
        ([None], {"desk"}, "its person meant"),
        ([], set(), "has no end"),
    ],
)
def test_an_ask_takes_effect_once_and_rightly(came: list[Answers | None], ended_by: set[str], broken: str) -> None:
    """By the phone as its person meant it, or by the desk; not twice, not otherwise, not without an end."""
    told(laws.effects(a_person(an_ask(ended_by=ended_by)), came), broken)


def test_only_time_dismisses_what_nobody_dismissed() -> None:
    """The same effect violates the law, where the phone does not say that time was up."""
    told(laws.effects(a_person(time_was_up=True), [None]), "")
    told(laws.effects(a_person(), [None]), "its person meant")


@pytest.mark.parametrize(("ended_by", "time_was_up", "broken"), [
    ({"left"}, True, ""), ({"left"}, False, "the phone says"), (set(), True, "the phone says"),
])  # fmt: skip
def test_time_lets_a_hook_leave_without_an_effect(ended_by: set[str], time_was_up: bool, broken: str) -> None:
    """Its agent goes on asking on the computer; the phone says that nobody answered."""
    person = a_person(an_ask(ended_by=ended_by), time_was_up=time_was_up)
    told(laws.shows(person, [], a_view(a_message("⌛ Expired 00:14 · q1w"))), broken)


def test_time_that_is_up_is_noted_at_once() -> None:
    """Also if no effect ever comes."""
    person = a_person(now=lambda: 77.0)
    person.look(a_view(a_message("⌛ Expired 00:14 · q1w")), lambda: ())
    assert (person.time_was_up, person.over_s) == (True, 77.0)


GONE = "The agent no longer needs this q1w"


@pytest.mark.parametrize(
    ("messages", "came", "ask", "broken"),
    [
        ([a_message("✅ q1w: q1w1b")], [wanted()], an_ask(), ""),
        ([a_message("🖥 Answered on the computer q1w")], [DESK], an_ask(ended_by={"desk"}), ""),
        ([a_message("🖥 Dismissed on the computer q1w")], [None], an_ask(ended_by={"dismissed"}), ""),
        ([a_message("⏹ Stopped q1w")], [None], an_ask("stop"), ""),
        ([a_message("⏭ Skipped q1w")], [((),)], an_ask("skip"), ""),
        ([a_message(GONE)], [], an_ask(ended_by={"deleted"}, promised=True), ""),
        ([a_message(GONE)], [wanted()], an_ask(ended_by={"deleted"}, promised=True), ""),
        ([a_message(GONE)], [wanted()], an_ask(ended_by={"left"}, promised=True), ""),
        ([a_message(GONE)], [wanted()], an_ask(ended_by={"silent"}, promised=True), ""),
        ([a_message(GONE)], [wanted()], an_ask(ended_by={"restarted"}, promised=True), "the phone says"),
        ([a_message("✅ Allowed once q1w")], [], an_ask("once", ended_by={"aborted"}), "the phone says"),
        ([a_message("✅ Allowed once q1w")], [], an_ask("once", ended_by={"aborted"}, allowed=wanted("once")), ""),
        ([a_message(GONE)], [], an_ask("once", ended_by={"aborted"}, allowed=wanted("once")), ""),
        (
            [a_message("✅ Always allowed q1w")],
            [],
            an_ask("once", ended_by={"aborted"}, allowed=wanted("once")),
            "the phone says",
        ),
        ([], [], an_ask(ended_by={"deleted"}), ""),
        ([], [], an_ask(ended_by={"deleted"}, promised=True), "is not on the phone"),
        ([], [wanted()], an_ask(), "is not on the phone"),
        ([a_message("✅ q1w: q1w1b"), a_message("q1w", rows=OPTIONS)], [wanted()], an_ask(), "still has buttons"),
        ([a_message("💾 Saved, being delivered q1w")], [wanted()], an_ask(), "the phone says"),
        ([a_message(GONE)], [wanted()], an_ask(), "the phone says"),
        ([a_message("✅ q1w: q1w1b")], [DESK], an_ask(ended_by={"desk"}), "the phone says"),
        ([a_message("✅ q1w: q1w1b")], [], an_ask(ended_by={"restarted"}, promised=True), "the phone says"),
    ],
)
def test_the_phone_tells_the_truth(
    messages: list[ShownMessage], came: list[Answers | None], ask: Ask, broken: str
) -> None:
    """Each end has its words, without buttons; what was acknowledged is never passed over in silence."""
    told(laws.shows(a_person(ask), came, a_view(*messages)), broken)


@pytest.mark.parametrize(
    ("messages", "asked_again", "broken"),
    [
        ([a_message(GONE)], True, ""),
        ([a_message(GONE)], False, "the phone says"),
        ([a_message(GONE), a_message("⏳ Sending q1w")], True, "the phone says"),
        ([a_message(GONE), a_message("🖥 Answered on the computer q1w")], True, ""),
    ],
)
def test_the_desk_may_answer_again_before_hermes_asks_again(
    messages: list[ShownMessage], asked_again: bool, broken: str
) -> None:
    """The one message is of the first question then; a message of the second one must tell the truth."""
    person = a_person(an_ask(ended_by={"desk"}), asked_again=asked_again)
    told(laws.shows(person, [DESK], a_view(*messages)), broken)


@pytest.mark.parametrize(
    ("over_s", "more", "broken"),
    [
        (100.0 + FLEETING_S, {}, ""),
        (100.0 + FLEETING_S, {"fleeting": False}, "nothing expires here"),
        (100.0 + FLEETING_S / 2, {}, "expired after 20.0 s of 40 s"),
        (100.0 + FLEETING_S / 2, {"pace": 2.0}, ""),
        (100.0 + FLEETING_S, {"gap_s": 101.0}, "a gap in which nobody could answer"),
        (100.0 + FLEETING_S, {"gap_s": 101.0 + FLEETING_S}, ""),
        (90.0 + FLEETING_S, {}, "expired after 30.0 s of 40 s"),
        (90.0 + FLEETING_S, {"reopened": True}, ""),
        (100.0 + FLEETING_S, {"reopened": True, "gap_s": 101.0}, ""),
    ],
)
def test_nothing_expires_too_early(over_s: float, more: dict[str, Any], broken: str) -> None:
    """Not where nothing expires, not before its time, and not soon after nobody could answer."""
    person = a_person(first_seen_s=90.0, last_copy_s=100.0, over_s=over_s, time_was_up=True)
    told(laws.time_ran_out_rightly(person, **{"fleeting": True, "pace": 1.0, "gap_s": 0.0, **more}), broken)


def test_a_tap_starts_the_time_anew() -> None:
    """What was touched expires its whole time after that."""
    person = a_person(first_seen_s=100.0, last_copy_s=100.0, touches_s=[120.0, 140.9], over_s=141.0, time_was_up=True)
    told(laws.time_ran_out_rightly(person, fleeting=True, pace=1.0, gap_s=0.0), "expired after 21.0 s")


@pytest.mark.parametrize(
    ("place", "content", "broken"),
    [
        ("pending/odd.json", b"\0", ""),
        ("quarantine/20260101-odd.json", b"\0", ""),
        ("quarantine/20260101-odd.json", b"\0\0", "was lost or changed"),
        ("done/odd.json", b"\0", "was lost or changed"),
    ],
)
def test_what_cannot_be_read_stays(place: str, content: bytes, broken: str, tmp_path: Path) -> None:
    """To the byte: where it was, or in quarantine."""
    file = tmp_path / place
    file.parent.mkdir()
    file.write_bytes(content)
    told(laws.files(tmp_path, {"odd.json": b"\0"}), broken)


@pytest.mark.parametrize(("place", "broken"), [("pending/a.json", "left open"), ("inbox/a.json", "the inbox keeps")])
def test_nothing_is_left_open(place: str, broken: str, tmp_path: Path) -> None:
    """No entry of Hermes' own, and nothing that a hook has kept."""
    (tmp_path / place).parent.mkdir()
    told(laws.files(tmp_path, {}), "")
    (tmp_path / place).with_name(".begun.tmp").touch()  # by a hook that was killed; it goes within a minute
    told(laws.files(tmp_path, {}), "")
    (tmp_path / place).touch()
    told(laws.files(tmp_path, {}), broken)


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("INFO hermes.listener.daemon: listening for bot 4711", ""),
        ("ERROR hermes.steps: entry k: deliver stumbled and will try again", "the log says"),
        ("    Traceback (most recent call last):", "the log says"),
        ("INFO GET /bot4711:secret/getUpdates", "the token"),
    ],
)
def test_the_log_speaks_of_no_stumble_and_no_secret(line: str, broken: str) -> None:
    """Neither a step that tripped nor the token is in it."""
    told(laws.words_of_the_log(f"a line\n{line}\n", "4711:secret"), broken)


def test_a_listener_neither_spins_nor_goes_deaf() -> None:
    """Too many requests for the time that a round took; a fresh question without its answer."""
    told(laws.spinning("Telegram", 60, 2.0), "")
    told(laws.spinning("Telegram", 900, 2.0), "450 requests a second to Telegram")
    told(laws.spinning("an agent server", 900, 2.0), "450 requests a second to an agent server")
    told(laws.deafness(an_ask(), [wanted()]), "")
    told(laws.deafness(an_ask(), []), "deaf")
    told(laws.deafness(an_ask(), [DESK]), "deaf")


def test_the_phone_is_judged_when_no_question_has_buttons() -> None:
    """A question that its agent gave up at once is posted and ended when all else is over."""
    still = a_view(a_message("q1w", rows=OPTIONS), a_message("q1w is out of date", rows=OPTIONS))
    views = [still, still, a_view(a_message("✅ q1w: q1w1b"))]

    class Watched(Round):
        def view(self) -> View:
            return views.pop(0)

    watched = Watched(None, 1, 1, persons=[a_person()])  # type: ignore[arg-type]
    assert not any(message.rows for message in watched._at_rest(frozenset()).shown())


def test_copies_with_buttons_are_found() -> None:
    """Those of these asks alone, as they are shown now."""
    copy = a_message("q1w", rows=OPTIONS)
    late = a_message("Your answer “q1w in words” came too late", rows=OPTIONS)
    others = (a_message("q2w", rows=OPTIONS), replace(copy, deleted=True), a_message("✅ q1w"), late)
    assert laws.leftovers(a_view(copy, *others), ["q1w"]) == [copy]


def test_an_end_has_a_name() -> None:
    """The report counts how asks ended."""
    assert laws.end(a_person(), []) == "gone"
    assert laws.end(a_person(an_ask(promised=True)), []) == "gone, though acknowledged"
    assert laws.end(a_person(time_was_up=True), [None]) == laws.end(a_person(time_was_up=True), []) == "expired"
    assert laws.end(a_person(), [wanted()]) == "by the phone"
    assert laws.end(a_person(), [DESK]) == "at the desk"


def told(said: Iterator[str], broken: str) -> None:
    """One sentence with these words; none at all, where nothing is broken."""
    sentences = list(said)
    assert len(sentences) == (1 if broken else 0), sentences
    assert broken in "".join(sentences)


# --- the person -----------------------------------------------------------------------------------------------------


class Watch:
    """A clock that stands until it is told to go on."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def watch() -> Watch:
    """The time of the person."""
    return Watch()


@pytest.fixture
def fingers() -> Fingers:
    """What the person does."""
    return Fingers()


@pytest.fixture
def person(watch: Watch, fingers: Fingers) -> Person:
    """One who means to tap "q1w1b"."""
    return Person(an_ask(request_id="que_1"), fingers, Random(1), thinks_s=0.0, now=watch)


ASKED = a_message("q1w: which, 1?", rows=((Button("q1w1a"), Button("q1w1b"), Button("✏️ Other")),))


def toast(tap: Tap, text: str) -> Toast:
    """Answer a tap."""
    return Toast(tap.tap_id, tap.user_id, tap.chat_id, tap.message_id, tap.data, text, show_alert=False, at_s=0.0)


def let_pass(person: Person, watch: Watch, seconds: float, view: View) -> None:
    """Let the person look ten times a second."""
    for _ in range(round(seconds * 10)):
        watch.now_s += 0.1
        person.look(view, list)
        person.step(view)


@pytest.mark.parametrize("word", ["q1w1b", "On its way", "Already answered", "The agent no longer needs this"])
def test_who_was_told_of_the_end_taps_no_more(word: str, person: Person, fingers: Fingers, watch: Watch) -> None:
    """The whole answer was acknowledged, or came too late; only the first is a promise."""
    person.step(a_view(ASKED))
    let_pass(person, watch, 30.0, a_view(ASKED, toasts=[toast(fingers.taps[0], word)]))
    assert [tap.data for tap in fingers.taps] == ["q1w1b"]
    assert person.done
    assert person.ask.promised == (word in {"q1w1b", "On its way"})


@pytest.mark.parametrize("word", ["", "q1w1b", "The agent no longer needs this"])
def test_who_is_asked_again_answers_again(word: str, person: Person, fingers: Fingers, watch: Watch) -> None:
    """Whatever was said to a tap on the first message, which has its buttons until Hermes hears of the restart."""
    person.begin_again("que_2")
    let_pass(person, watch, 0.1, a_view(ASKED))
    toasts = [toast(fingers.taps[0], word)] if word else []
    again = replace(ASKED, message_id=ASKED.message_id + 1)
    let_pass(person, watch, 0.5, a_view(ASKED, toasts=toasts))
    let_pass(person, watch, 1.0, a_view(replace(ASKED, rows=()), again, toasts=toasts))
    assert [tap.message_id for tap in fingers.taps] == [ASKED.message_id, again.message_id]


def test_who_is_asked_again_writes_again(fingers: Fingers, watch: Watch) -> None:
    """The first text was a reply to the message of the question that was gone by then."""
    person = Person(an_ask("reply"), fingers, Random(1), thinks_s=0.0, now=watch)
    person.begin_again("que_2")
    let_pass(person, watch, 1.0, a_view(ASKED))
    again = replace(ASKED, message_id=ASKED.message_id + 1)
    let_pass(person, watch, 1.0, a_view(replace(ASKED, rows=()), again))
    assert fingers.texts == [person.ask.text] * 2


def test_a_text_that_is_only_offered_as_the_answer_is_taken_by_a_tap(fingers: Fingers, watch: Watch) -> None:
    """In a group it replied to a message that Telegram never confirmed."""
    person = Person(an_ask("reply"), fingers, Random(1), thinks_s=0.0, now=watch)
    let_pass(person, watch, 1.0, a_view(ASKED))
    use = f"Use “{person.ask.text}”"
    offer = replace(ASKED, message_id=9, text="Is this your answer to q1w?", rows=((Button(use),), (Button("No"),)))
    person.step(a_view(ASKED, replace(offer, text="Is this your answer to q1x?")))
    assert fingers.taps == [], "another question"
    person.step(a_view(ASKED, offer))
    assert [(tap.message_id, tap.data) for tap in fingers.taps] == [(9, use)]
    let_pass(person, watch, 1.0, a_view(ASKED, offer, toasts=[toast(fingers.taps[0], "On its way")]))
    assert person.done


def test_who_hears_nothing_taps_again(person: Person, fingers: Fingers, watch: Watch) -> None:
    """Not before the patience is at its end, and the answer to the second tap counts."""
    person.step(a_view(ASKED))
    let_pass(person, watch, PATIENCE_S - 0.2, a_view(ASKED))
    assert len(fingers.taps) == 1
    let_pass(person, watch, 1.0, a_view(ASKED))
    assert len(fingers.taps) == 2
    let_pass(person, watch, 30.0, a_view(ASKED, toasts=[toast(fingers.taps[1], "q1w1b")]))
    assert len(fingers.taps) == 2
    assert person.ask.promised


def test_a_refused_tap_is_no_promise(person: Person, fingers: Fingers, watch: Watch) -> None:
    """The person hears that it was not saved, and goes on."""
    person.step(a_view(ASKED))
    let_pass(person, watch, 1.0, a_view(ASKED, toasts=[toast(fingers.taps[0], "I could not save that")]))
    assert len(fingers.taps) == 2
    assert not person.ask.promised


def test_who_only_looks_taps_nothing(person: Person, fingers: Fingers, watch: Watch) -> None:
    """Such a person is there for the asks that the desk ends."""
    person.acts = False
    let_pass(person, watch, 30.0, a_view(ASKED))
    assert not fingers.taps


def test_a_text_is_written_once_and_again_only_where_it_was_not_saved(
    person: Person, fingers: Fingers, watch: Watch
) -> None:
    """The message that turns acknowledges it; "I could not save that" does the opposite."""
    person.ask.shape = "reply"
    let_pass(person, watch, 5.0, a_view(ASKED))
    assert fingers.texts == [person.ask.text]
    let_pass(person, watch, 5.0, a_view(ASKED, a_message("⚠️ I could not save that", reply_to=101)))
    assert len(fingers.texts) == 2
    turned = a_message("q1w", versions=(Version("💾 “q1w in words", (), (), 0.0),))
    let_pass(person, watch, 5.0, a_view(turned))
    assert person.ask.promised
    let_pass(person, watch, 5.0, a_view(ASKED, a_message("⚠️ I could not save that", reply_to=102)))
    assert len(fingers.texts) == 2


# --- the terminal ---------------------------------------------------------------------------------------------------

HOOK = """
import json, pathlib, sys, time
line, here = sys.stdin.readline(), pathlib.Path(sys.argv[1])
told = json.loads(line)
with (here / "told").open("a") as file:
    file.write(told["type"] + "\\n")
if "--wait" in sys.argv:
    print(json.dumps({"requestID": told["properties"]["id"], "kind": "reply", "answers": [["q1w1b"]]}), flush=True)
    time.sleep(60)
elif (here / "told").read_text().count(told["type"]) > 2:
    sys.stderr.write("kept\\n")
"""
"""Answers at once, and stays; keeps another event only when it comes for the third time."""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Its hooks are HOOK."""
    made = Terminal([sys.executable, "-I", "-S", "-c", HOOK, str(tmp_path)], {}, tmp_path, "/home/dev/project")
    yield made
    made.close()


def stepping(terminal: Terminal, reached: Callable[[], bool]) -> None:
    """Look after the hooks until something is reached."""

    def step() -> bool:
        terminal.step()
        return reached()

    until(step, 60, "the hooks of a terminal")


def test_an_event_that_no_hook_kept_is_handed_over_again(terminal: Terminal, tmp_path: Path) -> None:
    """Until one has kept it, and not once more."""
    ask = an_ask()
    terminal.ask(ask)
    assert terminal.settle(ask.request_id, DESK)
    assert not terminal.idle
    stepping(terminal, lambda: terminal.idle)
    assert (tmp_path / "told").read_text().split() == ["question.replied"] * 3
    terminal.step()
    assert not terminal.runners()


def test_a_printed_answer_is_applied_once(terminal: Terminal) -> None:
    """It is the question's one effect; what comes later, by whomever, finds nothing open."""
    ask = an_ask()
    terminal.ask(ask)
    stepping(terminal, lambda: bool(terminal.came_of(ask.request_id)) and terminal.idle)
    assert not terminal.settle(ask.request_id, DESK)
    assert not terminal.abort(ask.request_id)
    assert terminal.came_of(ask.request_id) == [(("q1w1b",),)]


def test_an_answer_that_found_nobody_is_applied_again_by_another_hook(terminal: Terminal) -> None:
    """One hook's answer is tried once; when that hook dies, the next one brings it again."""
    applied: list[Answers | None] = []

    def nobody(answers: Answers | None) -> bool:
        applied.append(answers)
        return False

    terminal.attend(an_ask(request_id="que_1"), {"id": "que_1"}, nobody)
    stepping(terminal, lambda: bool(applied))
    before_s = time.monotonic()
    stepping(terminal, lambda: time.monotonic() > before_s + 0.3)
    assert len(applied) == 1
    (hook,) = (pending.hook for pending in terminal.asks.values())
    assert hook is not None
    hook.process.kill()
    stepping(terminal, lambda: len(applied) > 1)
    assert len(applied) == 2


# --- the tool -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("violations", "status"), [([], 0), (["q7w took effect 2 times"], 1)])
def test_a_violation_is_the_exit_status(
    violations: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has it, with the command that plays the same round again."""
    outcome = Outcome(3, 7, ["listener killed"], 1, violations, ends=["by the phone"])
    file = tmp_path / "report.json"
    assert main(["--seed", "3", "--only", "7", "--json", str(file)], play=lambda *_: [outcome]) == status
    said = " ".join(capsys.readouterr().out.split())
    assert ("python -m tests.faults --seed 3 --only 7" in said) == bool(violations)
    assert ("q7w took effect 2 times" in file.read_text()) == bool(violations)


def test_a_round_that_was_not_played_is_a_failure() -> None:
    """No report of fewer rounds than were wanted passes for a good one."""
    assert main(["--only", "7"], play=lambda *_: []) == 1


def test_a_world_that_cannot_be_set_up_is_a_violation_of_each_of_its_rounds() -> None:
    """The other worlds go on, and the report says what happened."""
    outcomes = played(1, [0, 1], version="no such")
    assert [outcome.number for outcome in outcomes] == [0, 1]
    assert all("the driver: " in outcome.violations[0] for outcome in outcomes)


@pytest.mark.parametrize(
    ("told", "is_sure", "broken"),
    [(1, True, False), (0, True, True), (0, False, True), (2, True, True), (2, False, False)],
)
def test_each_turn_that_ended_is_told(told: int, is_sure: bool, broken: bool) -> None:
    """Twice only if Telegram may have taken a message without a word."""
    ask = an_ask()
    notice = a_message(f"✅ About {ask.token} is done · 3 s")
    view = a_view(*(replace(notice, message_id=number) for number in range(told)), a_message(f"{ask.token}: which, 1?"))
    assert bool(list(laws.turns_told(ask, 1, view, is_sure=is_sure))) == broken

"""The messages beside the main one: which are there when, and what they say."""

from dataclasses import replace

import pytest

from hermes.chat.screens.buttons import decode
from hermes.chat.screens.screen import Look
from hermes.chat.screens.side_messages import sides
from hermes.model.actions import NO_LIMIT, Arm, AskTwice, Back, Confirmed, KeepWaiting, TakeOffer
from hermes.model.answer import Answer, Decision, Outcome, OutcomeKind
from hermes.model.ask import OnExpiry
from hermes.model.entry import Entry, SideKind, Timing
from hermes.model.prompt import PromptAbilities
from hermes.model.state import Armed, Offer, State
from tests.chat.screens.entries import (
    ANN,
    ASKED_S,
    AT_1812,
    DATABASE,
    GIVEN,
    GOES_ON,
    GROUP,
    LOOK,
    NAME,
    SKIP,
    SOURCE,
    SQLITE,
    STOP,
    THREE,
    UNTIL_1840,
    entry,
    settled,
)
from tests.chat.screens.show import shown

OPEN = State(answers=(Answer(),))
CALLED = Timing(ASKED_S, 0, 0, UNTIL_1840, called=True)


def said(asked: Entry, look: Look = LOOK) -> dict[SideKind, str]:
    """Return each side message as plain characters."""
    return {kind: shown(side.screen) for kind, side in sides(asked, look).items()}


def meant(asked: Entry, kind: SideKind) -> list[object]:
    """Return what the buttons of a side message mean."""
    screen = sides(asked, LOOK)[kind].screen
    return [decode(button.data)[2] for row in screen.rows for button in row]


def test_nothing_stands_beside_a_question_at_first() -> None:
    """Nor beside one that only the computer can answer, or whose answer is on its way."""
    assert said(entry(DATABASE)) == {}
    assert said(entry(DATABASE, answerable=False, timing=CALLED)) == {}
    assert said(entry(DATABASE, state=State(phase="sending", decision=SQLITE))) == {}
    assert said(entry(DATABASE, state=State(phase="settled"))) == {}


def test_typing_is_asked_for() -> None:
    """A plain message at home; in a group a forced reply, since bots see nothing else there."""
    armed = entry(DATABASE, state=replace(OPEN, armed=Armed(0, 11)))
    assert said(armed) == {"typing": "Type your answer to **Database** as your next message.\n[ ✏️ Cancel typing ]"}
    assert meant(armed, "typing") == [Arm(0, on=False)]
    assert said(armed, GROUP) == {"typing": "Reply to this with your answer to **Database**. #k7\n(forced reply)"}
    side = sides(armed, GROUP)["typing"]
    assert (side.fresh, side.ring, side.lasting) == (True, False, False)


def test_a_plain_text_is_offered_as_an_answer() -> None:
    """Never taken by itself."""
    offer = Offer(0, ANN, 77, "let's take\nDuckDB")
    offered = entry(DATABASE, state=replace(OPEN, offer=offer))
    assert said(offered) == {"offer": "Is this your answer to **Database**?\n[ Use “let's take DuckDB” ]\n[ No ]"}
    assert meant(offered, "offer") == [TakeOffer(77, on=True), TakeOffer(77, on=False)]
    unnamed = entry(replace(DATABASE, header="", text="Which one?"), state=replace(OPEN, offer=offer))
    assert said(unnamed)["offer"].startswith("Is this your answer to **Which one?**\n")
    long = entry(DATABASE, state=replace(OPEN, offer=replace(offer, text="words " * 900)))
    assert "[ Use “words words words words wor…” ]" in said(long)["offer"]


@pytest.mark.parametrize(
    ("rule", "asked", "what"),
    [
        ("reject", entry(DATABASE), "the agent will be told to stop"),
        ("reject", entry(DATABASE, capabilities=GOES_ON), "this will be left to the computer, where Pi keeps waiting"),
        ("reject", entry(DATABASE, capabilities=replace(GOES_ON, desk_stays_open=False)), "the agent will be told no"),
        ("recommended", entry(DATABASE), "the recommended answer (SQLite) will be given"),
        (
            "recommended",
            entry(replace(DATABASE, multiple=True), state=replace(OPEN, answers=(Answer((0,)),))),
            "the chosen answer (PostgreSQL) will be given",
        ),
        ("recommended", entry(replace(DATABASE, recommended=None)), "the agent will be told to stop"),
        ("skip", entry(DATABASE), "the agent will be left to decide by itself"),
        ("keep", entry(DATABASE), "this will be left to the computer, where OpenCode keeps waiting"),
    ],
)
def test_the_final_call_says_what_will_happen(rule: OnExpiry, asked: Entry, what: str) -> None:
    """In the words of what the dialog will really do."""
    called = replace(asked, timing=CALLED)
    text = said(called, replace(LOOK, on_expiry=rule))["final_call"].splitlines()[0]
    lack = "sent the answer to" if any(asked.state.answers) else "answered"
    assert text == f"⏰ At 18:40 {what}, because nobody {lack} **Database**. #k7"


def test_the_final_call_offers_more_time() -> None:
    """It rings, and Stop needs a second tap there too."""
    called = entry(DATABASE, timing=CALLED)
    assert said(called)["final_call"].endswith("\n[ 1 h more ]  [ No limit ]  [ Stop now ]")
    assert meant(called, "final_call") == [KeepWaiting(3600), KeepWaiting(NO_LIMIT), AskTwice("reject")]
    assert sides(called, LOOK)["final_call"].ring
    sure = replace(called, state=replace(OPEN, confirm="reject"))
    assert said(sure)["final_call"].endswith("\n[ Yes, stop ]  [ Back ]")
    assert meant(sure, "final_call") == [Confirmed("reject"), Back()]
    goes_on = entry(DATABASE, timing=replace(CALLED, until_s=None), capabilities=GOES_ON)
    assert said(goes_on)["final_call"].startswith("⏰ After the quiet hours this will be left")
    assert said(goes_on)["final_call"].endswith("[ Refuse now ]")
    assert "[ Yes, refuse ]" in said(replace(goes_on, state=sure.state))["final_call"]


def test_the_final_call_gives_no_time_while_its_machine_is_away() -> None:
    """The time stands still then."""
    away = entry(DATABASE, timing=replace(CALLED, away_at=60.0), source=replace(SOURCE, host="nas"))
    assert said(away)["final_call"].startswith("⏰ Soon after nas is back the agent will be told to stop, because")


def test_the_final_call_names_its_question_whatever_the_program_calls_itself() -> None:
    """A program that asks with `hermes hook generic` gives its own name, of any length."""
    named = entry(DATABASE, timing=CALLED, capabilities=replace(GOES_ON, agent_name="build " * 1000))
    assert said(named)["final_call"].split("\n")[0].endswith("keeps waiting, because nobody answered **Database**. #k7")


@pytest.mark.parametrize(
    ("count", "remind_s", "since"),
    [
        (1, 600, ", for 10 min"),
        (2, 600, ", for 30 min"),
        (3, 1200, ", for 2 h 20 min"),
        (1, 3600, ", for 1 h"),
        (4, 86400, ", for 15 days"),
        (1, 5, ", for 1 min"),
        (1, None, ", since 18:10"),
    ],
)
def test_a_reminder_says_how_long_it_has_been(count: int, remind_s: float | None, since: str) -> None:
    """Each one is a new message that rings."""
    reminded = entry(DATABASE, timing=Timing(ASKED_S, reminded=count))
    look = replace(LOOK, remind_s=remind_s)
    assert said(reminded, look) == {"reminder": f"Still waiting: **Database**{since}. #k7"}
    side = sides(reminded, look)["reminder"]
    assert (side.fresh, side.ring, side.lasting) == (True, True, False)


def test_a_reminder_needs_no_times() -> None:
    """Nothing is invented where nothing is known."""
    assert said(entry(*THREE, timing=Timing(reminded=1))) == {"reminder": "Still waiting: **Colour** and 2 more. #k7"}
    assert said(entry(timing=Timing(reminded=1))) == {"reminder": "Still waiting: **Go on?**. #k7"}


def by_timer(decision: Decision) -> State:
    """Return the state after a timer decided."""
    return settled(Outcome("expired", AT_1812), replace(decision, by=None))


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (by_timer(STOP), "the agent was told to stop. #k7"),
        (by_timer(SKIP), "the agent was left to decide by itself. #k7"),
        (by_timer(SQLITE), "the recommended answer was given: **SQLite**. #k7"),
        (by_timer(Decision("release", AT_1812)), "it can still be answered on the computer. #k7"),
        (settled(Outcome("expired", AT_1812)), "it can still be answered on the computer. #k7"),
    ],
)
def test_what_a_timer_decided_is_told_aloud(state: State, what: str) -> None:
    """A new message that stays, since an edit makes no sound."""
    goes_on = entry(DATABASE, state=by_timer(STOP), capabilities=GOES_ON)
    assert said(goes_on)["expired"].endswith("the agent was told no. #k7")
    several = entry(*THREE, state=by_timer(SQLITE))
    assert said(several)["expired"].endswith("the recommended answers were given. #k7")
    one = replace(several, state=replace(several.state, answers=(Answer((0,)), Answer(), Answer())))
    assert said(one)["expired"].endswith("the chosen and recommended answers were given. #k7")
    expired = entry(DATABASE, state=state)
    assert said(expired) == {"expired": f"⌛ No answer to **Database** by 18:40; {what}"}
    side = sides(expired, LOOK)["expired"]
    assert (side.ring, side.lasting) == (True, True)


def test_the_hour_of_an_expiry_is_known_without_a_timing() -> None:
    """From the decision, else from the end."""
    decided = entry(DATABASE, state=by_timer(STOP), timing=Timing())
    ended = entry(DATABASE, state=settled(Outcome("expired", UNTIL_1840)), timing=Timing())
    assert "by 18:12; " in said(decided)["expired"]
    assert "by 18:40; " in said(ended)["expired"]


def test_a_late_delivery_is_told_aloud() -> None:
    """Only if the phone had said that the agent, or its machine, was away."""
    late = entry(DATABASE, state=settled(Outcome("answered", AT_1812), SQLITE, away=True))
    assert said(late) == {"delivered": "✅ Delivered to Fix login flow: **SQLite** · #k7"}
    assert sides(late, LOOK)["delivered"].lasting
    ended = settled(Outcome("answered", AT_1812), SQLITE)
    assert said(entry(DATABASE, state=ended)) == {}
    elsewhere = entry(DATABASE, state=ended, timing=replace(CALLED, away_at=60.0))
    assert said(elsewhere) == said(late)
    untitled = entry(
        *THREE,
        state=settled(Outcome("answered", AT_1812), Decision("answer", AT_1812, GIVEN, ANN), away=True),
        source=replace(SOURCE, session_title=""),
    )
    assert said(untitled)["delivered"] == (
        "✅ Delivered to OpenCode on laptop: **Blue · S, L, “XXL, but only in blue”** · #k7"
    )


@pytest.mark.parametrize(
    ("kind", "decision", "what"),
    [
        ("gone", SQLITE, "Your answer **SQLite** came too late: the agent had stopped waiting. #k7"),
        ("gone", STOP, "Your **Stop** came too late: the agent had stopped waiting. #k7"),
        (
            "answered_at_desk",
            SQLITE,
            "Your answer **SQLite** came too late: it had already been answered on the computer. #k7",
        ),
        (
            "rejected_at_desk",
            SKIP,
            "Your **Skip** came too late: it had already been dismissed on the computer. #k7",
        ),
    ],
)
def test_an_answer_that_found_nobody_is_told_aloud(kind: OutcomeKind, decision: Decision, what: str) -> None:
    """With the person's own answer, not the one of the computer."""
    outcome = Outcome(kind, AT_1812, (("PostgreSQL",),) if kind == "answered_at_desk" else ())
    late = entry(DATABASE, state=settled(outcome, decision))
    assert said(late) == {"too_late": what}
    assert (sides(late, LOOK)["too_late"].ring, sides(late, LOOK)["too_late"].lasting) == (True, True)


def test_an_answer_to_a_machine_that_was_removed_says_so() -> None:
    """Nobody can reach its agents, so that no message is offered."""
    late = entry(DATABASE, state=settled(Outcome("gone", AT_1812, reason="removed"), SQLITE))
    told = {"too_late": "Your answer **SQLite** came too late: its machine was removed from Hermes. #k7"}
    assert said(late, replace(LOOK, prompted={SOURCE.agent: PromptAbilities()})) == told


def test_an_agent_that_gave_up_is_told_aloud() -> None:
    """It has ended its turn, and does nothing more."""
    swept = entry(DATABASE, state=settled(Outcome("gone", AT_1812, reason="swept"), None))
    assert said(swept) == {"expired": "⌛ OpenCode on laptop gave up waiting for an answer to **Database**. #k7"}
    assert sides(swept, LOOK)["expired"].ring


def test_an_agent_whose_own_timer_decided_is_told_aloud() -> None:
    """Nobody answered, neither on the phone nor at the computer; an answer that comes later is told so."""
    outcome = Outcome("answered_at_desk", AT_1812, (("PostgreSQL",),), "timer")
    alone = entry(DATABASE, state=settled(outcome, None))
    told = "⌛ No answer to **Database** in time; the timer of OpenCode on laptop decided: **PostgreSQL**. #k7"
    assert said(alone) == {"expired": told}
    assert sides(alone, LOOK)["expired"].ring
    several = entry(DATABASE, DATABASE, state=settled(outcome, None))
    told = "⌛ Not all answers to **Database** and 1 more in time; the timer of OpenCode on laptop decided. #k7"
    assert said(several) == {"expired": told}
    none = entry(DATABASE, state=settled(replace(outcome, answers=((),)), None))
    told = "⌛ No answer to **Database** in time; OpenCode on laptop went on without one. #k7"
    assert said(none) == {"expired": told}
    late = entry(DATABASE, state=settled(outcome, SQLITE))
    assert said(late) == {"too_late": "Your answer **SQLite** came too late: the agent's own timer had decided. #k7"}


def test_an_end_that_nobody_answered_needs_no_word_beside() -> None:
    """The main message says it, and no person's answer was lost."""
    kinds: tuple[OutcomeKind, ...] = ("gone", "answered_at_desk", "rejected_at_desk")
    for kind in kinds:
        outcome = Outcome(kind, AT_1812)
        assert said(entry(DATABASE, state=settled(outcome))) == {}
        assert said(entry(DATABASE, state=settled(outcome, replace(STOP, by=None)))) == {}


def test_a_text_that_waited_for_a_tap_was_not_used() -> None:
    """Its writer must not believe otherwise: a new message says so, from the decision on, since an edit is silent."""
    offer = Offer(0, ANN, 77, "use *DuckDB*\nplease")
    kinds: tuple[OutcomeKind, ...] = ("gone", "answered_at_desk", "expired")
    states = [settled(Outcome(kind, AT_1812)) for kind in kinds]
    for state in (*states, settled(Outcome("answered", AT_1812), SQLITE), State("sending", decision=STOP)):
        over = entry(DATABASE, state=replace(state, offer=offer))
        assert said(over)["offer"] == "⚠️ Your text “use *DuckDB* please” was not used. #k7"
        side = sides(over, LOOK)["offer"]
        assert (side.ring, side.lasting, side.fresh) == (True, True, True)


def test_a_text_that_says_what_was_answered_needs_no_word() -> None:
    """The person wrote it, and then tapped that option, or replied with it."""
    outcome = Outcome("answered", AT_1812)
    same = replace(settled(outcome, SQLITE), offer=Offer(0, ANN, 77, "SQLite"))
    words = Decision("answer", AT_1812, (Answer((), "DuckDB"),), ANN)
    replied = replace(settled(outcome, words), offer=Offer(0, ANN, 77, "DuckDB"))
    assert said(entry(DATABASE, state=same)) == said(entry(DATABASE, state=replied)) == {}


def test_a_refusal_is_called_one() -> None:
    """Where a no does not stop the agent."""
    late = entry(NAME, state=settled(Outcome("rejected", AT_1812), STOP, away=True), capabilities=GOES_ON)
    assert said(late)["delivered"] == "✅ Delivered to Fix login flow: **Refusal** · #k7"

"""The message of an open ask, as a person reads it: every screen of the dialog."""

import re
from dataclasses import replace

import pytest

from hermes.chat.screens.buttons import decode
from hermes.chat.screens.main_message import main
from hermes.chat.screens.screen import Screen
from hermes.core.answers import utf16_units
from hermes.model.actions import Arm, AskTwice, Back, ClearText, Confirmed, Go, Pick, Send, Shelve
from hermes.model.answer import Answer
from hermes.model.ask import Option, Question, Source
from hermes.model.entry import Timing
from hermes.model.state import Armed, Joining, State
from tests.chat.screens import entries
from tests.chat.screens.entries import ANN, DATABASE, GIVEN, GOES_ON, LOOK, NAME, SIZES, THREE, UNTIL_1840, entry
from tests.chat.screens.show import shown

ORIGIN = "shop-api · Fix login flow · OpenCode on laptop · waits until 18:40 · #k7"
OWN = "[ ✏️ Other ]  [ ⏭ Skip ]  [ ⏹ Stop ]"
NONE = (Answer(), Answer(), Answer())
LAST_WORDS = "…the schema is small and there is one writer, so either of the first two would do."


def given_so_far(page: int = 0, answers: tuple[Answer, ...] = GIVEN, **more: object) -> State:
    """Return the state of the three questions at a page."""
    return replace(State(page=page, answers=answers), **more)  # type: ignore[arg-type]


def actions(screen: Screen) -> dict[str, object]:
    """Return what each button means."""
    return {button.text: decode(button.data)[2] for row in screen.rows for button in row}


def test_one_choice() -> None:
    """First what is wanted, then the choices, then where it comes from."""
    asked = entry(DATABASE, source=replace(entries.SOURCE, last_text=LAST_WORDS))
    assert (
        shown(main(asked, LOOK))
        == f"""\
**Database**
Which database should I use?
1 **PostgreSQL** – relational, robust
2 **SQLite** ⭐ – zero configuration
3 **Redis** – in memory
›{LAST_WORDS}
{ORIGIN}
[ PostgreSQL ]
[ SQLite ⭐ ]
[ Redis ]
{OWN}"""
    )


def test_a_tap_on_a_choice_names_the_option_by_its_place() -> None:
    """And the epoch of the page; what the button says is only for the eye."""
    screen = main(entry(DATABASE, state=State(answers=(Answer(),), epoch=7)), LOOK)
    assert [decode(button.data) for row in screen.rows[:3] for button in row] == [
        ("e1", 7, Pick(0, at)) for at in range(3)
    ]
    assert [decode(button.data)[2] for button in screen.rows[3]] == [Arm(0), AskTwice("skip"), AskTwice("reject")]


def test_one_multiple_question() -> None:
    """Boxes have an absolute effect, and Done says how much goes."""
    screen = main(entry(SIZES, state=State(answers=(GIVEN[1],))), LOOK)
    assert (
        shown(screen)
        == f"""\
**Sizes**
Which sizes? _Choose any._
☑ 1 **S** – small
☐ 2 **M** – medium
☑ 3 **L** – large
✏️ “XXL, but only in blue”
{ORIGIN}
[ ☑ S ]  [ ☐ M ]  [ ☑ L ]
[ Done (3) ]
[ ✖ Without “XXL, but only in blue” ]
{OWN}"""
    )
    meant = actions(screen)
    assert [meant[text] for text in ("☑ S", "☐ M", "☑ L")] == [Pick(0, 0, on=False), Pick(0, 1), Pick(0, 2, on=False)]
    assert (meant["Done (3)"], meant["✖ Without “XXL, but only in blue”"]) == (Send(), ClearText(0))


def test_done_with_nothing_chosen_takes_two_taps() -> None:
    """An answer without an answer is seldom meant."""
    screen = main(entry(SIZES), LOOK)
    assert actions(screen)["Done (nothing chosen)"] == AskTwice("send")
    sure = main(entry(SIZES, state=State(answers=(Answer(),), confirm="send")), LOOK)
    assert (
        shown(sure)
        == f"""\
**Sizes** – Which sizes?
**Send without any answer?**
{ORIGIN}
[ Yes, send ]  [ Back ]"""
    )


def test_a_page_of_several_questions() -> None:
    """Its place, the marks of all, what was picked, and the ways on."""
    screen = main(entry(*THREE, state=given_so_far(1, (GIVEN[0], Answer((0, 2)), Answer()))), LOOK)
    assert (
        shown(screen)
        == f"""\
● Colour  **● Sizes**  ○ Name  (2/3)
**Sizes** – Which sizes? _Choose any._
☑ 1 **S** – small
☐ 2 **M** – medium
☑ 3 **L** – large
{ORIGIN}
[ ☑ S ]  [ ☐ M ]  [ ☑ L ]
[ ◀ Colour ]  [ Name ▶ ]
{OWN}"""
    )
    assert (actions(screen)["◀ Colour"], actions(screen)["Name ▶"]) == (Go(0), Go(2))


def test_a_choice_that_was_made_is_marked_when_one_comes_back() -> None:
    """A tap on it keeps it and moves on, as at first."""
    screen = main(entry(*THREE, state=given_so_far()), LOOK)
    assert (
        shown(screen)
        == f"""\
**● Colour**  ● Sizes  ○ Name  (1/3)
**Colour** – Which colour?
1 **Red**
● 2 **Blue**
{ORIGIN}
[ Red ]
[ ● Blue ]
[ Sizes ▶ ]
{OWN}"""
    )
    assert actions(screen)["● Blue"] == Pick(0, 1)


def test_the_last_page_leads_to_the_review() -> None:
    """A question without choices says how to answer it."""
    screen = main(entry(*THREE, state=given_so_far(2)), LOOK)
    assert (
        shown(screen)
        == f"""\
● Colour  ● Sizes  **○ Name**  (3/3)
**Name** – What is it called?
_Reply to this message with your answer._
{ORIGIN}
[ ◀ Sizes ]  [ Review ▶ ]
[ ✏️ Answer ]  [ ⏭ Skip ]  [ ⏹ Stop ]"""
    )


def test_the_review() -> None:
    """Each answer, a warning for what is missing, each in reach of a tap."""
    screen = main(entry(*THREE, state=given_so_far(3)), LOOK)
    assert (
        shown(screen)
        == f"""\
**Ready to send?**
1 Colour: **Blue**
2 Sizes: **S, L, “XXL, but only in blue”**
3 Name: ⚠️ no answer yet
{ORIGIN}
[ 1 ]  [ 2 ]  [ 3 ⚠️ ]
[ Send without answer 3 ]
[ ⏭ Skip ]  [ ⏹ Stop ]"""
    )
    assert (actions(screen)["3 ⚠️"], actions(screen)["Send without answer 3"]) == (Go(2), AskTwice("send"))


def test_a_complete_review_is_sent_by_one_tap() -> None:
    """Nothing is missing, so nothing is asked twice."""
    full = (*GIVEN[:2], Answer((), "Bob"))
    assert actions(main(entry(*THREE, state=given_so_far(3, full)), LOOK))["Send"] == Send()


def test_sending_with_an_answer_missing_is_asked_twice() -> None:
    """The second tap says what it does."""
    screen = main(entry(*THREE, state=given_so_far(3, confirm="send")), LOOK)
    assert (
        shown(screen)
        == f"""\
1 Colour: **Blue**
2 Sizes: **S, L, “XXL, but only in blue”**
3 Name: ⚠️ no answer yet
**Send without answer 3?**
{ORIGIN}
[ Yes, send ]  [ Back ]"""
    )
    assert actions(screen) == {"Yes, send": Confirmed("send"), "Back": Back()}


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ((), "Send without any answer"),
        ((0,), "Send without answers 2, 3, 4 and 5"),
        ((0, 1, 2), "Send without answers 4 and 5"),
        (range(5), "Send"),
    ],
)
def test_send_says_what_is_missing(answered: tuple[int, ...], said: str) -> None:
    """By number, as the list and the buttons above it do."""
    answers = tuple(Answer((0,) if at in answered else ()) for at in range(5))
    state = State(page=5, answers=answers)
    assert main(entry(*[DATABASE] * 5, state=state), LOOK).rows[-2][0].text == said


def test_many_missing_answers_are_counted() -> None:
    """A button is no place for a list."""
    state = State(page=9, answers=(Answer((0,)), *[Answer()] * 8))
    assert main(entry(*[DATABASE] * 9, state=state), LOOK).rows[-2][0].text == "Send without 8 answers"


def test_an_answer_that_came_meanwhile_is_no_longer_missing() -> None:
    """A typed label can arrive between the two taps."""
    screen = main(entry(SIZES, state=State(answers=(GIVEN[1],), confirm="send")), LOOK)
    assert "**Send it?**" in shown(screen)


def test_writing_is_shown_while_it_lasts() -> None:
    """Armed, and while the parts of a long text come in."""
    armed = main(entry(DATABASE, state=State(answers=(Answer(),), armed=Armed(0, 11))), LOOK)
    assert "_✏️ Waiting for your text…_" in shown(armed)
    assert actions(armed)["✏️ Cancel typing"] == Arm(0, on=False)
    joining = main(entry(DATABASE, state=State(answers=(Answer(),), joining=Joining(0, ANN, ()))), LOOK)
    assert "_✏️ …receiving your text_" in shown(joining)


def test_stop_and_skip_are_asked_twice_in_the_agents_own_terms() -> None:
    """A no that ends the turn, a skip, and a no that lets it carry on."""
    stop = main(entry(DATABASE, state=State(answers=(Answer(),), confirm="reject")), LOOK)
    assert (
        shown(stop)
        == f"""\
**Database** – Which database should I use?
**Stop the agent?** It ends its turn here.
{ORIGIN}
[ Yes, stop ]  [ Back ]"""
    )
    skip = shown(main(entry(*THREE, state=State(answers=NONE, confirm="skip")), LOOK))
    assert skip.startswith("**Colour** and 2 more\n**Let it decide by itself?**\n")
    assert skip.endswith("\n[ Yes ]  [ Back ]")
    refuse = entry(DATABASE, state=State(answers=(Answer(),), confirm="reject"), capabilities=GOES_ON)
    assert "**Refuse?** It will be told no and carry on." in shown(main(refuse, LOOK))
    assert actions(main(refuse, LOOK))["Yes, refuse"] == Confirmed("reject")


def test_an_agent_offers_only_what_it_can() -> None:
    """No skip where it cannot, refuse where a no does not stop it, no ✏️ where only labels count."""
    screen = main(entry(replace(DATABASE, custom=False), capabilities=GOES_ON), LOOK)
    assert [button.text for button in screen.rows[-1]] == ["✋ Refuse"]


def test_an_ask_without_questions_wants_a_go_ahead() -> None:
    """OpenCode can ask nothing at all, and waits all the same."""
    screen = main(entry(), LOOK)
    assert (
        shown(screen)
        == f"""\
**Go on?**
It asks nothing in particular; let it go on?
{ORIGIN}
[ Let it go on ]
[ ⏹ Stop ]"""
    )
    assert actions(screen)["Let it go on"] == Send()
    assert shown(main(entry(state=State(confirm="reject")), LOOK)).startswith("**Go on?**\n**Stop the agent?**")


def test_what_cannot_be_answered_here_has_no_buttons() -> None:
    """One question with its options, several as a list."""
    assert (
        shown(main(entry(DATABASE, answerable=False), LOOK))
        == f"""\
**Database**
Which database should I use?
1 **PostgreSQL** – relational, robust
2 **SQLite** ⭐ – zero configuration
3 **Redis** – in memory
**🖥 Please answer this one on the computer.**
{ORIGIN}"""
    )
    assert (
        shown(main(entry(*THREE, answerable=False), LOOK))
        == f"""\
1 **Colour** – Which colour?
2 **Sizes** – Which sizes?
3 **Name** – What is it called?
**🖥 Please answer this one on the computer.**
{ORIGIN}"""
    )
    assert not main(entry(answerable=False), LOOK).rows


# --- names, labels, lists ----------------------------------------------------------------------


def test_without_a_header_the_question_is_the_heading() -> None:
    """Short ones bold; a long one is not shouted."""
    assert shown(main(entry(replace(DATABASE, header=" ")), LOOK)).startswith("**Which database should I use?**\n1 ")
    assert shown(main(entry(replace(NAME, header=NAME.text)), LOOK)).startswith("**What is it called?**\n_Reply")
    long = "Which one of these? " * 10
    assert shown(main(entry(replace(DATABASE, header="", text=long)), LOOK)).startswith("Which one of these? Which")
    page = shown(main(entry(replace(SIZES, header="", text="")), LOOK))
    assert page.startswith("**Question**\n_Choose any._\n")
    second = main(entry(DATABASE, Question(""), state=State(page=1, answers=(Answer(), Answer()))), LOOK)
    assert shown(second).startswith("○ Database  **○ Question 2**  (2/2)\n**Question 2**\n")


def test_labels_may_be_empty_repeated_and_long() -> None:
    """The list is numbered, and then so are the buttons."""
    labels = ("", "same", "same", "a label that goes on and on and on, to the very end")
    screen = main(entry(Question("Which?", "", tuple(map(Option, labels)), custom=False)), LOOK)
    assert (
        shown(screen)
        == f"""\
**Which?**
1 **(empty)**
2 **same**
3 **same**
4 **a label that goes on and on and on, to the very end**
{ORIGIN}
[ 1 (empty) ]
[ 2 same ]
[ 3 same ]
[ 4 a label that goes on and on… ]
[ ⏭ Skip ]  [ ⏹ Stop ]"""
    )


def test_no_choice_and_no_text_leaves_only_skip_and_stop() -> None:
    """Nothing can be chosen where nothing is offered."""
    screen = main(entry(replace(NAME, custom=False)), LOOK)
    assert "_It offers nothing to choose from._" in shown(screen)
    assert [button.text for row in screen.rows for button in row] == ["⏭ Skip", "⏹ Stop"]


def test_an_option_cannot_pose_as_a_button_of_hermes() -> None:
    """Own buttons stand in rows of their own, below."""
    posing = Question("?", "H", (Option("⏹ Stop"), Option("✏️ Other")), multiple=True)
    screen = main(entry(posing), LOOK)
    assert [[type(decode(button.data)[2]) for button in row] for row in screen.rows] == [
        [Pick, Pick],
        [AskTwice],
        [Arm, AskTwice, AskTwice],
    ]


def sixty(shelf: int, *, multiple: bool = False, picks: tuple[int, ...] = ()) -> Screen:
    """Return the page of a question with sixty options."""
    options = tuple(Option(f"Option {number}") for number in range(1, 61))
    question = Question("Which of these sixty?", "Sixty", options, multiple=multiple)
    return main(entry(question, state=State(answers=(Answer(picks),), shelf=shelf)), LOOK)


def test_a_long_list_is_shown_in_parts() -> None:
    """Numbers go on, and both ways are there."""
    first, second, last = (sixty(shelf) for shelf in range(3))
    assert "_1–24 of 60_\n1 **Option 1**\n" in shown(first)
    assert actions(first)["More ▶ (25–48 of 60)"] == Shelve(1)
    assert "_25–48 of 60_\n25 **Option 25**\n" in shown(second)
    assert [button.text for button in second.rows[-2]] == ["◀ 1–24", "More ▶ (49–60 of 60)"]
    assert actions(second)["Option 48"] == Pick(0, 47)
    assert [button.text for button in last.rows[-2]] == ["◀ 25–48"]
    assert sixty(99) == last, "a shelf that is not there is the last one"


def test_what_was_chosen_in_another_part_is_said() -> None:
    """Out of sight is not out of the answer."""
    assert "_Also chosen: 1, 60_" in shown(sixty(1, multiple=True, picks=(0, 59, 30)))
    assert "☑ 31 **Option 31**" in shown(sixty(1, multiple=True, picks=(0, 59, 30)))


def test_names_that_have_no_room_become_marks() -> None:
    """The current one keeps its name; a very long line shows its surroundings."""
    asked = [replace(DATABASE, header=f"Question number {number}") for number in range(30)]
    answers = tuple(Answer((0,) if number % 2 else ()) for number in range(30))
    few = shown(main(entry(*asked[:6], state=State(page=2, answers=answers[:6])), LOOK))
    assert few.startswith("○  ●  **○ Question…**  ●  ○  ●  (3/6)\n")
    many = shown(main(entry(*asked, state=State(page=15, answers=answers)), LOOK))
    assert many.splitlines()[0] == "… ●  ○  ●  ○  ●  ○  ●  ○  **● Question…**  ○  ●  ○  ●  ○  ●  ○  ●  …  (16/30)"


def test_a_review_of_very_many_shows_the_unanswered() -> None:
    """All the others are reached by leafing."""
    answers = tuple(Answer((0,) if number < 90 else ()) for number in range(100))
    screen = main(entry(*[DATABASE] * 100, state=State(page=100, answers=answers)), LOOK)
    assert "\n100 Database: ⚠️ no answer yet\n… and 60 more\n" in shown(screen)
    assert "100 ⚠️" in actions(screen)


def test_the_origin_names_what_is_known() -> None:
    """A subagent's root session, a Windows path, and no blank places."""
    sub = Source("x", "", "s", "C:\\code\\shop api\\", session_title="Find usages", root_title="Fix login")
    asked = entry(DATABASE, source=sub, timing=Timing())
    assert shown(main(asked, LOOK)).splitlines()[4:6] == [
        "3 **Redis** – in memory",
        "shop api · Fix login › Find usages · OpenCode · #k7",
    ]
    bare = Source("x", "", "s", "/", session_title="", root_title="Root")
    nameless = replace(entry(DATABASE, source=bare).ask, capabilities=replace(entries.OPENCODE, agent_name=""))
    told = shown(main(replace(asked, ask=nameless), LOOK))
    assert "/ · Root · The agent · #k7" in told


def test_the_time_names_its_day_where_it_is_not_today() -> None:
    """18:40 tomorrow is not 18:40."""
    for later_s, said in ((0, "18:40"), (86_400, "Thu 18:40"), (10 * 86_400, "14 Mar 18:40")):
        asked = entry(DATABASE, timing=Timing(until_s=UNTIL_1840 + later_s))
        assert f"· waits until {said} ·" in main(asked, LOOK).text


def test_an_agent_that_gives_up_earlier_is_said_to() -> None:
    """Once the message is on the phone: its time, where the phone would wait longer than the agent."""
    can = replace(entries.OPENCODE, gives_up_after_s=3600)
    for until_s, said in (
        (UNTIL_1840, "waits until 18:40"),
        (UNTIL_1840 + 7200, "OpenCode may give up at 19:10"),
        (None, "OpenCode may give up at 19:10"),
    ):
        asked = entry(DATABASE, capabilities=can, timing=Timing(posted_s=entries.ASKED_S, until_s=until_s))
        assert f"· {said} ·" in main(asked, LOOK).text
    assert "give up" not in main(entry(DATABASE, capabilities=can, timing=Timing()), LOOK).text


def test_last_words_are_cut_at_their_beginning() -> None:
    """As many as were asked for; none is none."""
    source = replace(entries.SOURCE, last_text="blah " * 200 + "so which one?")
    quote = re.search("›(.*)", shown(main(entry(DATABASE, source=source), replace(LOOK, context_chars=50))))
    assert quote
    assert quote[1].startswith("…blah")
    assert quote[1].endswith("so which one?")
    assert utf16_units(quote[1]) <= 50
    assert "blah" not in main(entry(DATABASE, source=source), replace(LOOK, context_chars=0)).text

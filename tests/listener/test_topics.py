"""Topics, in a private chat and in a group: where the messages about three sessions stand, and whom a text reaches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from hermes.core.routing import TYPING_S
from hermes.hook import spool
from hermes.listener.phone.topics import PAUSE_S
from hermes.sandbox.botapi import Chat
from tests.listener.gates import held
from tests.listening import ANN, BOB, a_request, living, question, until
from tests.prompted import PROMPTS, Desked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes.model.ask import Source
    from hermes.sandbox.phone_values import ShownMessage

TEAM: Final = -1001234567890
FORUM: Final = Chat(TEAM, "Team", forum=True, standing="administrator", manages_topics=True)
QUESTION: Final = "Which database?"


class Office(Desked):
    """A desk whose chat has topics."""

    @property
    def chat(self) -> int:
        """The chat."""
        return self.home.chat_id

    async def open(self, topics: str = "session", **sections: Any) -> None:
        """Start the listener with this setting."""
        telegram = self.home.config().telegram
        table = {"token": telegram.token.get_secret_value(), "chat_id": self.chat, "users": telegram.users}
        table |= {"api_base": telegram.api_base, "topics": topics}
        await self.start(**{**PROMPTS, **sections, "telegram": table})

    async def reopen(self, topics: str = "session", **sections: Any) -> None:
        """Stop the listener, and start it with this setting."""
        await self.home.stop()
        await self.open(topics, **sections)

    def topics(self) -> dict[str, int]:
        """The topics of the chat, by their names."""
        world = self.home.api.control.world
        return {one.name: one.thread_id for one in world.topics.values() if one.chat_id == self.chat}

    def session(self, title: str, directory: str = "/home/dev/shop") -> Source:
        """Begin a session at the desk of this machine."""
        source = replace(self.desk.session(title, directory), machine=spool.machine(self.home.store))
        self.desk.sessions[source.session_id].source = source
        return source

    async def ask(self, source: Source, request_id: str, text: str = QUESTION, **context: str) -> ShownMessage:
        """Let a session ask; the message on the phone, once it is noted."""
        request = a_request(request_id, question(text), session=source.session_id, call=f"call_{request_id}")
        known = {one.message_id for one in self.home.person.shown(self.chat)}
        titles = {"title": source.session_title, **context}
        self.home.hook("question.asked", request, directory=source.directory, context=titles)

        def there() -> ShownMessage | None:
            shown = [one for one in self.home.person.shown(self.chat) if one.message_id not in known]
            return next((one for one in shown if text in one.text and one.rows), None)

        asked = await until(there, f"the question {text!r}")
        await self.home.noted(asked)
        return asked

    def received(self) -> list[tuple[str, str]]:
        """The prompts that came, each with its session."""
        return [(session_id, content.text) for session_id, content in self.desk.received]

    async def told(self, source: Source, words: str = "Both tests pass now.") -> ShownMessage:
        """Let a turn of a session end; the notice."""
        return await self.notice(source, words, chat=self.chat)

    def write(self, text: str, thread_id: int | None = None, **more: Any) -> int:
        """Write a text in a topic."""
        return self.home.person.write(text, thread_id=thread_id, chat_id=self.chat, **more)

    async def answer(self, message_id: int) -> ShownMessage:
        """Wait for a message of the bot that replies to this text."""

        def there() -> ShownMessage | None:
            return next((one for one in self.home.person.shown(self.chat) if one.reply_to == message_id), None)

        return await until(there, "a reply")


@pytest.fixture(params=[ANN.id, TEAM], ids=["private", "group"])
async def office(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    """A chat with topics, of each kind."""
    chats = [Chat(ANN.id), FORUM]
    async with living(tmp_path, chats=chats, chat_id=request.param, topics_mode=True, sections=PROMPTS) as home:
        yield Office(home)


async def test_a_new_session_that_was_wished_for_in_a_topic_begins_with_the_next_text_there(tmp_path: Path) -> None:
    """And not the session of the topic."""
    async with living(tmp_path, chats=[Chat(ANN.id)], chat_id=ANN.id, topics_mode=True, sections=PROMPTS) as home:
        office = Office(home)
        await office.open()
        source = office.session("Fix login")
        await office.told(source)
        thread_id = office.topics()["Fix login"]
        office.write("/new", thread_id)
        await home.person.taps(await home.person.sees("Where should"), "shop")
        await home.person.sees("Type your prompt for a new session")
        office.write("Begin", thread_id)
        await office.came("Begin")
        assert office.received()[0][0] != source.session_id


async def test_three_sessions_stand_in_their_topics(office: Office) -> None:
    """Questions, notices, prompts and their lines; a text in a topic reaches its session and no other."""
    await office.open()
    sources = [office.session(title) for title in ("Fix login", "Release two", "Write docs")]
    asked = [await office.ask(one, f"que_{number}") for number, one in enumerate(sources)]
    topics = [office.topics()[one.session_title] for one in sources]
    assert [one.thread_id for one in asked] == topics
    for source, thread_id in zip(sources, topics, strict=True):
        assert (await office.told(source)).thread_id == thread_id
        office.write(f"more {source.session_title}", thread_id)
    await until(lambda: len(office.desk.received) == 3, "the prompts")
    for source in sources:
        assert (source.session_id, f"more {source.session_title}") in office.received()
    for message in office.home.person.shown(office.chat):
        assert message.thread_id in topics, message.text
    assert len(office.topics()) == 3
    answered = await office.home.person.taps(asked[1], "SQLite")
    assert answered == "SQLite"


async def test_a_text_after_the_pencil_is_the_answer_only_in_its_topic(office: Office) -> None:
    """In another topic it is a prompt to the session there."""
    await office.open()
    one, other = office.session("Fix login"), office.session("Release two")
    asked = await office.ask(one, "que_1")
    await office.told(other)
    await office.home.person.taps(asked, "Other")
    office.write("make it so", office.topics()["Release two"])
    await office.came("make it so")
    office.write("let's take DuckDB", office.topics()["Fix login"])
    entry = await office.home.phase("sending")
    assert entry.state.decision is not None
    assert entry.state.decision.answers[0].text == "let's take DuckDB"
    assert office.desk.texts() == ["make it so"]


async def test_a_reply_in_a_topic_is_what_it_is_elsewhere(office: Office) -> None:
    """To a question it is the answer, to a notice a prompt."""
    await office.open()
    source = office.session("Fix login")
    notice, asked = await office.told(source), await office.ask(source, "que_1")
    office.home.person.write("go on", to=notice, chat_id=office.chat)
    await office.came("go on")
    office.home.person.write("DuckDB", to=asked, chat_id=office.chat)
    await office.home.phase("sending")
    assert office.desk.texts() == ["go on"]


async def overtaken(office: Office, *, by_subagent: bool = False) -> tuple[Source, ShownMessage]:
    """Let a question be answered at the computer while a person types; its session (the root) and its message."""
    source = asking = office.session("Fix login")
    await office.told(source)
    root = {}
    if by_subagent:
        asking = office.session("look (@general subagent)")
        root = {"rootID": source.session_id, "rootTitle": source.session_title}
    asked = await office.ask(asking, "que_1", "Delete the database?", **root)
    await office.home.person.taps(asked, "✏️ Other")
    replied = {"requestID": "que_1", "sessionID": asking.session_id, "answers": [["SQLite"]]}
    office.home.hook("question.replied", replied)
    await until(lambda: all(one.state.phase == "settled" for one in office.home.entries()), "the end of the question")
    return source, asked


@pytest.mark.parametrize("by_subagent", [False, True], ids=["session", "subagent"])
@pytest.mark.parametrize("is_closed", [False, True], ids=["settled", "closed"])
async def test_an_answer_that_comes_too_late_is_no_prompt(office: Office, is_closed: bool, by_subagent: bool) -> None:
    """The question was answered at the computer while the person typed; the next text is a prompt again."""
    await office.open()
    entries: Any = office.home.listener._parts.entries
    async with held(entries, "close") as gate:
        source, asked = await overtaken(office, by_subagent=by_subagent)
        if is_closed:
            gate.open()
            await office.home.closed()
        offered = await office.answer(office.write("Yes, delete it", asked.thread_id))
    assert "What is this for?" in offered.text
    office.home.clock.advance(TYPING_S + 1)  # Telegram's dates are whole seconds
    office.write("go on", asked.thread_id)
    await office.came("go on")
    assert office.received() == [(source.session_id, "go on")]


async def test_an_answer_that_hermes_reads_minutes_later_is_no_prompt_either(office: Office) -> None:
    """It was away from Telegram when the person sent it."""
    await office.open()
    _, asked = await overtaken(office)
    await office.home.stop()
    text = office.write("Yes, delete it", asked.thread_id)
    office.home.clock.advance(2 * TYPING_S)
    await office.open()
    assert "What is this for?" in (await office.answer(text)).text
    assert office.received() == []


async def test_who_has_answered_goes_on_by_a_prompt(office: Office) -> None:
    """At once: that text is no answer that comes too late."""
    await office.open()
    source = office.session("Fix login")
    await office.told(source)
    asked = await office.ask(source, "que_1")
    await office.home.person.taps(asked, "SQLite")
    await office.home.phase("sending")
    told = {"requestID": "que_1", "sessionID": source.session_id, "answers": [["SQLite"]]}
    office.home.hook("question.replied", told, directory=source.directory)
    await office.home.closed()
    office.write("and write a test", asked.thread_id)
    await office.came("and write a test")


async def test_a_text_that_is_forwarded_to_a_topic_is_offered(office: Office) -> None:
    """Others may have written it. Its session comes first."""
    await office.open()
    office.session("Add tests")
    thread_id = (await office.told(office.session("Fix login"))).thread_id
    forward(office, thread_id)
    asked = await office.home.person.sees("What is this for?", chat=office.chat)
    await office.home.person.taps(asked, "Fix login")
    await office.came("The log says: no such table")


def forward(office: Office, thread_id: int | None) -> None:
    """Forward a text to a topic."""
    message = {"message_id": 900, "date": int(office.home.clock.now()), "text": "The log says: no such table"}
    message["chat"] = {"id": office.chat, "type": "supergroup" if office.chat < 0 else "private", "is_forum": True}
    message["from"] = {"id": ANN.id, "is_bot": False, "first_name": "Ann"}
    message |= {"message_thread_id": thread_id, "is_topic_message": True}
    bob = {"id": BOB.id, "is_bot": False, "first_name": "Bob"}
    message["forward_origin"] = {"type": "user", "sender_user": bob, "date": message["date"]}
    office.home.api.control.inject({"message": message})


async def test_a_text_to_a_topic_is_told_of_the_lock(office: Office) -> None:
    """It would be a prompt; what is forwarded there, too, by a tap. Elsewhere in a group people talk to each other."""
    await office.open()
    thread_id = (await office.told(office.session("Fix login flow"))).thread_id
    await office.store.lock_phone()
    talk = office.write("Lunch?")
    text = office.write("Rename it", thread_id)
    forward(office, thread_id)
    meant = [talk, text, 900] if office.chat == ANN.id else [text, 900]

    def told() -> list[int | None]:
        shown = office.home.person.shown(office.chat)
        return [one.reply_to or 900 for one in shown if "🔒 Locked" in one.text]

    await until(lambda: len(told()) == len(meant), "all told")
    assert told() == meant
    assert office.prompts() == []


async def test_a_command_in_a_topic_is_no_prompt(office: Office) -> None:
    """Whatever is written behind it; nor, in a group, is one that names another bot."""
    await office.open()
    await until(lambda: office.home.api.control.calls("setMyCommands"), "the name of the bot")
    thread_id = (await office.told(office.session("Fix login"))).thread_id
    if office.chat < 0:
        office.write("/poll@another_bot Lunch at noon?", thread_id)
    office.write("/new with the other tests", thread_id)
    await office.home.person.sees("Where should", chat=office.chat)
    office.write("/lock now", thread_id)
    await office.home.person.sees("hermes unlock", chat=office.chat)
    assert await office.store.is_phone_locked()
    assert not office.prompts()


async def test_a_topic_whose_session_takes_no_prompt_says_so(office: Office) -> None:
    """With prompts off, and if the project is not one of those that the phone may write to."""
    await office.open(prompts={"enabled": True, "projects": ["elsewhere"]})
    await office.told(office.session("Fix login"))
    thread_id = office.topics()["Fix login"]
    said = await office.answer(office.write("go on", thread_id))
    assert (said.thread_id, "takes no prompts from this phone" in said.text) == (thread_id, True)
    await office.reopen(prompts={"enabled": False})
    said = await office.answer(office.write("go on", thread_id))
    assert "may not write to agents" in said.text
    assert office.desk.received == []


async def test_what_belongs_to_no_session_stands_in_the_main_list(office: Office) -> None:
    """The answers to commands, where these were written; a text in a topic of somebody else is no prompt."""
    await office.open()
    await office.told(office.session("Fix login"))
    said = await office.answer(office.write("/status"))
    assert said.thread_id is None
    theirs = office.home.api.control.topic("make", name="Talk", chat_id=office.chat)
    office.write("good morning", theirs)
    office.write("good evening")
    await office.home.polled()
    assert office.desk.received == []
    assert [one for one in office.prompts() if one.target] == []


async def test_a_subagent_asks_in_the_topic_of_its_root_session(office: Office) -> None:
    """Its own session has none."""
    await office.open()
    source = office.session("Fix login")
    await office.told(source)
    child = replace(source, session_id="ses_child", session_title="Look at tests (@explore)")
    asked = await office.ask(child, "que_1", rootTitle="Fix login", rootID=source.session_id)
    assert (asked.thread_id, len(office.topics())) == (office.topics()["Fix login"], 1)


async def test_names(office: Office) -> None:
    """Two sessions of one name get two names; a session that is renamed renames its topic; none is too long."""
    await office.open()
    first, second = office.session("Fix login"), office.session("Fix login")
    await office.told(first)
    await office.told(second)
    assert set(office.topics()) == {"Fix login", "Fix login (2)"}
    thread_id = office.topics()["Fix login"]
    await office.ask(replace(first, session_title="Mend\u202e the " + "login " * 40), "que_1")
    await until(lambda: "Fix login" not in office.topics(), "the new name")
    (name,) = [name for name in office.topics() if name != "Fix login (2)"]
    assert (office.topics()[name], name.startswith("Mend the login"), len(name) <= 128) == (thread_id, True, True)


async def test_questions_at_the_same_time_share_a_topic(office: Office) -> None:
    """It is made once, although that takes a while."""
    await office.open()
    office.home.api.control.fault(method="createForumTopic", retry_after_s=1)
    for number in range(3):
        request = a_request(f"que_{number}", question(f"Number {number}?"), call=f"call_{number}")
        office.home.hook("question.asked", request, context={"title": "Fix login"})
    asked = [await office.home.person.sees(f"Number {number}?", chat=office.chat) for number in range(3)]
    assert {one.thread_id for one in asked} == {office.topics()["Fix login"]}
    assert [one.status for one in office.home.api.control.calls("createForumTopic")] == [429, 200]


async def test_topics_are_known_after_a_restart(office: Office) -> None:
    """The same topic is used again."""
    await office.open()
    source = office.session("Fix login")
    asked = await office.ask(source, "que_1")
    await office.reopen()
    assert (await office.told(source)).thread_id == asked.thread_id
    office.write("go on", asked.thread_id)
    await office.came("go on")


# --- topics that are gone, or cannot be made --------------------------------------------------------------------------


async def test_a_deleted_topic_is_made_again(office: Office) -> None:
    """Before a message, and between a question and its edit: the question is posted again, into the new topic."""
    await office.open()
    source = office.session("Fix login")
    asked = await office.ask(source, "que_1")
    old = office.topics()["Fix login"]
    pencil = asked.button("Other").data
    office.home.api.control.topic("delete", thread_id=old, chat_id=office.chat)
    office.home.person.tap(asked, data=pencil)
    again = await office.home.person.sees(QUESTION, buttons=True, chat=office.chat)
    new = office.topics()["Fix login"]
    assert (again.thread_id, new != old) == (new, True)
    await office.home.noted(again)
    await until(lambda: office.home.entry().phone.thread_id == new, "the new topic noted")
    office.home.api.control.topic("delete", thread_id=new, chat_id=office.chat)
    notice = await office.told(source)
    assert notice.thread_id == office.topics()["Fix login"]
    assert len(office.topics()) == 1


async def test_a_request_to_type_that_went_with_its_topic_is_posted_again(tmp_path: Path) -> None:
    """In a group nobody could reply to it any more."""
    async with living(tmp_path, chats=[FORUM], chat_id=TEAM, topics_mode=True, sections=PROMPTS) as home:
        office = Office(home)
        await office.open()
        asked = await office.ask(office.session("Fix login"), "que_1")
        await home.person.taps(asked, "✏️ Other")
        first = await home.person.sees("Reply to this", chat=TEAM)
        await until(lambda: [side.message_id for side in home.entry().phone.sides] == [first.message_id], "it noted")
        home.api.control.topic("delete", thread_id=asked.thread_id or 0, chat_id=TEAM)
        office.write("/open")
        again = await home.person.sees(QUESTION, buttons=True, chat=TEAM)
        request = await home.person.sees("Reply to this", chat=TEAM)
        assert again.thread_id == request.thread_id == office.topics()["Fix login"]
        home.person.write("DuckDB", to=request, chat_id=TEAM, thread_id=request.thread_id)
        await home.person.sees("“DuckDB”", chat=TEAM)


@pytest.mark.parametrize("is_topic_gone", [False, True])
async def test_a_line_stands_in_its_topic_without_the_text_of_its_prompt(office: Office, is_topic_gone: bool) -> None:
    """The person has deleted both there; or the whole topic, and the line stands in the new one."""
    await office.open()
    source, control = office.session("Fix login"), office.home.api.control
    topic = (await office.told(source)).thread_id or 0
    office.desk.sessions[source.session_id].is_busy = True
    text = office.write("go on", topic)
    line = await office.answer(text)
    if is_topic_gone:
        control.topic("delete", thread_id=topic, chat_id=office.chat)
    else:
        control.delete(text, chat_id=office.chat)
        control.delete(line.message_id, chat_id=office.chat)
    office.desk.end(source.session_id)
    await office.looks()
    again = await office.home.person.sees("Working", chat=office.chat)
    assert again.thread_id == office.topics()["Fix login"]
    assert (again.thread_id == topic) is not is_topic_gone


async def test_a_new_copy_of_a_question_stands_in_its_topic(office: Office) -> None:
    """Also after topics were switched off; in a topic that is gone by then, it stands in the chat itself."""
    await office.open()
    asked = await office.ask(office.session("Fix login"), "que_1")
    await office.reopen("off")
    office.write("/open")
    await office.home.person.gone(asked)
    copy = await office.home.person.sees(QUESTION, buttons=True, chat=office.chat)
    assert copy.thread_id == asked.thread_id
    await office.home.noted(copy)
    office.home.api.control.topic("delete", thread_id=asked.thread_id or 0, chat_id=office.chat)
    office.write("/open")
    copy = await office.home.person.sees(QUESTION, buttons=True, chat=office.chat)
    assert copy.thread_id is None
    assert office.topics() == {}


async def test_a_question_that_is_tapped_before_it_is_confirmed_stays_in_its_topic(office: Office) -> None:
    """Telegram is slow to say that it took the message, and the listener is started anew meanwhile."""
    await office.open()
    source = office.session("Fix login")
    first = await office.ask(source, "que_1")
    office.home.api.control.fault(method="sendMessage", action="hang", hang_s=60, processed=True)
    request = a_request("que_2", question("Which colour?", multiple=True), session=source.session_id, call="call_2")
    office.home.hook("question.asked", request, directory=source.directory, context={"title": source.session_title})
    shown = await office.home.person.sees("Which colour?", chat=office.chat)
    await office.home.person.taps(shown, "SQLite")
    await office.home.stop()
    office.home.api.control.clear_faults()
    await office.open()
    await until(lambda: any(one.phone.message_id == shown.message_id for one in office.home.entries()), "its message")
    office.home.api.control.delete(shown.message_id, chat_id=office.chat)
    office.home.person.write("/open", chat_id=office.chat)
    again = await office.home.person.sees("Which colour?", buttons=True, chat=office.chat)
    assert again.thread_id == shown.thread_id == first.thread_id


async def test_open_says_where_the_questions_come(office: Office) -> None:
    """Below the answer in the main list nothing comes; in their own topic they are there."""
    await office.open()
    first, second = office.session("Fix login"), office.session("Release two")
    asked = await office.ask(first, "que_1")
    assert (await office.answer(office.write("/open"))).text == "I post it again, in its topic."
    await until(lambda: office.home.entry().phone.message_id not in {None, asked.message_id}, "the question again")
    told = await office.answer(office.write("/open", asked.thread_id))
    assert told.text == "Here is the one that is open:"
    await office.ask(second, "que_2", "Which name?")
    await until(lambda: all(one.phone.message_id for one in office.home.entries()), "both questions noted")
    assert (await office.answer(office.write("/open", asked.thread_id))).text == "I post 2 again, each in its topic."


async def test_an_open_question_stays_when_topics_are_switched_on(office: Office) -> None:
    """Its new copy too; the next question of the same session stands in the topic."""
    await office.open("off")
    source = office.session("Fix login")
    asked = await office.ask(source, "que_1")
    assert asked.thread_id is None
    await office.reopen()
    office.write("/open")
    await office.home.person.gone(asked)
    copy = await office.home.person.sees(QUESTION, buttons=True, chat=office.chat)
    assert copy.thread_id is None
    second = await office.ask(source, "que_2", "Which colour?")
    assert second.thread_id == office.topics()["Fix login"]


async def test_a_topic_that_is_made_but_not_confirmed(office: Office) -> None:
    """Another one is made; the question is there, once. The same happens if Hermes stops at that moment."""
    await office.open()
    office.home.api.control.fault(method="createForumTopic", action="cut_after")
    source = office.session("Fix login")
    asked = await office.ask(source, "que_1")
    assert len([one for one in office.home.person.shown(office.chat) if QUESTION in one.text]) == 1
    assert asked.thread_id == office.topics()["Fix login"]
    world = office.home.api.control.world
    assert len([one for one in world.topics.values() if one.chat_id == office.chat]) == 2


async def test_without_a_topic_the_message_stands_in_the_chat(office: Office) -> None:
    """After a 429 with a long wait, and after a refusal; the person hears once why, and the next try comes later."""
    await office.open()
    office.home.api.control.fault(method="createForumTopic", retry_after_s=300)
    one, other = office.session("Fix login"), office.session("Release two")
    assert (await office.ask(one, "que_1")).thread_id is None
    assert (await office.ask(other, "que_2")).thread_id is None
    said = await office.home.person.sees("Telegram allows no more new topics for now", chat=office.chat)
    assert said.thread_id is None
    assert len(office.home.api.control.calls("createForumTopic")) == 1
    office.home.clock.advance(301)
    assert (await office.told(one)).thread_id == office.topics()["Fix login"]


async def test_a_new_topic_that_cannot_be_used_either(office: Office) -> None:
    """The message stands in the chat itself."""
    await office.open()
    source = office.session("Fix login")
    await office.told(source)
    words = "Bad Request: message thread not found"
    office.home.api.control.fault(method="sendMessage", status=400, description=words, times=2)
    assert (await office.ask(source, "que_1")).thread_id is None


async def test_a_short_wait_is_waited_for(office: Office) -> None:
    """The message stands in its topic."""
    await office.open()
    office.home.api.control.fault(method="createForumTopic", retry_after_s=1)
    asked = await office.ask(office.session("Fix login"), "que_1")
    assert asked.thread_id == office.topics()["Fix login"]
    made, posted_s = office.home.api.control.calls("createForumTopic")[-1], office.home.entry().timing.posted_s
    assert posted_s is not None
    waited_s = made.at_s - office.home.api.control.calls("createForumTopic")[0].at_s
    assert posted_s - office.home.entry().asked_s >= waited_s > 0.9, "the time to answer begins with the message"


async def test_a_telegram_that_cannot_make_topics_loses_nothing(office: Office) -> None:
    """After some failures the question comes without a topic."""
    await office.open()
    office.home.api.control.fault(method="createForumTopic", status=500, times=50)
    assert (await office.ask(office.session("Fix login"), "que_1")).thread_id is None


async def test_topics_that_are_switched_off_in_the_chat(office: Office) -> None:
    """A question then stands in the chat itself, the person hears once why; and back."""
    await office.open()
    source = office.session("Fix login")
    await office.told(source)
    switch(office, on=False)
    assert (await office.ask(source, "que_1")).thread_id is None
    assert (await office.told(source)).thread_id is None
    await office.home.person.sees("topics are switched off in this chat", chat=office.chat)
    switch(office, on=True)
    office.home.clock.advance(PAUSE_S)
    assert (await office.told(source)).thread_id is not None
    why = [one for one in office.home.person.shown(office.chat) if "switched off" in one.text]
    assert len(why) == 1


def switch(office: Office, *, on: bool) -> None:
    """Switch the topics of the chat on or off."""
    if office.chat > 0:
        office.home.api.control.topics_mode(on=on)
    else:
        office.home.api.control.rule(chat_id=office.chat, forum=on)


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Office]:
    """A group with topics."""
    async with living(tmp_path, chats=[Chat(ANN.id), FORUM], chat_id=TEAM, sections=PROMPTS) as home:
        yield Office(home)


async def test_a_right_that_is_taken_away(group: Office) -> None:
    """The topics that exist are used on, also a closed one; a new session comes to the group itself, once told why."""
    await group.open()
    source = group.session("Fix login")
    asked = await group.ask(source, "que_1")
    group.home.api.control.rule(chat_id=TEAM, standing="member")
    group.home.api.control.topic("close", thread_id=asked.thread_id or 0, chat_id=TEAM)
    assert (await group.told(source)).thread_id == asked.thread_id
    for number in (2, 3):
        assert (await group.ask(group.session(f"Session {number}"), f"que_{number}")).thread_id is None
        group.home.clock.advance(PAUSE_S)
    await group.home.person.sees("I may not manage topics in this group", chat=TEAM)
    assert len([one for one in group.home.person.shown(TEAM) if "manage topics" in one.text]) == 1
    group.home.api.control.rule(chat_id=TEAM, standing="administrator")
    fourth = await group.ask(group.session("Session 4"), "que_4")
    assert fourth.thread_id == group.topics()["Session 4"]


async def test_a_topic_of_a_group_is_known_after_topics_were_off(group: Office) -> None:
    """It was there all the time: a text in it still reaches its session, and the next message stands in it."""
    await group.open()
    source = group.session("Fix login")
    thread_id = (await group.told(source)).thread_id
    switch(group, on=False)
    assert (await group.told(source)).thread_id is None
    await group.home.person.sees("topics are switched off in this chat", chat=TEAM)
    switch(group, on=True)
    group.write("go on", thread_id)
    await group.came("go on")
    assert (await group.told(source)).thread_id == thread_id
    assert list(group.topics()) == ["Fix login"]
    switch(group, on=False)
    await group.told(source)
    off = "topics are switched off in this chat"
    await until(lambda: len([one for one in group.home.person.shown(TEAM) if off in one.text]) == 2, "it said again")


async def test_a_group_that_turns_into_a_forum(tmp_path: Path) -> None:
    """Its id changes: what is open is posted again, in a topic of its own."""
    async with living(tmp_path, chats=[Chat(ANN.id), Chat(-500, "Small")], chat_id=-500, sections=PROMPTS) as home:
        office = Office(home)
        await office.open()
        source = office.session("Fix login")
        assert (await office.ask(source, "que_1")).thread_id is None
        new = home.api.control.migrate(chat_id=-500, forum=True)
        home.api.control.rule(chat_id=new, standing="administrator", manages_topics=True)
        again = await home.person.sees(QUESTION, buttons=True, chat=new)
        world = home.api.control.world
        await until(lambda: [one for one in world.topics.values() if one.name == "Fix login"], "a topic")
        assert (await office.notice(source, chat=new)).thread_id == again.thread_id
        home.person.write("go on", thread_id=again.thread_id, chat_id=new)
        await office.came("go on")


# --- one topic for each project ---------------------------------------------------------------------------------------


async def test_sessions_of_a_project_share_its_topic(office: Office) -> None:
    """A reply is a prompt; a plain text is one for no session, because another one may be at work at the desk."""
    await office.open("project")
    one = office.session("Fix login")
    notice = await office.told(one)
    assert office.topics() == {"shop": notice.thread_id}
    office.write("go on", notice.thread_id, to=notice)
    await office.came("go on")
    other = office.session("Release two")
    assert (await office.ask(other, "que_1")).thread_id == notice.thread_id
    office.write("and now?", notice.thread_id)
    if office.chat > 0:
        await office.home.person.sees("Is this your answer", chat=office.chat)
    else:
        await office.home.polled()
    assert office.desk.texts() == ["go on"]
    assert (await office.told(office.session("Blog", "/home/dev/blog"))).thread_id == office.topics()["blog"]


async def test_a_chat_with_topics_that_hermes_does_not_use(office: Office) -> None:
    """A person's own topics change nothing: the text after ✏️ is the answer, wherever it stands."""
    await office.open("off")
    shown = await office.ask(office.session("Fix login"), "que_1")
    assert not shown.thread_id
    thread_id = office.home.api.control.topic("make", name="Mine", chat_id=office.chat)
    await office.home.person.taps(shown, "✏️ Other")
    if office.chat > 0:
        office.write("DuckDB", thread_id)
        await office.home.person.sees("“DuckDB”", chat=office.chat)


async def test_a_new_session_begins_from_the_topic_of_its_project(office: Office) -> None:
    """Although another session is the only one that is known there."""
    await office.open("project")
    notice = await office.told(office.session("Fix login"))
    listed = await office.answer(office.write("/new"))
    await office.home.person.taps(listed, "shop")
    typing = await office.home.person.sees("prompt", chat=office.chat)
    await until(lambda: [one for one in office.kept.cards.all() if one.typing], "the card armed")
    assert office.home.person.message(typing.message_id, office.chat).thread_id == notice.thread_id
    office.write("begin", notice.thread_id)
    await until(lambda: office.desk.received, "the prompt")
    assert office.received() == [("ses_2", "begin")]

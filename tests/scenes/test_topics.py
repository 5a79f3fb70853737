"""Three sessions of a real OpenCode work at once, each in its own topic: in a private chat, and in a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from hermes.sandbox.botapi.world import Chat
from hermes.sandbox.model_server import script
from tests.harness.processes import until
from tests.scenes.stage import ANN, PATIENCE_S, Stage, asking, question, staged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode

TEAM: Final = -1001234567890
FORUM: Final = Chat(TEAM, "Team", forum=True, standing="administrator", manages_topics=True)
TITLES: Final = ("Fix login flow", "Release two", "Write the docs")


@pytest.fixture(params=[ANN.id, TEAM], ids=["private", "group"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage whose chat has topics."""
    with staged(tmp_path / "hermes", chats=[Chat(ANN.id), FORUM], topics_mode=True) as ready:
        ready.chat_id = request.param
        yield ready


def start(stage: Stage, opencode: OpenCode, topics: str) -> None:
    """Start Hermes with topics and prompts."""
    stage.connect(opencode)
    telegram = {"token": stage.api.token, "chat_id": stage.chat_id, "users": [ANN.id], "api_base": stage.api.base_url}
    stage.start(telegram=telegram | {"topics": topics}, notices={"finished": "0s"}, prompts={"enabled": True})


def received(opencode: OpenCode, session: str) -> list[str]:
    """What the person wrote, as the record of a session has it."""
    messages = [one for one in opencode.messages(session) if one["info"]["role"] == "user"]
    return ["".join(part.get("text", "") for part in one["parts"] if not part.get("synthetic")) for one in messages]


def reached(opencode: OpenCode, session: str, text: str) -> None:
    """Wait until this text is in the record of a session."""

    def there() -> bool:
        assert text in received(opencode, session)
        return True

    until(there, PATIENCE_S, "the prompt in the record")


@pytest.mark.story
def test_three_sessions_at_once(stage: Stage, opencode: OpenCode, project: Path) -> None:
    """Each question, answer, notice and prompt is in the topic of its session, and the models got what was meant."""
    start(stage, opencode, "session")
    sessions = {title: opencode.session(project, title) for title in TITLES}
    for title, session in sessions.items():
        asks = asking(question(f"Which one for {title}?", ("Red", "Blue")))
        opencode.prompt(session, [asks, {"text": f"{title}: ok"}])
    asked = {title: stage.asked(f"Which one for {title}?") for title in TITLES}
    topics = {title: message.thread_id for title, message in asked.items()}
    assert len({*topics.values(), None}) == len(TITLES) + 1
    for title in TITLES:
        stage.phone.tap(asked[title], "Blue")
    for title in TITLES:
        assert stage.ended(f"✅ {title} is done").thread_id == topics[title]
    texts = {title: script([{"text": f"{title}: more"}]) for title in TITLES}
    for title in TITLES:
        stage.phone.write(texts[title], thread_id=topics[title], chat=stage.chat_id)
    for title, session in sessions.items():
        assert stage.ended(f"{title}: more").thread_id == topics[title]
        reached(opencode, session, texts[title])
        others = [text for other, text in texts.items() if other != title]
        assert not set(others) & set(received(opencode, session))
    stage.phone.wait(lambda: not any(one.rows for one in own(stage)), PATIENCE_S, what="the end of all lines")
    stage.over()
    for message in own(stage):
        assert message.thread_id in topics.values(), message.text


def own(stage: Stage) -> list[ShownMessage]:
    """The texts of the bot that are on the phone."""
    return [one for one in stage.phone.shown(chat=stage.chat_id) if one.kind == "text"]


def test_sessions_of_one_project_share_a_topic(stage: Stage, opencode: OpenCode, project: Path) -> None:
    """A deleted topic is made again, and the question that was in it is there again."""
    start(stage, opencode, "project")
    sessions = [opencode.session(project, title) for title in TITLES[:2]]
    for number, session in enumerate(sessions):
        opencode.prompt(session, [asking(question(f"Which one for {number}?", ("Red", "Blue"))), {"text": "ok"}])
    first, second = (stage.noted(stage.asked(f"Which one for {number}?")) for number in range(2))
    assert first.thread_id == second.thread_id
    pencil = first.button("Other").data
    stage.phone.topic("delete", first.thread_id or 0, chat=stage.chat_id)
    stage.phone.tap(first, data=pencil)
    again = stage.asked("Which one for 0?")
    assert again.thread_id not in {None, first.thread_id}
    stage.phone.tap(again, "Blue")
    assert stage.ended(f"✅ {TITLES[0]} is done").thread_id == again.thread_id

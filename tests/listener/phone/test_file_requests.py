"""/get: one file of a session's project, as a reply to a message about the session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from hermes.config import logs
from hermes.config.reading import Followed, config_path
from hermes.errors import AgentRefused
from tests.listener.phone.test_session_cards import card
from tests.listening import House, house, question, until
from tests.prompted import PROMPTS, SERVER, Desked

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.model.ask import Source
    from hermes.sandbox.phone_values import ShownMessage

home = house(sections=PROMPTS)
HOW = "To fetch a file of a project, reply to a message about its session"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project."""
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "my notes.txt").write_text("hello")
    (folder / ".env").write_text("KEY=1")
    return folder


@pytest.fixture
def shop(desk: Desked, folder: Path) -> Source:
    """A session in that project."""
    return desk.desk.session("Fix login flow", str(folder))


def sent(home: House) -> list[str]:
    """The name and the size of each document that was sent."""
    return [str(call.params["document"]) for call in home.api.control.calls("sendDocument")]


def answer_to(home: House, message_id: int) -> ShownMessage | None:
    """What the bot has replied to this message."""
    return next((one for one in home.person.shown() if one.reply_to == message_id), None)


async def test_a_file_comes_as_a_document(desk: Desked, shop: Source) -> None:
    """As an answer to the request; its path may have blanks. It is no prompt."""
    shown = await desk.notice(shop)
    wanted = desk.home.person.write("/get src/my notes.txt", to=shown)
    document = await until(lambda: answer_to(desk.home, wanted), "a document")
    assert document.text.replace("\u2060", "") == "src/my notes.txt · shop"
    assert sent(desk.home) == ["my notes.txt (5 bytes)"]
    assert not desk.desk.received
    assert not desk.kept.prompts.all()


async def test_every_message_about_a_session_will_do(desk: Desked, shop: Source) -> None:
    """The line of a prompt, and a card."""
    shown = await desk.notice(shop)
    desk.home.person.write("Rename it", to=shown)
    line = await desk.home.person.sees("▶️")
    desk.home.person.write("/GET@hermes_demo_bot src/my notes.txt", to=line)
    await until(lambda: len(sent(desk.home)) == 1, "a document")
    desk.home.person.write("/get src/my notes.txt", to=await card(desk))
    await until(lambda: len(sent(desk.home)) == 2, "another document")


async def test_without_a_session_or_a_path_it_says_how(desk: Desked, shop: Source) -> None:
    """As a new message, without a path, or for a file that is not there."""
    shown = await desk.notice(shop)
    person = desk.home.person
    person.write("/get src/my notes.txt")
    person.write("/get", to=shown)
    person.write("/get src/a\nand more", to=shown)
    await until(lambda: len([one for one in person.shown() if HOW in one.text]) == 2, "two answers")
    await person.sees("is not there: no such file in shop")
    assert sent(desk.home) == []


async def test_an_answer_may_look_like_a_request(desk: Desked, shop: Source) -> None:
    """A reply to a question is its answer, and so is the next text after ✏️; a reply to another message is none."""
    shown, home, person = await desk.notice(shop), desk.home, desk.home.person
    asked = await ask(home, "q1", "Which route?")
    person.write("/get /users", to=asked)
    await until(lambda: home.entry().state.answers[0].text == "/get /users", "the answer")
    other = await ask(home, "q2", "Which other route?")
    await person.taps(other, "✏️")
    person.write("/get src/my notes.txt", to=shown)
    await until(lambda: sent(home), "a document")
    person.write("/get /users")
    await until(lambda: home.entries()[-1].state.answers[0].text == "/get /users", "the other answer")


async def ask(home: House, request_id: str, text: str) -> ShownMessage:
    """Let an agent ask this."""
    home.hook("question.asked", {"id": request_id, "sessionID": "ses_9", "questions": [question(text)]})
    asked = await home.person.sees(text, buttons=True)
    await home.noted(asked)
    return asked


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("README.md", "README.md is not there: no such file in shop."),
        ("src", "src is a folder. Please name one file in shop."),
        ("../../etc/passwd", "../../etc/passwd is outside of the project. I only fetch files in shop."),
        (".env", ".env may hold secrets, so I do not send it from shop."),
    ],
)
async def test_what_is_not_sent_is_said(desk: Desked, shop: Source, path: str, why: str) -> None:
    """With the reason."""
    wanted = desk.home.person.write(f"/get {path}", to=await desk.notice(shop))
    answer = await until(lambda: answer_to(desk.home, wanted), "an answer")
    assert answer.text.replace("\u2060", "") == why
    assert sent(desk.home) == []


async def test_what_the_agent_may_not_read_is_not_sent(desk: Desked, shop: Source, folder: Path) -> None:
    """By its own name or by that of a link to it; others are sent."""
    (folder / "plain").symlink_to("src/my notes.txt")
    (folder / "other.txt").write_text("hello")
    desk.desk.excludes = lambda path: path == str(folder / "src" / "my notes.txt")
    shown, person = await desk.notice(shop), desk.home.person
    for path in ("src/my notes.txt", "plain"):
        person.write(f"/get {path}", to=shown)
        await person.sees(f"{path} is excluded by the permissions of OpenCode, so I do not send it from shop.")
    person.write("/get other.txt", to=shown)
    await until(lambda: sent(desk.home), "a document")
    assert sent(desk.home) == ["other.txt (5 bytes)"]


async def test_hermes_own_log_is_not_sent(desk: Desked, shop: Source, folder: Path) -> None:
    """Nor an older one, wherever the configuration puts them."""
    own = desk.home.listener._parts.phone.commands._files._private
    assert set(logs.files(desk.home.root / "log")) <= set(own)
    (folder / "hermes.log.1").write_text("secret")
    desk.home.listener._parts.phone.commands._files._private = logs.files(folder / "hermes.log")
    desk.home.person.write("/get hermes.log.1", to=await desk.notice(shop))
    await desk.home.person.sees("hermes.log.1")
    assert sent(desk.home) == []


async def test_an_agent_that_does_not_tell_its_exclusions_keeps_its_files(desk: Desked, shop: Source) -> None:
    """It is away, it refuses with or without a reason, or it is not configured any more."""
    shown, files = await desk.notice(shop), desk.home.listener._parts.phone.commands._files

    async def answer() -> str:
        wanted = desk.home.person.write("/get src/my notes.txt", to=shown)
        return (await until(lambda: answer_to(desk.home, wanted), "an answer")).text.replace("\u2060", "")

    begins = "I do not send src/my notes.txt from shop: "
    ends = ", so I do not know whether the permissions of OpenCode exclude it."
    silent = f"{begins}OpenCode does not answer now{ends}"
    desk.desk.is_away = True
    assert await answer() == silent
    desk.desk.is_away, desk.desk.refuses = False, AgentRefused("no", said="/my/settings.json cannot be read")
    assert await answer() == f"{begins}/my/settings.json cannot be read{ends}"
    desk.desk.refuses, files._ways, ways = None, {}, files._ways
    assert await answer() == silent
    assert sent(desk.home) == []
    files._ways = ways
    assert await answer() == "src/my notes.txt · shop"


async def test_what_telegram_does_not_take_is_said(desk: Desked, shop: Source) -> None:
    """The person can send it again."""
    shown = await desk.notice(shop)
    desk.home.api.control.fault(method="sendDocument", action="error", status=400, description="Bad Request: odd")
    desk.home.person.write("/get src/my notes.txt", to=shown)
    await desk.home.person.sees("Telegram did not take src/my notes.txt. Please send /get again.")
    words = "Bad Request: not enough rights to send documents to the chat"
    desk.home.api.control.fault(method="sendDocument", action="error", status=400, description=words)
    desk.home.person.write("/get src/my notes.txt", to=shown)
    await desk.home.person.sees("I may not send files in this group")


async def test_a_file_that_may_be_there_is_not_said_to_be_refused(desk: Desked, shop: Source) -> None:
    """Telegram took it, and its answer was lost."""
    shown = await desk.notice(shop)
    desk.home.api.control.fault(method="sendDocument", action="cut_after")
    desk.home.person.write("/get src/my notes.txt", to=shown)
    await desk.home.person.sees("Telegram did not say whether it took src/my notes.txt")
    assert len(sent(desk.home)) == 1


async def test_a_phone_that_may_not_send_prompts_fetches_nothing(desk: Desked, shop: Source) -> None:
    """Switched off, limited to other projects, or locked."""
    shown = await desk.notice(shop)
    person, request = desk.home.person, "/get src/my notes.txt"
    await desk.home.listener._store.lock_phone()
    person.write(request, to=shown)
    await person.sees("🔒 Locked")
    await desk.home.listener._store.unlock_phone()
    await desk.home.stop()
    await desk.home.start(prompts={"enabled": True, "projects": ["another"]})
    person.write(request, to=shown)
    await person.sees(HOW)
    await desk.home.stop()
    await desk.home.start(prompts={"enabled": False})
    person.write(request, to=shown)
    await person.sees("This phone may not write to agents.")
    assert sent(desk.home) == []


async def test_a_lock_that_comes_meanwhile_counts(desk: Desked, shop: Source) -> None:
    """The file is read, and not sent."""
    shown = await desk.notice(shop)
    files = desk.home.listener._parts.phone.commands._files
    async with files._one_at_a_time:
        desk.home.person.write("/get src/my notes.txt", to=shown)
        await until(lambda: files._one_at_a_time._waiters, "the request")
        await desk.home.listener._store.lock_phone()
    await until(lambda: not files._one_at_a_time.locked(), "its end")
    await asyncio.sleep(0)
    assert sent(desk.home) == []


async def test_a_session_elsewhere_or_without_a_folder_has_no_files_here(desk: Desked, shop: Source) -> None:
    """The same path may be another file on this machine."""
    shown, person = await desk.notice(shop), desk.home.person
    files = desk.home.listener._parts.phone.commands._files
    files._remote = {SERVER}
    person.write("/get src/my notes.txt", to=shown)
    await person.sees("That session is on another machine. I can only fetch files of ")
    files._remote = ()
    for title, folder in (("Count", ""), ("Sum", "shop")):
        person.write("/get etc/hostname", to=await desk.notice(desk.desk.session(title, folder)))
    await until(lambda: len([one for one in person.shown() if "I do not know the folder" in one.text]) == 2, "answers")
    assert sent(desk.home) == []


async def test_a_defect_is_said(desk: Desked, shop: Source) -> None:
    """Whatever it is: the person never waits in vain."""
    shown = await desk.notice(shop)
    desk.home.listener._parts.phone.commands._files._private = cast("tuple[Path]", None)
    desk.home.person.write("/get src/my notes.txt", to=shown)
    await desk.home.person.sees("Hermes failed to send src/my notes.txt. Its log on ")


async def test_what_hermes_keeps_for_itself_is_known(home: House, tmp_path: Path) -> None:
    """From the configuration: its own file and folder, each file that it names for a secret, and the store."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    servers = [
        {"name": "here", "url": "http://127.0.0.1:9", "password_file": str(secret)},
        {"name": "there", "url": "http://192.0.2.1:9"},
    ]
    followed = Followed(tmp_path / "my.toml", environ={})
    async with home.still(followed=followed, opencode=servers) as listener:
        files = listener._parts.phone.commands._files
        own = {secret, tmp_path / "my.toml", home.store, config_path(None, environ={}).parent}
        assert own <= set(files._private)
        assert set(files._remote) == {"there"}

"""Running it again: one thing is changed, all else stays to the letter, and nothing that waits for Hermes is lost."""

from __future__ import annotations

import asyncio
import difflib

import pytest

from hermes.commands.setup.finish import TEST_S
from hermes.config import reading as configuration
from hermes.model.chat_memory import ChatMemory
from tests.commands.setup.desk import ANN, BOB, CTRL_C, CTRL_D, TEAM, Desk, Terminal, gives_token, pairs
from tests.stores import a_store

REST = """\
proxy = "none"   # for now

# How long?
[questions]
ttl = "45m"      # lunch
quiet_hours = '22:00-07:00'

[[opencode]]
# the big one
url = "http://127.0.0.1:14096"
"""


def changed(before: bytes, after: str) -> list[str]:
    """The lines that differ."""
    lines = difflib.ndiff(before.decode().splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_only_the_chat_is_changed(desk: Desk) -> None:
    """Comments, order and all other keys stay."""
    before = desk.has_config(REST)
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.sees("Questions go to the private chat with Ann (id 1001); Ann (id 1001) may answer.")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "y")
        desk.write(f"/start@hermes_demo_bot {terminal.link()[1]}", chat=TEAM.id)
        terminal.answers("let Ann answer?", "y")
        terminal.answers("May somebody else", "")
        assert terminal.ends() == 0
    assert changed(before, desk.config.read_text()) == ["- chat_id = 1001", f"+ chat_id = {TEAM.id}"]


def test_people_that_telegram_does_not_name_are_numbers(desk: Desk) -> None:
    """Nobody is passed over because a name is missing."""
    desk.has_config(chat_id=-99, users=(ANN.id, 7777, 8888))
    with desk.setup() as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.sees("Questions go to the group -99; Ann (id 1001), 7777 and 8888 may answer.")


def test_only_enter_changes_nothing(desk: Desk) -> None:
    """What is there is kept, and nothing is posted."""
    before = desk.has_config(REST)
    with desk.setup("--no-agents", "--no-service") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "")
        terminal.answers("May this phone send prompts", "")
        terminal.answers("test question", "n")
        assert terminal.ends() == 0
        assert "stays as it was" in terminal.said()
    assert desk.config.read_bytes() == before
    assert desk.told() == []


def test_a_file_that_others_can_read_is_closed(desk: Desk) -> None:
    """Also where nothing in it changes."""
    desk.has_config()
    desk.config.chmod(0o644)
    assert desk.unattended("--yes", "--no-agents", "--no-service")[0] == 0
    assert desk.config.stat().st_mode & 0o777 == 0o600


def test_another_bot(desk: Desk) -> None:
    """The person must press Start there as well; only token, and what belongs to it, is changed."""
    before = desk.has_config(REST, token="7000000009:" + "x" * 30)
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        terminal.sees("Telegram no longer knows the token in the configuration")
        pairs(terminal, desk)
        assert terminal.ends() == 0
    lines = changed(before, desk.config.read_text())
    assert [line[:9] for line in lines] == ["- token =", "+ token ="]
    assert lines[1].endswith("# from him")


def test_a_configuration_that_is_not_finished(desk: Desk) -> None:
    """What is missing is asked for; what is there is kept."""
    desk.config.parent.mkdir(parents=True)
    desk.config.write_text(REST.partition("\n")[2])
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test", "--chat", "1001") as terminal:
        terminal.sees("[telegram] token is missing")
        gives_token(terminal, desk)
        assert terminal.ends() == 0
    config = configuration.load(desk.config, environ={})
    assert (config.telegram.users, config.questions.ttl, len(config.opencode)) == ((1001,), 2700.0, 1)
    assert "# the big one" in desk.config.read_text()


@pytest.mark.parametrize("text", ["[telegram\n", "[questons]\nttl = '1h'\n", "telegram = 3\n", "\x00"])
def test_a_configuration_that_is_wrong_elsewhere_is_not_touched(desk: Desk, text: str) -> None:
    """Status 2 at once, with what is wrong."""
    desk.config.parent.mkdir(parents=True)
    desk.config.write_text(text)
    status, said = desk.unattended("--yes")
    assert status == 2
    assert said.startswith(f"hermes: {desk.config}")
    assert len(said.splitlines()) == 1
    assert desk.config.read_text() == text


async def test_what_waits_for_a_listener_stays_with_telegram(desk: Desk) -> None:
    """Taps and texts are looked past, not away, whoever sent them; old starts before them may go."""
    desk.has_config()
    control = desk.api.control
    desk.write("/start old")
    control.inject({"callback_query": tap(desk, ANN.id)})
    desk.write("hello", BOB)
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        terminal.answers("Keep this bot?", "")
        terminal.answers("Keep this?", "n")
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        desk.write(f"/start {code}", BOB)
        terminal.answers("Let Bob answer", "y")
        assert terminal.ends() == 0
    assert await desk.waiting() == ["abc", "hello", f"/start {code}"]


async def test_whom_a_known_bot_obeys_may_be_unknown(desk: Desk) -> None:
    """The store knows the bot, no configuration does: then every tap and text stays."""
    store = a_store(desk.store)
    await store.open()
    await store.save_chat(ChatMemory(int(desk.api.token.partition(":")[0]), offset=1))
    desk.write("my answer")
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        assert terminal.ends() == 0
    assert (await desk.waiting())[0] == "my answer"


async def test_a_bot_that_is_new_here_may_be_at_work_elsewhere(desk: Desk) -> None:
    """Neither configuration nor store know it: what waits for the listener of another computer stays all the same."""
    desk.api.control.inject({"callback_query": tap(desk, BOB.id)})
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        assert terminal.ends() == 0
    assert (await desk.waiting())[0] == "abc"


async def test_the_code_is_done_with(desk: Desk) -> None:
    """Where nothing waits before it, the listener does not answer it."""
    desk.write("/start")
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        assert terminal.ends() == 0
    assert await desk.waiting() == []


def tap(desk: Desk, user: int) -> dict[str, object]:
    """A tap as Telegram tells of it."""
    chat = {"id": user, "type": "private", "first_name": "Ann"}
    sender = {"id": user, "is_bot": False, "first_name": "Ann"}
    bot = {"id": int(desk.api.token.partition(":")[0]), "is_bot": True, "first_name": "Hermes"}
    message = {"message_id": 3, "date": 1, "chat": chat, "from": bot, "text": "Which?"}
    return {"id": "77", "from": sender, "chat_instance": "1", "data": "abc", "message": message}


# --- Ctrl-C -------------------------------------------------------------------------------------------------------

PROMPTS = [
    "Paste the token",
    "Use a group?",
    "Waiting for you to press Start",
    "Let Ann",
    "Connect OpenCode?",
    "May this phone send prompts",
    "test question",
]


def until_prompt(terminal: Terminal, desk: Desk, prompt: str) -> None:
    """Answer what is asked until this prompt stands there."""
    answers = {"Paste the token": desk.api.token, "Let Ann": "y"}
    for name in PROMPTS[: PROMPTS.index(prompt)]:
        if name == "Waiting for you to press Start":
            desk.write(f"/start {terminal.link()[1]}")
        else:
            terminal.answers(name, answers.get(name, ""))
    terminal.sees(prompt)


@pytest.mark.parametrize(
    "prompt", [PROMPTS[0], *(pytest.param(prompt, marks=pytest.mark.nightly) for prompt in PROMPTS[1:-1]), PROMPTS[-1]]
)
def test_ctrl_c_leaves_nothing_behind(desk: Desk, prompt: str) -> None:
    """At every prompt of a newcomer: no configuration, no plugin, no temporary file; status 130, and a sentence."""
    desk.has_opencode()
    with desk.setup("--no-service") as terminal:
        until_prompt(terminal, desk, prompt)
        terminal.presses(CTRL_C)
        assert terminal.ends() == 130
        assert "Stopped: the configuration stays as it was." in terminal.said()
        assert "Traceback" not in terminal.said()
    assert not (desk.root / ".config").exists()
    assert desk.told() == []


def test_ctrl_c_while_the_test_question_waits(desk: Desk) -> None:
    """What was written stays, and the question on the phone is closed."""
    desk.has_config()
    with desk.setup("--no-agents", "--no-service", "--test", "--yes", "--user", str(BOB.id)) as terminal:
        asked = desk.api.phone.message_with("Does this question reach you?", 40)
        (entry,) = asyncio.run(a_store(desk.store).survey()).entries
        assert entry.ask.ttl_s == TEST_S, "the phone must show when it ends"
        terminal.presses(CTRL_C)
        assert terminal.ends() == 130
        assert "what was done until here stays" in terminal.said()
    assert f"users = [{BOB.id}]" in desk.config.read_text()
    desk.api.phone.wait(lambda: not desk.api.phone.message(asked.message_id).rows, 30, what="a closed question")


def test_the_shell_does_not_stand_above_what_was_saved(desk: Desk) -> None:
    """A variable for another chat: it is named, and what setup starts posts where the configuration says."""
    desk.has_config()
    options = ("--no-agents", "--no-service", "--test", "--yes", "--user", str(ANN.id), "--user", str(BOB.id))
    with desk.setup(*options, HERMES_TELEGRAM__CHAT_ID=str(TEAM.id)) as terminal:
        terminal.sees("HERMES_TELEGRAM__CHAT_ID in this shell overrides the configuration")
        asked = desk.api.phone.message_with("Does this question reach you?", 40)
        assert asked.chat_id == ANN.id
        terminal.presses(CTRL_C)
        assert terminal.ends() == 130


QUESTIONS = ["Keep this bot?", "Keep this?", "Connect OpenCode?", "May this phone send prompts", "test question"]


@pytest.mark.parametrize(
    "prompt", [*(pytest.param(prompt, marks=pytest.mark.nightly) for prompt in QUESTIONS[:-1]), QUESTIONS[-1]]
)
@pytest.mark.parametrize("keys", [CTRL_C, pytest.param(CTRL_D, marks=pytest.mark.nightly)])
def test_ctrl_c_leaves_what_was_there(desk: Desk, prompt: str, keys: str) -> None:
    """A configuration stays byte for byte, whatever was answered before."""
    desk.has_opencode()
    before = desk.has_config(REST)
    with desk.setup("--no-service") as terminal:
        for name in QUESTIONS:
            terminal.sees(name)
            if name == prompt:
                break
            terminal.types("")
        terminal.presses(keys)
        assert terminal.ends() == 130
    assert desk.config.read_bytes() == before
    assert desk.left() == ["config.toml"]

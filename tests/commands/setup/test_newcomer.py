"""The first five minutes: a newcomer at a terminal, with a phone in the other hand."""

from __future__ import annotations

import pytest
import segno

from hermes.commands.install import AGENTS
from hermes.config import reading as configuration
from hermes.sandbox.botapi import User
from tests.commands.setup.desk import ANN, BOB, STRANGER, TEAM, Desk, Terminal, gives_token, pairs


def test_all_the_way(desk: Desk) -> None:
    """Token, code, yes; agent, test question; the answer is printed, and the token never."""
    desk.has_opencode()
    shown = b""
    with desk.setup("--no-service") as terminal:
        pairs(terminal, desk)
        terminal.sees("OpenCode 1.18.33 is here")
        shown += terminal.raw
        terminal.answers("Connect OpenCode?", "")
        terminal.answers("May this phone send prompts", "")
        terminal.answers("test question at the end?", "")
        terminal.sees("A question is on its way to your phone")
        desk.api.phone.tap(desk.api.phone.message_with("Does this question reach you?", 30), "Yes")
        terminal.sees("Your answer arrived: Yes")
        assert terminal.ends() == 0
        shown += terminal.raw
        assert "All set." in terminal.said()
    assert desk.api.token.encode() not in shown
    assert desk.api.token.partition(":")[2].encode() not in shown
    config = configuration.load(desk.config, environ={})
    assert (config.telegram.chat_id, config.telegram.users) == (ANN.id, (ANN.id,))
    assert config.telegram.token.get_secret_value() == desk.api.token
    assert (desk.config.stat().st_mode & 0o777, desk.config.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert desk.left() == ["config.toml"]
    assert list((desk.root / ".config" / "opencode").rglob("*.js"))
    assert any("Connected." in text for text in desk.told())


def test_opencode_2_needs_no_plugin(desk: Desk) -> None:
    """It is found by its program, nothing is installed for it, and the person hears what it needs instead."""
    desk.has("opencode", "#!/bin/sh\necho 2.3.2\n")
    with desk.setup("--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        terminal.sees("OpenCode 2.3.2 is here")
        terminal.sees("OpenCode 2.3.2 needs no plugin: Hermes finds its server by itself, as long as a listener runs")
        assert terminal.ends() == 0
        assert "nothing listens yet" in terminal.said()
    assert not list((desk.root / ".config" / "opencode").rglob("*.js"))


def test_what_was_written_tells_what_it_is(desk: Desk) -> None:
    """A fresh file has a comment for each of its keys, and says what else there is."""
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        assert terminal.ends() == 0
    text = desk.config.read_text()
    assert "chat_id = 1001 # where questions go" in text
    assert "`hermes config --example`" in text


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (60, 30)])
def test_a_camera_can_read_the_link(desk: Desk, columns: int, lines: int) -> None:
    """The drawn code is the link's, module by module, white on black in every theme; all of it is on the screen."""
    desk.columns, desk.lines = columns, lines
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        link = f"https://t.me/hermes_demo_bot?start={code}"
        assert drawn(terminal) == [list(row) for row in segno.make(link, micro=False).matrix_iter(border=2)]
        assert link in terminal.screen()


def drawn(terminal: Terminal) -> list[list[int]]:
    """Read the half blocks on the screen back into modules; 1 is dark."""
    halves = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
    rows = []
    for line in terminal.cells():
        cells = [cell for cell in line if cell.bg == "000000"]
        assert {cell.fg for cell in cells} <= {"ffffff"}
        if cells:
            pairs = [halves[cell.data] for cell in cells]
            rows += [[top for top, _ in pairs], [bottom for _, bottom in pairs]]
    return rows[:-1] if rows and 0 not in rows[-1] else rows  # half of the last line may be no part of it


def test_a_narrow_terminal_shows_the_link_alone(desk: Desk) -> None:
    """A code that is cut is worse than none."""
    desk.columns = 38
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        terminal.link()
        assert drawn(terminal) == []


def test_a_stranger_gets_nothing_and_is_mentioned(desk: Desk) -> None:
    """Without the code, or with a wrong one; once each, and not a word goes back to them."""
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        desk.write("hello", STRANGER)
        terminal.sees("Mallory (id 6666) wrote to the bot without the link, and got no answer")
        desk.write(f"/start {code[:-1]}", STRANGER)
        desk.write(f"/start {code[::-1]}", BOB)
        terminal.sees("Bob (id 1002) wrote to the bot without the link")
        assert terminal.said().count("Mallory") == 1
        desk.write(f"/start {code}")
        terminal.answers("Let Ann answer your agents?", "y")
        assert terminal.ends() == 0
    assert desk.told(STRANGER.id) == desk.told(BOB.id) == []
    assert configuration.load(desk.config, environ={}).telegram.users == (ANN.id,)


def test_a_plain_start_is_told_what_to_open(desk: Desk) -> None:
    """Most people open the bot and press Start: both ends say what to do, once each, and then it works."""
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        desk.write("hello?")
        desk.write("/start")
        terminal.sees(
            "Ann (id 1001) pressed Start without the link. If that is you: scan the code above with your phone, or "
            "open the link there, and press Start again."
        )
        desk.write("/start")
        desk.write("/start", chat=TEAM.id)
        desk.write(f"/start {code}")
        terminal.answers("Let Ann answer your agents?", "y")
        assert terminal.ends() == 0
    (told,) = [text for text in desk.told() if "Almost there" in text]
    assert told.endswith(
        "the code that hermes setup shows on your computer, or open its link on this phone; then press Start again."
    )
    assert desk.told(TEAM.id) == []


def test_a_crowd_of_strangers_does_not_fill_the_screen(desk: Desk) -> None:
    """Five are named; that there are more is said once."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        for number in range(7001, 7010):
            desk.write("hello", User(number))
        desk.write(f"/start {code}")
        terminal.sees("Let Ann answer your agents?")
        assert terminal.said().count("wrote to the bot without the link") == 5
        assert terminal.said().count("Others write to the bot as well") == 1


def test_a_name_cannot_play_with_the_terminal(desk: Desk) -> None:
    """No escape sequence and no markup comes through: what is approved is what is shown."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        sender = {"id": 7, "is_bot": False, "first_name": "[red]Ann\x1b[2J\u202e\n"}
        message = {"message_id": 9, "date": 1, "chat": {"id": 7, "type": "private"}, "from": sender}
        desk.api.control.inject({"message": {**message, "text": f"/start {code}"}})
        terminal.sees("[red]Ann [2J (id 7) opened the link")
        terminal.presses("\x03")


def test_who_is_not_let_in_is_nowhere(desk: Desk) -> None:
    """A no is a no, Enter too; the code is used up, a new one is shown, and the end without anybody is status 1."""
    with desk.setup() as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        desk.write(f"/start {code}", STRANGER)
        terminal.answers("Let Mallory answer your agents?", "")
        terminal.answers("Show a new link?", "y")
        assert terminal.link()[1] != code
        desk.write(f"/start {code}", BOB)
        terminal.sees("Bob (id 1002) wrote to the bot without the link")
        desk.write(f"/start {terminal.link()[1]}", STRANGER)
        terminal.answers("Let Mallory answer your agents?", "n")
        terminal.answers("Show a new link?", "n")
        assert terminal.ends() == 1
        assert "nobody was paired; the configuration stays as it was" in terminal.said()
    assert desk.left() == []


def test_a_code_runs_out(desk: Desk) -> None:
    """After ten minutes it is worth nothing, and a new one is offered."""
    with desk.clock() as bent, desk.setup(*bent) as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "")
        code = terminal.link()[1]
        desk.advance(601)
        desk.write(f"/start {code}")
        terminal.sees("Ann (id 1001) wrote to the bot without the link")
        terminal.sees("The link is no longer valid")
        terminal.answers("Show a new link?", "n")
        assert terminal.ends() == 1
    assert desk.left() == []


def test_a_group_and_the_people_in_it(desk: Desk) -> None:
    """The bot is added by a link, each person is let in by the terminal, one code each."""
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "y")
        terminal.sees("Taps always work; typed answers must be replies")
        parameter, code = terminal.link()
        assert parameter == "startgroup"
        desk.write(f"/start {code}")
        terminal.sees("Ann (id 1001) opened the link, but not in a group")
        desk.write(f"/start@hermes_demo_bot {code}", User(1087968824, "Group"), chat=TEAM.id)
        terminal.sees("Somebody opened the link anonymously")
        desk.write(f"/start@hermes_demo_bot {code}", chat=TEAM.id)
        terminal.sees("Ann (id 1001) added the bot to the group “Team” (-4242)")
        terminal.answers("let Ann answer?", "y")
        terminal.answers("May somebody else answer there, too?", "y")
        assert terminal.link()[0] == "start"
        desk.write(f"/start {terminal.link()[1]}", BOB)
        terminal.answers("Let Bob answer your agents?", "y")
        terminal.answers("May somebody else answer there, too?", "")
        assert terminal.ends() == 0
    telegram = configuration.load(desk.config, environ={}).telegram
    assert (telegram.chat_id, telegram.users) == (TEAM.id, (ANN.id, BOB.id))
    assert any("Connected." in text for text in desk.told(TEAM.id))


def test_in_a_group_nobody_is_told_to_press_start(desk: Desk) -> None:
    """A group has no such button: both ends say to add the bot to the group."""
    with desk.setup("--no-agents", "--no-prompts", "--no-service", "--no-test") as terminal:
        gives_token(terminal, desk)
        terminal.answers("Use a group?", "y")
        code = terminal.link()[1]
        terminal.sees("Waiting for you to add the bot to the group…")
        desk.write("/start")
        terminal.sees("scan the code above with your phone, or open the link there, and add the bot to the group.")
        assert "press Start" not in terminal.said()
        desk.write(f"/start@hermes_demo_bot {code}", chat=TEAM.id)
        terminal.answers("let Ann answer?", "y")
        terminal.answers("May somebody else answer there, too?", "")
        assert terminal.ends() == 0
    (told,) = [text for text in desk.told() if "Almost there" in text]
    assert told.endswith("or open its link on this phone; then add me to the group.")


def test_an_agent_is_connected_only_where_it_is(desk: Desk) -> None:
    """Without one on the PATH the setup says which it knows, and goes on."""
    with desk.setup("--no-prompts", "--no-service", "--no-test") as terminal:
        pairs(terminal, desk)
        terminal.sees(f"None was found (Hermes knows {', '.join(agent.title for agent in AGENTS)})")
        assert terminal.ends() == 0
    assert not (desk.root / ".config" / "opencode").exists()

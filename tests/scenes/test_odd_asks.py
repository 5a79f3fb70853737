"""Asks that are out of the ordinary: strange labels, none or many options, passwords, folders, subagents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from hermes.sandbox.model_server import script
from tests.scenes.stage import NEWEST, asking, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes.sandbox.model_server import ScriptedModel
    from hermes.sandbox.phone_values import ShownMessage
    from tests.harness.opencode import OpenCode
    from tests.scenes.stage import Json, Stage

JOINER: Final = "\u2060"
ODD_LABELS: Final = (
    "  blanks  around  ",
    "👩‍👩‍👧 family 🏳️‍🌈 👍🏽",
    "עברית \u202edesrever\u202c",
    "<b>bold</b> & <script>alert(1)</script>",
    "*stars* _under_ `code` [link](https://evil.example/a)",
    "tg://user?id=1 https://evil.example/?q=1 evil.com @admin /start #tag $USD me@evil.com",
    "one\ntwo\tthree",
    "Repeated",
    "Repeated",
    "",
    "x" * 40 + " " + "long words " * 25,
    "Fast (Recommended)",
)
HOSTILE: Final = "Open https://evil.example/login or evil.com, /delete_all, ask @admin, #now <a href='x'>here</a> *x*"


def test_odd_labels_are_shown_harmless_and_go_out_to_the_letter(
    connected: Stage, opencode: OpenCode, project: Path
) -> None:
    """Scene 18: whatever a label holds, nothing in it is a link or a command, and the exact label is the answer."""
    session = opencode.session(project, HOSTILE)
    asked_for = question(HOSTILE, ODD_LABELS, header="@admin /now", multiple=True)
    opencode.prompt(session, [asking(asked_for, say=f"{HOSTILE}\n\u202eeth")])
    phone, page = connected.phone, connected.asked("Choose any.")
    assert len(page.text.encode("utf-16-le")) <= 2 * 4096
    _harmless(page)
    options = page.rows[:-2]
    buttons = [button for row in options for button in row]
    assert len(buttons) == len(ODD_LABELS)
    assert [button.text for button in buttons if "Repeated" in button.text] == ["☐ 8 Repeated", "☐ 9 Repeated"]
    assert "⭐" in buttons[-1].text
    order = (11, 9, 8, 0, 1, 2, 3, 4, 5, 6, 10, 7)
    for index in order:
        phone.tap(page, data=buttons[index].data)
    page = connected.turned(page, button=f"Done ({len(order)})")
    _harmless(page)
    phone.tap(page, f"Done ({len(order)})")
    wanted = [ODD_LABELS[index] for index in order]
    opencode.wait_idle(session)
    assert _kept(opencode, session) == [wanted]
    assert f'"="{", ".join(wanted)}"' in opencode.final_text(session)
    _harmless(connected.ended("✅ Fast, (empty), Repeated"))
    connected.over()


def test_single_choices_with_odd_labels(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 18: the same on pages of one choice each; the toast and the review read well."""
    labels = (ODD_LABELS[0], ODD_LABELS[2], ODD_LABELS[5], ODD_LABELS[9], ODD_LABELS[10])
    asks = [question(f"Number {number}?", ("no", label), header="") for number, label in enumerate(labels)]
    session = opencode.session(project)
    opencode.prompt(session, [asking(*asks)])
    phone, page = connected.phone, connected.asked("Number 0?")
    toasts = []
    for number in range(len(labels)):
        page = connected.turned(page, f"Number {number}?\n1 no", button="no")
        _harmless(page)
        toasts.append(phone.toast_for(phone.tap(page, row=1)).text)
    assert toasts[0] == "blanks around"
    assert toasts[3] == "(empty)"
    assert not any("\u202e" in toast for toast in toasts)
    page = connected.turned(page, "Ready to send?", "4 Number 3?: (empty)")
    _harmless(page)
    phone.tap(page, "Send")
    opencode.wait_idle(session)
    assert _kept(opencode, session) == [[label] for label in labels]
    _harmless(connected.ended("✅ Answered"))
    connected.over()


def test_an_ask_without_options_or_questions(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 18: no options: the text is the answer; no questions at all: the agent waits for a nod."""
    session = opencode.session(project)
    opencode.prompt(session, [asking(question("Which name shall it have?", (), header="Name")), asking()])
    phone, asked = connected.phone, connected.asked("Which name shall it have?")
    assert "Reply to this message with your answer." in asked.text
    assert asked.labels == (("✏️ Answer", "⏭ Skip", "⏹ Stop"),)
    phone.write("/etc/hermes on https://evil.example", reply_to=asked)
    nod = connected.asked("Go on?")
    connected.ended("✅ “/")
    assert _kept(opencode, session) == [["/etc/hermes on https://evil.example"]]
    assert nod.labels == (("Let it go on",), ("⏹ Stop",))
    phone.tap(nod, "Let it go on")
    assert opencode.final_text(session).startswith("FINAL: User has answered your questions: .")
    connected.ended("Go on?")
    connected.over()


@NEWEST
def test_sixty_options_are_leafed_through(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 18: more options than a keyboard takes stand on shelves; picks of all shelves go out together."""
    session = opencode.session(project)
    labels = tuple(f"Option {number}" for number in range(1, 61))
    opencode.prompt(session, [asking(question("Which of them?", labels, header="Many", multiple=True))])
    phone, page = connected.phone, connected.asked("Which of them?")
    assert "1–24 of 60" in page.text
    phone.tap(page, "☐ Option 2")
    phone.tap(connected.turned(page, button="☑ Option 2"), "More ▶ (25–48 of 60)")
    page = connected.turned(page, "25–48 of 60", "Also chosen: 2")
    phone.tap(page, "☐ Option 30")
    phone.tap(connected.turned(page, button="☑ Option 30"), "More ▶ (49–60 of 60)")
    page = connected.turned(page, "49–60 of 60", "Also chosen: 2, 30")
    phone.tap(page, "☐ Option 60")
    phone.tap(connected.turned(page, button="Done (3)"), "◀ 25–48")
    phone.tap(connected.turned(page, "☑ 30 Option 30"), "Done (3)")
    assert '"Which of them?"="Option 2, Option 30, Option 60"' in opencode.final_text(session)
    connected.ended("✅ Option 2, Option 30, Option 60")
    connected.over()


@NEWEST
def test_an_ask_that_is_far_too_long_is_cut_to_fit(connected: Stage, opencode: OpenCode, project: Path) -> None:
    """Scene 18: Telegram's limits hold for any input; what was cut on the phone goes out whole."""
    labels = tuple(f"{number} " + "🦆" * 300 for number in range(120))
    long = question("Which? " * 1500, labels, header="Ducks " * 100, multiple=True)
    session = opencode.session(project, "A title " * 100)
    opencode.prompt(session, [asking(*[long] * 3, say="Words. " * 2000)])
    phone, page = connected.phone, connected.asked("(1/3)")
    for _ in range(3):
        phone.tap(page, row=0, column=0)
        page = connected.turned(page, "☑ 1 ")
        _harmless(page)
        assert len(page.text.encode("utf-16-le")) <= 2 * 4096
        assert page.text.rstrip().splitlines()[-1].startswith(project.name[:30])
        place = page.text[: page.text.index(")") + 1]
        phone.tap(page, data=page.rows[-2][-1].data)
        page = _left(connected, page, place)
    phone.tap(connected.turned(page, "Ready to send?"), "Send")
    opencode.wait_idle(session)
    assert _kept(opencode, session) == [[labels[0]]] * 3
    connected.ended("✅ Answered")
    connected.over()


@pytest.mark.nightly
def test_a_server_with_a_password(stage: Stage, private_opencode: Callable[..., OpenCode]) -> None:
    """Scene 19: refused with a wrong password, answered with the right one; the log has neither."""
    password = "pässwörd: 100% 🔑"
    opencode = private_opencode(password=password, environ={"OPENCODE_SERVER_USERNAME": "ann"})
    session = opencode.session()
    opencode.prompt(session, [asking(question())])
    opencode.wait_question(session)
    stage.connect(opencode, username="ann", password="wröng")
    stage.start(settle=False).wait_line("401")
    assert stage.stop() == 0
    assert stage.phone.shown() == ()
    stage.servers.clear()
    stage.connect(opencode, username="ann", password=password)
    stage.start()
    stage.phone.tap(stage.asked("Which database"), "SQLite")
    assert '="SQLite"' in opencode.final_text(session)
    stage.ended("✅ SQLite")
    stage.over()
    assert password not in stage.log.read_text()
    assert "wröng" not in stage.log.read_text()


@pytest.fixture
def odd_folder(opencode: OpenCode) -> Iterator[Path]:
    """A project whose path has to be encoded."""
    folder = opencode.home.project("scene with blank/ünï 100%")
    yield folder
    opencode.discard(folder)


def test_a_folder_with_blanks_umlauts_and_percent(stage: Stage, opencode: OpenCode, odd_folder: Path) -> None:
    """Scene 20: found in the list at the start and through the events, answered, and followed at the desk."""
    session = opencode.session(odd_folder)
    opencode.prompt(session, [asking(question()), asking(question("Which cache?", header="Cache"))])
    opencode.wait_question(session)
    stage.connect(opencode)
    stage.start()
    asked = stage.asked("Which database")
    assert "\nünï 100% · " in asked.text
    stage.phone.tap(asked, "SQLite")
    stage.ended("✅ SQLite")
    stage.asked("Which cache?")
    (pending,) = opencode.questions(odd_folder)
    opencode.reply(pending["id"], [["Redis"]], odd_folder)
    stage.ended("🖥 Answered on the computer: Redis")
    assert '"Which cache?"="Redis"' in opencode.final_text(session)
    stage.over()


@pytest.fixture
def with_subagents(opencode: OpenCode) -> Iterator[Path]:
    """A project whose subagents may ask (contract 7: denied by default)."""
    name = f"subagents-{len(list(opencode.home.projects.iterdir()))}"
    folder = opencode.home.project(name, agent={"general": {"permission": {"question": "allow"}}})
    yield folder
    opencode.discard(folder)


@pytest.mark.story
def test_a_subagent_asks_under_the_roots_title(
    connected: Stage, opencode: OpenCode, with_subagents: Path, model: ScriptedModel
) -> None:
    """Scene 23: the phone names the root session and the subagent's; the answer reaches the subagent."""
    root, child = opencode.session(with_subagents, "Ship it"), f"child-{opencode.version}"
    opencode.prompt(root, [_task(child)])
    asked = connected.asked("Which database")
    assert "Ship it › look around (@general subagent)" in asked.text.replace(JOINER, "")
    assert "I looked around." in asked.text
    _harmless(asked)
    connected.phone.tap(asked, "SQLite")
    connected.ended("✅ SQLite")
    assert '="SQLite"' in opencode.final_text(root)
    assert '="SQLite"' in model.received(child)[0]
    connected.over()


def test_a_subagent_is_stopped_and_its_root_goes_on(
    connected: Stage, opencode: OpenCode, with_subagents: Path, model: ScriptedModel
) -> None:
    """Scene 23: contract 7: "Child reject: … the parent continues in both"."""
    root, child = opencode.session(with_subagents, "Ship it"), f"stopped-{opencode.version}"
    opencode.prompt(root, [_task(child)])
    asked = connected.asked("Which database")
    connected.phone.tap(asked, "⏹ Stop")
    connected.phone.tap(connected.turned(asked, button="Yes, stop"), "Yes, stop")
    connected.ended("⏹ Stopped")
    assert opencode.final_text(root).startswith("FINAL: ")
    assert (model.turns(child), model.turns(root)) == (1, 2)
    connected.over()


@pytest.mark.parametrize("how", ["aborted", "deleted"])
def test_a_subagents_question_ends_with_its_root(
    how: str, connected: Stage, opencode: OpenCode, with_subagents: Path
) -> None:
    """Scenes 17 and 23: OpenCode goes on listing it (contract 2); the phone does not."""
    root = opencode.session(with_subagents, "Ship it")
    opencode.prompt(root, [_task(f"{how}-{opencode.version}")])
    connected.asked("Which database")
    if how == "aborted":
        opencode.abort(root)
    else:
        opencode.delete_session(root)
    connected.ended("The agent no longer needs this")
    connected.over()


def _task(key: str) -> Json:
    """One step of the scripted model: let a subagent ask, and remember its results under `key`."""
    prompt = script([asking(question(), say="I looked around.")], key)
    task: Json = {"description": "look around", "subagent_type": "general", "prompt": prompt}
    return {"tool": "task", "args": task}


def _left(stage: Stage, page: ShownMessage, place: str) -> ShownMessage:
    """Wait until a message shows another page than this one."""

    def moved() -> ShownMessage | None:
        now = stage.phone.message(page.message_id)
        return None if now.text.startswith(place) else now

    return stage.phone.wait(moved, what=f"another page than {place!r}")


def _harmless(message: ShownMessage) -> None:
    """Nothing in it is a link, a command or a mention, and nothing turns its direction."""
    found = {entity.type for entity in message.entities}
    assert found <= {"bold", "italic", "expandable_blockquote", "hashtag"}, found
    assert len(message.marked("hashtag")) <= 1
    assert not message.link_preview
    words = message.text + "".join(label for row in message.labels for label in row)
    assert not any(sign in words for sign in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068")


def _kept(opencode: OpenCode, session: str) -> list[list[str]]:
    """Return the answers that the session's first question kept, to the letter."""
    answers: list[list[str]] = opencode.tool_parts(session, "question")[0]["state"]["metadata"]["answers"]
    return answers

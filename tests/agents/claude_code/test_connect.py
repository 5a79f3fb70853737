"""`hermes install claude-code` and back: our hooks among the user's own, and everything else as it was."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from hermes.agents.claude_code import install, shape
from hermes.errors import ConfigError, NotSaved

MINE = """{
\t"model": "opus", "cleanupPeriodDays": 1.50,
\t"hooks": {
\t\t"Stop": [ { "hooks": [{"type":"command","command":"say done"}] } ],
\t\t"Notification": []
\t},
\t"env": {"X": "\\u00e9 é"}
}"""
NEWS = ["Stop", "StopFailure", "UserPromptSubmit", "UserPromptSubmit", "SessionEnd"]
"""With each prompt one hook reports, and one begins to wait for prompts from the phone."""
WAITING = "SessionStart"
QUESTIONS = ["PermissionRequest AskUserQuestion", "PostToolUse AskUserQuestion", *NEWS, WAITING]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home with Claude Code's folder in it."""
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    return tmp_path / "home"


def place(home: Path) -> Path:
    """Where its settings are."""
    return home / ".claude" / "settings.json"


def put(home: Path, *, store: str = "state", **more: Any) -> list[str]:
    """Install into this home."""
    return install.install(
        environ={"HOME": str(home)},
        python=sys.executable,
        config_path=home / "odd 'name' ünï" / "config.toml",
        store=home / store,
        log=home / "log",
        **more,
    )


def take(home: Path) -> list[str]:
    """Uninstall from it."""
    return install.uninstall(environ={"HOME": str(home)})


def settings(home: Path) -> dict[str, Any]:
    """What stands there."""
    found: dict[str, Any] = json.loads(place(home).read_text())
    return found


def ours(home: Path) -> list[str]:
    """The events and matchers that run a hook of ours."""
    found = install._ours(settings(home))
    return [" ".join([event, *filter(None, [entry.get("matcher")])]) for event, entry in found]


def files(home: Path) -> set[str]:
    """All files in the home."""
    return {path.name for path in home.rglob("*") if path.is_file()}


def test_where_there_are_no_settings_they_are_made_and_go_away_again(home: Path) -> None:
    """For us alone to read; each command is one line for a shell, with absolute paths."""
    said = put(home)
    assert said[0] == f"Hermes' hooks are in {place(home)}."
    assert ours(home) == QUESTIONS
    assert stat.S_IMODE(place(home).stat().st_mode) == 0o600
    asking = settings(home)["hooks"]["PermissionRequest"][0]["hooks"][0]
    assert asking["timeout"] == install.LONGEST_S
    assert shlex.split(asking["command"]) == [
        *("exec", sys.executable, "-I", "-m", "hermes", "hook", "claude-code"),
        *("--store", str(home / "state"), "--log", str(home / "log")),
        *("--config", str(home / "odd 'name' ünï" / "config.toml")),
    ]
    assert take(home)[0].endswith("was removed; it held nothing else.")
    assert files(home) == set()


def test_the_folder_that_was_made_for_them_goes_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the folders of other agents do; the home stays."""
    monkeypatch.setenv("HOME", str(home))
    place(home).parent.rmdir()
    put(home)
    take(home)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "before",
    [
        MINE,
        MINE.replace("\n", "\r\n") + "\r\n",
        "{}",
        "{}\n\n",
        '{"a": 1}',
        '{ "hooks": { } }',
        '{"hooks": {"Stop": []}}\n',
        '{"hooks": {"PostToolUse": [{"matcher": "AskUserQuestion", "hooks": []}]}, "b": 1e5}',
        '{\n    "hooks": {}\n}\n',
    ],
)
def test_the_settings_come_back_to_the_byte(home: Path, before: str) -> None:
    """And while they are in, all that was there is there, in its order."""
    place(home).write_bytes(before.encode())
    place(home).chmod(0o644)
    put(home)
    held = settings(home)
    assert set(QUESTIONS) == set(ours(home))
    was = json.loads(before)
    assert [key for key in held if key in was] == list(was)
    assert {key: held[key] for key in was if key != "hooks"} == {key: was[key] for key in was if key != "hooks"}
    for event, listed in was.get("hooks", {}).items():
        assert held["hooks"][event][: len(listed)] == listed
    assert stat.S_IMODE(place(home).stat().st_mode) == 0o644
    assert len(take(home)) == 2
    assert place(home).read_bytes() == before.encode()
    assert files(home) == {"settings.json"}


def test_what_was_changed_since_stays_changed(home: Path) -> None:
    """A key of the user's, a hook beside ours in our own entry: only our part goes."""
    place(home).write_text('{"a": 1}')
    put(home)
    changed = settings(home)
    changed["b"] = 2
    changed["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "say done"})
    changed["hooks"]["Notification"] = []
    place(home).write_text(json.dumps(changed, indent=1))
    take(home)
    rest = {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "Notification": []}
    assert settings(home) == {"a": 1, "hooks": rest, "b": 2}
    assert files(home) == {"settings.json"}


def test_settings_that_we_made_stay_where_somebody_added_to_them(home: Path) -> None:
    """They are theirs now."""
    put(home)
    place(home).write_text(json.dumps({"b": 2} | settings(home)))
    take(home)
    assert settings(home) == {"b": 2}


def test_settings_that_hold_only_ours_after_another_change_go_away(home: Path) -> None:
    """Written anew by a formatter, they still hold nothing else."""
    put(home)
    place(home).write_text(json.dumps(settings(home)))
    take(home)
    assert files(home) == set()


def test_installing_again_changes_nothing_or_only_ours(home: Path) -> None:
    """Up to date: not a byte; other paths: ours are updated, and what was before is still known."""
    place(home).write_text(MINE)
    put(home)
    before = place(home).stat()
    assert put(home) == [f"{place(home)} has Hermes' hooks already, and they are up to date."]
    assert place(home).stat().st_mtime_ns == before.st_mtime_ns
    assert put(home, store="elsewhere")[0].startswith("Hermes' hooks were updated")
    assert ours(home).count("PermissionRequest AskUserQuestion") == 1
    assert all(str(home / "elsewhere") in words for words in install.commands(place(home)))
    take(home)
    assert place(home).read_text() == MINE


def test_permissions_and_headless_are_asked_for_and_kept(home: Path) -> None:
    """Off at first; what is not said stays as it is; both can be turned off again."""
    put(home, permissions=True)
    assert ours(home) == [
        *("PermissionRequest *", "PostToolUse *", "PostToolUseFailure *"),
        *(*NEWS, "SubagentStop", WAITING),
    ]
    assert len(put(home)) == 1
    put(home, permissions=False, headless=True)
    assert ours(home) == ["PreToolUse AskUserQuestion", "PostToolUse AskUserQuestion", *NEWS, WAITING]
    assert len(put(home)) == 1
    put(home, permissions=True)
    assert ours(home)[:2] == ["PreToolUse AskUserQuestion", "PermissionRequest *"]
    put(home, permissions=False, headless=False)
    assert ours(home) == QUESTIONS
    take(home)
    assert files(home) == set()


def test_hooks_wait_in_the_background_for_prompts(home: Path) -> None:
    """As a session starts and with each prompt; what the model reads then is no part of the command."""
    put(home)
    hooks = settings(home)["hooks"]
    (waiting,), (also,) = hooks["SessionStart"][0]["hooks"], hooks["UserPromptSubmit"][1]["hooks"]
    assert waiting == also
    assert shlex.split(waiting["command"])[-1] == "--prompts"
    assert (waiting["asyncRewake"], waiting["timeout"]) == (True, install.LONGEST_S)
    assert (waiting["rewakeSummary"], waiting["rewakeMessage"]) == (shape.WAKE_SUMMARY, shape.WAKE_MESSAGE)
    (telling,) = hooks["UserPromptSubmit"][0]["hooks"]
    assert "asyncRewake" not in telling


def test_settings_of_a_hermes_without_prompts_are_outdated(home: Path) -> None:
    """They work on; to install again is enough."""
    put(home)
    held = settings(home)
    del held["hooks"]["SessionStart"]
    place(home).write_text(json.dumps(held))
    environ = {"HOME": str(home)}
    assert install.is_connected(environ)
    assert install.is_outdated(environ)
    assert put(home)[0].startswith("Hermes' hooks were updated")
    assert not install.is_outdated(environ)
    assert ours(home) == QUESTIONS


def test_a_link_is_followed_and_stays(home: Path, tmp_path: Path) -> None:
    """As those have it who keep their configuration in a repository."""
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles" / "claude.json"
    kept.write_text(MINE)
    place(home).symlink_to(kept)
    put(home)
    assert place(home).is_symlink()
    assert "hermes hook" in kept.read_text()
    take(home)
    assert place(home).is_symlink()
    assert kept.read_text() == MINE
    assert [path.name for path in (tmp_path / "dotfiles").iterdir()] == ["claude.json"]


def test_the_place_follows_claude_codes_own_variable(tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR, else a folder in the home."""
    assert install.settings_path({"HOME": "/home/x"}) == Path("/home/x/.claude/settings.json")
    assert install.settings_path({"HOME": "/home/x", "CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")


def test_a_command_of_ours_that_somebody_broke_is_put_in_order(home: Path) -> None:
    """A quotation mark of it is missing: it is said in a sentence, and replaced."""
    put(home, store="a state")
    place(home).write_text(place(home).read_text().replace("a state'", "a state"))
    with pytest.raises(ConfigError, match="no shell understands"):
        install.commands(place(home))
    assert not install.is_connected({"HOME": str(home)})
    put(home, store="a state")
    assert install.is_connected({"HOME": str(home)})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (b"", r"is not JSON \(line 1, column 1: Expecting value\); nothing was changed. Correct the file first."),
        (b"{} // mine", r"is not JSON \(line 1, column 4: Extra data\)"),
        (b"[" * 100_000, "is not JSON that can be read"),
        (b"[]", "is not a JSON object"),
        (b'{"hooks": []}', "has hooks of a shape"),
        (b'{"hooks": {"Stop": {}}}', "has hooks of a shape"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_settings_that_cannot_be_understood_stay_as_they_are(home: Path, found: bytes, why: str) -> None:
    """In both directions."""
    place(home).write_bytes(found)
    with pytest.raises(ConfigError, match=why):
        put(home)
    with pytest.raises(ConfigError, match=why):
        take(home)
    assert place(home).read_bytes() == found
    assert files(home) == {"settings.json"}


def test_a_session_that_runs_need_not_be_started_again(home: Path) -> None:
    """Claude Code reads its settings again when they change."""
    assert put(home)[1] == "A Claude Code that is running takes them in at once; start it again if it does not."
    assert take(home)[1] == "A Claude Code that is running drops them at once; start it again if it does not."


def test_uninstalling_where_nothing_is_changes_nothing(home: Path) -> None:
    """With settings and without."""
    nothing = [f"{place(home)} has no hooks of Hermes; nothing was changed."]
    assert take(home) == nothing
    place(home).write_text(MINE)
    assert take(home) == nothing
    assert place(home).read_text() == MINE


def test_a_folder_that_refuses_is_one_clear_sentence(home: Path) -> None:
    """A file stands where the folder should be."""
    (home / ".claude").rmdir()
    (home / ".claude").touch()
    with pytest.raises((NotSaved, ConfigError), match=r"Not a directory|File exists"):
        put(home)


def test_a_python_without_hermes_is_refused(home: Path) -> None:
    """Better now than by a hook that fails."""
    with pytest.raises(ConfigError, match="is not a Python that has Hermes"):
        install.install(environ={"HOME": str(home)}, python="/bin/false", config_path=home, store=home, log=home)
    assert files(home) == set()


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
_HOOKS = st.dictionaries(st.sampled_from([*NEWS, "PreToolUse", "Other"]), st.lists(_JSON, max_size=3), max_size=3)


@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=4), st.none() | _HOOKS)
@example({"a": "\ud800\u2028"}, {})
def test_whatever_the_settings_are_ours_go_in_and_out(before: dict[str, Any], hooks: dict[str, Any] | None) -> None:
    """All else stays, in its order; what is written can be read again."""
    if hooks is not None:
        before["hooks"] = hooks
    ours = install.entries("exec x -I -m hermes hook claude-code --store y", permissions=False, headless=False)
    held = install._with(before, ours)
    assert json.loads(install._text(held)) == held
    assert sorted(map(str, install._ours(held))) == sorted(map(str, ours))
    rest = install._without_ours(held)
    assert {**rest, "hooks": {}} == {**before, "hooks": {}} | {"hooks": {}}
    full = {event: listed for event, listed in (hooks or {}).items() if listed}
    assert {event: listed for event, listed in rest.get("hooks", {}).items() if listed} == full
    assert [key for key in rest if key != "hooks"] == [key for key in before if key != "hooks"]

"""Changing a configuration: what was asked for, and not a sign more."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.commands.setup import file
from hermes.commands.setup.given import Changes, StoreChange
from hermes.config import reading
from hermes.config.settings import AGENT_ONLY
from hermes.errors import ConfigError

PLACE = Path("/nowhere/config.toml")
TOKEN, OTHER = f"1234567:{'a' * 35}", f"1234568:{'b' * 35}"
ALL = Changes(token=TOKEN, chat_id=-5, users=(1, 2), prompts=True)
EXAMPLE = Path(__file__).parents[3] / "config.example.toml"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[questions]\nttl = '1h'\n",
        "[[opencode]]\nurl = 'http://127.0.0.1:1'\n# the end",
        f"telegram = {{ token = '{OTHER}', chat_id = 1, users = [1] }}\n",
        f"telegram.token = '{OTHER}'\ntelegram.chat_id = 1\ntelegram.users = [1]\nquestions.ttl = '1h'\n",
        f"[telegram]\r\ntoken = '{OTHER}' # mine\r\nchat_id = 1\r\nusers = [\r\n  1, # Ann\r\n]\r\n",
        "[telegram]\ntoken_file = '/nowhere/token'\n",
        "prompts = { enabled = false, projects = ['a'] }\n",
        "prompts.projects = ['a']\nquestions.ttl = '1h'\n",
        "[prompts]\nprojects = ['a']\n\n[[opencode]]\nurl = 'http://127.0.0.1:1'\n",
        EXAMPLE.read_text(encoding="utf-8"),
    ],
)
def test_whatever_the_form_it_then_says_what_it_should(text: str | None) -> None:
    """Every way of writing a table; all other values stay."""
    after = tomllib.loads(file.edited(text, ALL, PLACE))
    telegram = after.pop("telegram")
    assert telegram == {"token": TOKEN, "chat_id": -5, "users": [1, 2]}
    before = tomllib.loads(text or "")
    before.pop("telegram", None)
    assert after == before | {"prompts": before.get("prompts", {}) | {"enabled": True}}


def test_comments_stay_where_they_are() -> None:
    """Also those beside what is changed, and beside the people who stay."""
    text = "# top\n[telegram] # bot\nchat_id = 1 # mine\nusers = [\n  1, # Ann\n]\n# end\n"
    after = file.edited(text, Changes(chat_id=-5, users=(1, 2)), PLACE)
    for comment in ("# top", "[telegram] # bot", "chat_id = -5 # mine", "  1, # Ann", "# end"):
        assert comment in after.splitlines()


def test_what_is_the_same_is_not_written_anew() -> None:
    """Not even its form."""
    text = f"[telegram]\ntoken='{TOKEN}'\nchat_id=-5\nusers=[1,2,]\n[prompts]\nenabled=true\n"
    assert file.edited(text, ALL, PLACE) == text


def test_prompts_that_are_off_need_no_table() -> None:
    """They are off without one; one that is there is kept, and says so."""
    off = Changes(prompts=False)
    assert file.edited("[telegram]\n", off, PLACE) == "[telegram]\n"
    assert file.edited("[telegram]\n[prompts]\n", off, PLACE) == "[telegram]\n[prompts]\n"
    text = "[telegram]\n[prompts]\nenabled = true # for Ann\nprojects = []\n"
    assert file.edited(text, off, PLACE) == text.replace("true", "false")


def test_a_token_and_its_file_are_never_both_there() -> None:
    """The one that is written takes the other's place."""
    text = file.edited(None, ALL, PLACE)
    named = file.edited(text, Changes(token_file=Path("/run/token")), PLACE)
    assert tomllib.loads(named)["telegram"] == {"token_file": "/run/token", "chat_id": -5, "users": [1, 2]}
    assert tomllib.loads(file.edited(named, Changes(token=TOKEN), PLACE)) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text", ["telegram = 3\n", "[[telegram]]\n", "[telegram\n", "prompts = 3\n", "[[prompts]]\n", "opencode2 = 3\n"]
)
def test_what_cannot_be_changed_is_refused(text: str) -> None:
    """With the file's name, and what would be right."""
    with pytest.raises(ConfigError, match=r"/nowhere/config\.toml"):
        file.edited(text, replace(ALL, opencode2_file=Path("/state/service.json")), PLACE)


def test_what_somebody_wrote_meanwhile_stays(tmp_path: Path) -> None:
    """The file is read again at the moment of writing."""
    place = tmp_path / "new" / "config.toml"
    assert file.write(place, ALL, environ={})
    place.write_text(place.read_text() + "[questions]\nttl = '2h'\n")
    assert file.write(place, Changes(chat_id=7), environ={})
    told = tomllib.loads(place.read_text())
    assert (told["telegram"]["chat_id"], told["questions"]["ttl"]) == (7, "2h")
    assert not file.write(place, Changes(chat_id=7), environ={})


def test_an_agent_only_machine_has_no_bot_yet(tmp_path: Path) -> None:
    """The setup says so, and gives it one."""
    place = tmp_path / "config.toml"
    place.write_text('store.url = "postgresql://ci@127.0.0.1/hermes"\n')
    draft = file.read(place, environ={})
    assert (draft.config, draft.lacks) == (None, AGENT_ONLY)
    assert file.write(place, ALL, environ={})
    assert file.read(place, environ={}).config is not None


def test_a_folder_for_state_of_this_shell_alone_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener that a hook starts finds the OpenCode 2 of this shell by that, and a file that is named stays."""
    place = tmp_path / "config.toml"
    state = tmp_path / "state" / "opencode" / "service.json"
    assert file.write(place, ALL, environ={"HOME": "/home/ann", "XDG_STATE_HOME": str(tmp_path / "state")})
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert reading.load(place, environ={}).opencode2.file == state
    assert not file.write(place, ALL, environ={"HOME": "/home/ann", "XDG_STATE_HOME": "/elsewhere"})
    assert reading.load(place, environ={}).opencode2.file == state


@pytest.mark.parametrize("folder", ["", "state", "/home/ann/.local/state"])
def test_the_usual_folder_for_state_needs_no_word(folder: str, tmp_path: Path) -> None:
    """Nor does one that is no full path: by the rule of XDG, that is as if there were none."""
    place = tmp_path / "config.toml"
    assert file.write(place, ALL, environ={"HOME": "/home/ann", "XDG_STATE_HOME": folder})
    assert "opencode2" not in place.read_text()


def test_a_link_is_followed(tmp_path: Path) -> None:
    """As those do it who keep their configuration in a repository."""
    (tmp_path / "dotfiles").mkdir()
    place = tmp_path / "config.toml"
    place.symlink_to(tmp_path / "dotfiles" / "hermes.toml")
    file.write(place, ALL, environ={})
    assert place.is_symlink()
    assert [path.name for path in (tmp_path / "dotfiles").iterdir()] == ["hermes.toml"]


def test_what_the_environment_says_of_bot_and_people_does_not_count(tmp_path: Path) -> None:
    """The file must be right by itself; a wrong one never takes the place of a right one."""
    place = tmp_path / "config.toml"
    environ = {"HERMES_TELEGRAM__TOKEN": OTHER, "HERMES_TELEGRAM__CHAT_ID": "9"}
    file.write(place, ALL, environ=environ)
    before = place.read_bytes()
    draft = file.read(place, environ=environ)
    assert draft.config is not None
    assert draft.config.telegram.chat_id == -5
    with pytest.raises(ConfigError, match="chat_id is 0"):
        file.write(place, Changes(chat_id=0), environ=environ)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


def test_a_proxy_of_the_shell_keeps_no_other_one_out_of_the_file(tmp_path: Path) -> None:
    """Programs of this shell go on with their own; all others, such as the service, take that of the file."""
    place = tmp_path / "config.toml"
    environ = {"HERMES_TELEGRAM__PROXY": "http://127.0.0.1:1"}
    changes = Changes(token=TOKEN, chat_id=-5, users=(1,), proxy="http://127.0.0.1:2")
    assert file.write(place, changes, environ=environ)
    assert tomllib.loads(place.read_text())["telegram"]["proxy"] == "http://127.0.0.1:2"


def test_a_password_of_the_database_is_written_with_the_configuration_or_not_at_all(tmp_path: Path) -> None:
    """If the configuration cannot be changed, its file is as before: absent, or with the earlier password."""
    place, secret = tmp_path / "config.toml", tmp_path / file.PASSWORD_FILE
    change = StoreChange("postgresql://ci@127.0.0.1/hermes", "hush", secret)
    place.write_text("[questions]\nttl = 'x'\n")
    for before in (None, b"earlier\n"):
        if before is not None:
            secret.write_bytes(before)
        with pytest.raises(ConfigError, match="ttl"):
            file.write(place, Changes(store=change), environ={})
        assert (secret.read_bytes() if secret.exists() else None) == before
    place.write_text("[store]\nkeep_done = '2d' # mine\npassword_file = '/elsewhere'\n")
    assert file.write(place, Changes(store=change), environ={})
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("hush\n", 0o600)
    assert "keep_done = '2d' # mine" in place.read_text()
    assert not file.write(place, Changes(store=change), environ={})
    assert file.write(place, Changes(store=StoreChange(change.url, "other", secret)), environ={})
    assert file.write(place, Changes(store=StoreChange(change.url)), environ={})
    assert "password_file" not in place.read_text()


def test_the_file_of_an_agent_only_machine_names_no_token() -> None:
    """It has no bot."""
    text = file.edited(None, Changes(store=StoreChange("postgresql://ci@127.0.0.1/hermes", tls="off")), PLACE)
    assert "token" not in text
    assert tomllib.loads(text) == {"store": {"url": "postgresql://ci@127.0.0.1/hermes", "tls": "off"}}

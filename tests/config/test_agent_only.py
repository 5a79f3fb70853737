"""A machine without a bot: the store in a database is all that it needs."""

from pathlib import Path

import pytest

from hermes.config.reading import load, loads
from hermes.config.settings import AGENT_ONLY, Config
from hermes.errors import ConfigError
from tests.config.test_reading import EXAMPLE, NEEDED, told, written

URL = "postgresql://ci@127.0.0.1/hermes"
LINE = f'store.url = "{URL}"\n'


@pytest.mark.parametrize(
    "text", [LINE, f'[store]\nurl = "{URL}"\n[telegram]\n', LINE + EXAMPLE.read_text().replace("[store]", "")]
)
def test_one_line_is_enough(text: str, tmp_path: Path) -> None:
    """Also above the example as it comes, whose [telegram] is empty."""
    config = load(written(tmp_path, text), environ={})
    assert config.phone is None
    assert config.store.url == URL
    with pytest.raises(ConfigError, match="this machine is agent-only") as caught:
        _ = config.telegram
    assert str(caught.value) == AGENT_ONLY


def test_a_machine_with_a_database_and_a_bot_has_both(tmp_path: Path) -> None:
    """It can be the phone side."""
    config = load(written(tmp_path, LINE + NEEDED), environ={})
    assert config.telegram is config.phone
    assert config.store.address is not None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "[telegram] token is missing"),
        ('[store]\nurl = ""\n', "[telegram] token is missing"),
        ("store = 3\n", "[telegram] token is missing"),
        (f"{LINE}[telegram]\nchat_id = 5\n", "[telegram] token is missing"),
        (f"telegram = 3\n{LINE}", "telegram is wrong; it must be a table [telegram]."),
    ],
)
def test_a_bot_is_needed_without_a_database_and_whole_or_not_at_all(text: str, sentence: str, tmp_path: Path) -> None:
    """Half a [telegram] is a mistake, whatever the store is."""
    assert sentence in told(tmp_path, text)


def test_a_variable_alone_configures_a_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container is started; without a file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = load(None, environ={"HERMES_STORE__URL": URL})
    assert (config.phone, config.store.url) == (None, URL)
    with pytest.raises(ConfigError, match="not set up yet"):
        load(None, environ={"HERMES_STORE__TLS": "off"})


def test_sections_that_are_values_already_are_taken(tmp_path: Path) -> None:
    """As code makes a configuration of its parts."""
    config = loads(LINE, tmp_path / "config.toml", environ={})
    assert Config.model_validate({"store": config.store}).phone is None

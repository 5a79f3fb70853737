"""The keys of a store in a database."""

import sys
from pathlib import Path

import pytest

from hermes.commands import loading
from hermes.config.reading import load
from hermes.errors import ConfigError
from tests.config.test_reading import NEEDED, told, written

SECRET = "hush-hush-hush-hush-hush"
URL = "postgresql://ann@db.example/hermes"


def said(folder: Path, keys: str) -> str:
    """The sentence with which these keys of [store] are refused, after the place."""
    sentence = told(folder, f"{NEEDED}[store]\n{keys}")
    return sentence.removeprefix(f"{folder / 'config.toml'}, [store] ")


def test_a_folder_is_the_default(tmp_path: Path) -> None:
    """Nothing changes for one machine."""
    store = load(written(tmp_path, NEEDED), environ={}).store
    assert (store.url, store.address) == ("", None)


def test_the_keys_make_an_address(tmp_path: Path) -> None:
    """The password is read from its file whenever it is needed, so that it can be changed."""
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "ca.pem").write_text("")
    keys = f'url = "{URL}"\npassword_file = "{tmp_path}/password"\nca_file = "{tmp_path}/ca.pem"\n'
    config = load(written(tmp_path, f"{NEEDED}[store]\n{keys}"), environ={})
    address = config.store.address
    assert address is not None
    assert (address.password, address.tls, address.name) == (SECRET, "verify-full", "hermes on db.example")
    assert address.parameters()["sslrootcert"] == f"{tmp_path}/ca.pem"
    assert SECRET not in repr(config) + repr(address) + config.model_dump_json()
    (tmp_path / "password").write_text("another")
    assert config.store.address != address
    (tmp_path / "password").unlink()
    with pytest.raises(ConfigError, match=r"^The password of the database cannot be read from password_file /.*\.$"):
        _ = config.store.address


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('url = "mysql://a@b/c"', "url is not the URL of a PostgreSQL database; it must be a URL without password"),
        (f'url = "postgresql://a:{SECRET}@b/c"', "url has a password in it, which others could see: write it into"),
        (f'url = "{URL}?sslmode=require"', "url has sslmode=require, with which any machine could pose as the"),
        ("url = 3", "url is wrong; it must be a URL without password such as"),
        (f'url = "{URL}"\ntls = "of"', 'tls is wrong; it must be "verify-full" or "off".'),
        ('password_file = "/nowhere"', "password_file has no password: it cannot be read from password_file /nowhere"),
        (
            f'password = "{SECRET}"',
            "password is not known; password belongs in [[opencode]]; the nearest key is password_file.",
        ),
        (f'url = "{URL}"\nca_file = "/nowhere"', "url needs the certificate authorities in /nowhere, which is not a"),
    ],
)
def test_a_wrong_key_is_one_sentence(keys: str, sentence: str, tmp_path: Path) -> None:
    """Without the URL, whose password it would repeat."""
    told = said(tmp_path, keys)
    assert told.startswith(sentence)
    assert SECRET not in told


def test_without_psycopg_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; a configuration without a database does not need it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert said(tmp_path, f'url = "{URL}"').startswith("url needs psycopg: install hermes-phone[postgres]; ")
    load(written(tmp_path, NEEDED), environ={})


def test_the_password_is_kept_out_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the other secrets."""
    hidden: list[list[str]] = []
    monkeypatch.setattr(loading, "set_up", lambda *_, secrets, **__: hidden.append(secrets))
    (tmp_path / "password").write_text(SECRET)
    keys = f'url = "{URL}"\npassword_file = "{tmp_path}/password"\n'
    loading.load(written(tmp_path, f"{NEEDED}[store]\n{keys}"), log_json=False)
    assert SECRET in hidden[0]

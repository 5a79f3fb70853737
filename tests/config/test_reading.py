"""The configuration: what is read, what wins, and the one sentence of every error."""

import contextlib
import os
import re
import sys
import tomllib
from datetime import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError

from hermes.config.reading import config_path, load, open_to_others
from hermes.config.settings import SECTIONS, Config, OpenCode, Questions
from hermes.config.values import QuietHours, is_here
from hermes.errors import ConfigError

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"
NEEDED = f'[telegram]\ntoken = "{TOKEN}"\nchat_id = -1001\nusers = [7, 8]\n'
EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def written(folder: Path, text: str) -> Path:
    """A configuration file of this text."""
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def told(folder: Path, text: str, environ: dict[str, str] | None = None) -> str:
    """The sentence that this configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        load(written(folder, text), environ=environ or {})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("state", "folder"), [(None, ".local/state"), ("", ".local/state"), ("elsewhere", "elsewhere")]
)
def test_opencode_2_is_found_where_it_keeps_its_file(
    state: str | None, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows XDG_STATE_HOME on every system, on a Mac too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if state is not None:
        monkeypatch.setenv("XDG_STATE_HOME", state and str(tmp_path / state))
    monkeypatch.setattr("platformdirs.user_state_path", lambda _: tmp_path / "Library")  # as on a Mac
    config = load(written(tmp_path, NEEDED), environ={})
    assert config.opencode2.file == tmp_path / folder / "opencode" / "service.json"


def test_the_needed_keys_are_enough(tmp_path: Path) -> None:
    """Token, chat and users make a configuration; all else has a default."""
    config = load(written(tmp_path, NEEDED), environ={})
    assert config.telegram.token.get_secret_value() == TOKEN
    assert config.telegram.bot_id == 123456789
    assert (config.telegram.chat_id, config.telegram.users) == (-1001, (7, 8))
    assert config.telegram.api_base == "https://api.telegram.org"
    assert (config.questions.ttl, config.questions.on_expiry, config.questions.zone) == (1800, "reject", None)
    assert (config.matching.tries, config.matching.delay) == (20, 0.3)
    assert (config.store.keep_done, config.opencode, config.log.level) == (7 * 86400, (), "info")
    assert config.store.path.is_absolute()
    assert config.log.file.name == "hermes.log"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    """An editor of Windows writes one."""
    file = tmp_path / "config.toml"
    file.write_text(NEEDED, encoding="utf-8-sig")
    assert load(file, environ={}).telegram.chat_id


def test_every_key_can_be_said_in_the_file(tmp_path: Path) -> None:
    """A file that uses each kind of value is read as it was meant."""
    text = f"""{NEEDED}
    api_base = "http://127.0.0.1:8081/"
    proxy = "socks5://me:hush@127.0.0.1:1080"
    [questions]
    ttl = "1h30m"
    on_expiry = "keep"
    remind_at = "10m"
    post_after = "20s"
    quiet_hours = "22:00-7:30"
    tz = "Europe/Berlin"
    context_chars = 0
    [store]
    path = "{tmp_path}/store"
    keep_done = "2d"
    [matching]
    tries = 3
    delay = "0.5s"
    [[opencode]]
    url = "http://127.0.0.1:4096/"
    [[opencode]]
    name = "second"
    url = "https://box:4097"
    username = "me"
    password = "hush"
    [log]
    level = "DEBUG"
    file = "~/h.log"
    """
    config = load(written(tmp_path, text), environ={})
    assert config.telegram.api_base == "http://127.0.0.1:8081"
    assert config.telegram.proxy is not None
    assert config.telegram.proxy.get_secret_value() == "socks5://me:hush@127.0.0.1:1080"
    assert (config.questions.ttl, config.questions.remind_at, config.questions.post_after) == (5400, 600, 20)
    assert config.questions.quiet_hours == QuietHours(time(22), time(7, 30))
    assert str(config.questions.zone) == "Europe/Berlin"
    assert (config.store.path, config.store.keep_done) == (tmp_path / "store", 172800)
    assert [server.name for server in config.opencode] == ["opencode", "second"]
    assert config.opencode[0] == OpenCode(url="http://127.0.0.1:4096")
    assert config.opencode[1].password.get_secret_value() == "hush"
    assert (config.log.level, config.log.file) == ("debug", Path.home() / "h.log")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300ms", 0.3),
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("7d", 604800),
        ("1h 30m", 5400),
        ("1.5h", 5400),
    ],
)
def test_a_duration_has_a_unit(text: str, seconds: float) -> None:
    """Each unit, and several together, become seconds."""
    assert Questions.model_validate({"ttl": text}).ttl == pytest.approx(seconds)


@given(st.text())
def test_no_text_makes_a_duration_crash(text: str) -> None:
    """Whatever is written is a duration or a wrong setting, never another error."""
    with contextlib.suppress(ValidationError):
        assert Questions.model_validate({"ttl": text}).ttl > 0


WRONG = [
    (
        "[questions]\nttl = 30",
        '[questions] ttl is 30, which is not a duration; it must be a duration above zero, such as "30m".',
    ),
    ('[questions]\nttl = "30"', '[questions] ttl is "30", which is not a duration; it must be'),
    ('[questions]\nttl = "0s"', '[questions] ttl is wrong; it must be a duration above zero, such as "30m".'),
    ('[questions]\nremind_at = "0s"', "[questions] remind_at is wrong; it must be a duration above zero, such as"),
    ('[questions]\nttl = "none"', "[questions] ttl is"),
    ("[questions]\nremind_at = 2024-01-01", "[questions] remind_at is"),
    ('[questions]\ntll = "30m"', "[questions] tll is not known; the nearest key is ttl."),
    ('[questions]\nkeep_done = "1d"', "[questions] keep_done is not known; keep_done belongs in [store]."),
    (
        '[questions]\npassword_file = "/x"',
        "[questions] password_file is not known; password_file belongs in [store] or [[opencode]].",
    ),
    ('[store]\nttl = "30m"', "[store] ttl is not known; ttl belongs in [questions]; the nearest key is tls."),
    ('token = "x"\n', "token is not known; token belongs in [telegram]."),
    ("tries = 3\n", "tries is not known; tries belongs in [matching]."),
    ("[question]\n", "question is not known; the nearest section is [questions]."),
    ('ttl = "30m"\n', "ttl is not known; ttl belongs in [questions]."),
    ('[matching]\nzzz = "1d"', "[matching] zzz is not known; the keys are tries, delay."),
    ("[foo]\n", "foo is not known; the sections are [telegram], [questions], "),
    (
        '[questions]\non_expiry = "panic"',
        '[questions] on_expiry is wrong; it must be "reject", "recommended",',
    ),
    ('[questions]\nquiet_hours = "22-7"', "[questions] quiet_hours is not two times of the day; it must be"),
    ('[questions]\nquiet_hours = "24:00-07:00"', "[questions] quiet_hours is not two times of the day"),
    ('[questions]\nquiet_hours = "07:00-07:00"', "[questions] quiet_hours starts when it ends; it must be"),
    (
        '[questions]\ntz = "Mars/Base"',
        '[questions] tz is "Mars/Base", a time zone that this machine does not',
    ),
    ('[questions]\ntz = "../etc"', '[questions] tz is "../etc", a time zone'),
    (
        "[questions]\ncontext_chars = 3001",
        "[questions] context_chars is wrong; it must be a whole number from 0",
    ),
    (
        "[matching]\ntries = true",
        "[matching] tries is not a whole number; it must be a whole number, 1 or more.",
    ),
    ("[matching]\ntries = 0", "[matching] tries is wrong; it must be a whole number, 1 or more."),
    ('[store]\npath = "here"', "[store] path is not absolute; it must be the absolute path of a folder"),
    ("[store]\npath = 3", "[store] path is not a path; it must be"),
    (
        '[store]\npath = "/x/a\\u0000b"',
        "[store] path has a NUL character in it; it must be the absolute path of a folder",
    ),
    ('[log]\nfile = "/x/a\\u0000b"', "[log] file has a NUL character in it; it must be"),
    ('[monitor]\nping_url_file = "/x/a\\u0000b"', "[monitor] ping_url_file has a NUL character in it; it must be"),
    (
        '[store]\npath = "~nobody-has-this-name/x"',
        "[store] path names a home folder that is not known; it must be",
    ),
    ('[log]\nlevel = "loud"', '[log] level is wrong; it must be "debug"'),
    ("log = 3", "log is wrong; it must be a table [log]."),
    ("opencode = 3", "opencode is wrong; it must be tables [[opencode]] in double brackets"),
    ('[opencode]\nurl = "http://x"', "opencode is wrong; it must be tables [[opencode]] in double brackets"),
    ('[[opencode]]\nname = "x"', "[[opencode]] number 1, url is missing; it must be an http(s) URL"),
    (
        '[[opencode]]\nurl = "http://a"\n[[opencode]]\nurl = "b"',
        "[[opencode]] number 2, url is not a URL of the right",
    ),
    (
        '[[opencode]]\nurl = "http://a"\n[[opencode]]\nurl = "http://b"',
        "opencode has two servers of one name; it",
    ),
    ('[[opencode]]\nurl = "http://[a"', "[[opencode]] number 1, url is not a URL; it must be"),
    ('[[opencode]]\nurl = "http://\u0300a"', "[[opencode]] number 1, url is not a URL; it must be"),
    ('[[opencode]]\nurl = "http://192.168.1.256:4096"', "[[opencode]] number 1, url is not a URL; it must be"),
    ('[[opencode]]\nurl = "http://a?b"', "[[opencode]] number 1, url has a '?' in it; it must be"),
    ('[[opencode]]\nurl = "http://a#b"', "[[opencode]] number 1, url has a '#' in it; it must be"),
    (
        '[monitor]\nping_url = "https://a/u?x#f"',
        "[monitor] ping_url has a '#' in it; it must be an http(s) URL such as",
    ),
    ('[[opencode]]\nur = "http://a"', "[[opencode]] number 1, ur is not known; the nearest key is url."),
    (
        '[[opencode]]\nurl = "http://a"\npassword = 3',
        "[[opencode]] number 1, password is not text; it must be",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_an_error_says_file_key_what_is_wrong_and_what_would_be_right(text: str, sentence: str, tmp_path: Path) -> None:
    """One sentence each, with the file in front."""
    bare = not text.startswith("[")
    said = told(tmp_path, f"{text}\n{NEEDED}" if bare else f"{NEEDED}\n{text}")
    assert said.startswith(f"{tmp_path / 'config.toml'}, {sentence}")
    assert said.endswith(".")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("users = []", "users is empty, so nobody could answer; it must be a list of the numeric ids"),
        ("users = [-5]", "users contains an id that is not a person's; it must be"),
        ('users = ["me"]', "users is wrong; it must be"),
        ("users = [true]", "users is not a whole number; it must be"),
        ("chat_id = 0", "chat_id is 0, which is not a chat; it must be the numeric id of the chat"),
        ("chat_id = 1.0", "chat_id is not a whole number"),
        ('chat_id = "@me"', "chat_id is wrong; it must be the numeric id of the chat"),
        ('token = ""', "token is missing; it must be the token that @BotFather gave"),
        ('token = "x"', "token does not look like a token; it must be"),
        ("token = 3", "token is not text; it must be"),
    ],
)
def test_a_wrong_bot_chat_or_person_is_refused(line: str, sentence: str, tmp_path: Path) -> None:
    """What has no default is checked with the same care."""
    key = line.partition(" ")[0]
    text = re.sub(rf"^{key} = .*$", line, NEEDED, flags=re.MULTILINE)
    assert told(tmp_path, text).startswith(f"{tmp_path / 'config.toml'}, [telegram] {sentence}")


def test_a_misspelt_key_is_named_before_the_one_that_is_missing_for_it(tmp_path: Path) -> None:
    """`tokn` is the trouble, not the missing token."""
    assert "[telegram] tokn is not known; the nearest key is token." in told(
        tmp_path, NEEDED.replace("token =", "tokn =")
    )


def test_the_environment_wins(tmp_path: Path) -> None:
    """Each key can come as HERMES_SECTION__KEY, and that is what counts."""
    environ = {
        "HERMES_TELEGRAM__USERS": "1,2",
        "HERMES_TELEGRAM__CHAT_ID": "-5",
        "HERMES_QUESTIONS__TTL": "2h",
        "HERMES_MATCHING__TRIES": "4",
        "HERMES_REQUIRE_SCENES": "1",
        "TELEGRAM__TOKEN": "not ours",
    }
    servers = '[[opencode]]\nurl = "http://a"\n[[opencode]]\nname = "second"\nurl = "http://b"'
    config = load(written(tmp_path, f"{NEEDED}\n[questions]\nttl = '5m'\n{servers}"), environ=environ)
    assert (config.telegram.users, config.telegram.chat_id) == ((1, 2), -5)
    assert (config.questions.ttl, config.matching.tries) == (7200, 4)
    assert [(server.name, server.url) for server in config.opencode] == [
        ("opencode", "http://a"),
        ("second", "http://b"),
    ]


def test_a_project_and_a_program_can_begin_with_the_home_folder(tmp_path: Path) -> None:
    """Else a project that is kept from the phone would not be: an agent names its whole path."""
    text = f"""{NEEDED}
    [permissions]
    without_projects = ["~/secret", "shop-api", "~shop"]
    without_tools = ["~tool"]
    [prompts]
    projects = ["~/shop-api/"]
    transcribe = ["~/bin/hear", "-m", "~/models/base.bin"]
    """
    config = load(written(tmp_path, text), environ={})
    home = Path.home()
    assert config.permissions.without_projects == (f"{home}/secret", "shop-api", "~shop")
    assert config.permissions.without_tools == ("~tool",)
    assert config.prompts.projects == (f"{home}/shop-api/",)
    assert config.prompts.transcribe == (f"{home}/bin/hear", "-m", f"{home}/models/base.bin")


def test_users_from_the_environment_may_be_json(tmp_path: Path) -> None:
    """Both "[1, 2]" and "1,2" are a list."""
    environ = {"HERMES_TELEGRAM__USERS": "[1, 2]", "HERMES_PERMISSIONS__NEVER_ALWAYS": '["rm", "a, b"]'}
    config = load(written(tmp_path, NEEDED), environ=environ)
    assert config.telegram.users == (1, 2)
    assert config.permissions.never_always == ("rm", "a, b")


def test_the_environment_alone_is_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody named a file and there is none, the environment can hold all that is needed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    environ = {
        "HERMES_TELEGRAM__TOKEN": TOKEN,
        "HERMES_TELEGRAM__CHAT_ID": "5",
        "HERMES_TELEGRAM__USERS": "5",
    }
    assert load(None, environ=environ).telegram.chat_id == 5
    named = r"config.toml \(not there yet: `hermes setup` writes it\), \[telegram\] chat_id is missing; it must"
    with pytest.raises(ConfigError, match=named):
        load(None, environ={"HERMES_TELEGRAM__TOKEN": TOKEN})


def test_before_the_setup_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is named to a person who has not met one; a file that was named is missed by its name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"^not set up yet\. Run `hermes setup`\.$"):
        load(None, environ={"HERMES_QUESTIONS__TTL": "9m"})
    with pytest.raises(ConfigError, match=r"here\.toml does not exist"):
        load(tmp_path / "here.toml", environ={})


def test_nothing_comes_from_the_process_by_stealth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the `environ` that was handed in counts."""
    monkeypatch.setenv("HERMES_QUESTIONS__TTL", "9h")
    monkeypatch.setenv("HERMES_TELEGRAM", "{}")
    assert load(written(tmp_path, NEEDED), environ={}).questions.ttl == 1800


IN_THE_FILE_ALONE = "is not known; write a table [[opencode]] into the configuration file."


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "HERMES_QUESTIONS__TTL",
            "9",
            'is "9", which is not a duration; it must be a duration above zero, such as "30m".',
        ),
        ("HERMES_QUESTIONS__TLL", "9", "is not known; the nearest key is ttl."),
        ("HERMES_QUESTION__TTL", "9m", "is not known; the nearest section is [questions]."),
        ("HERMES_QUESTIONS__TTL__X", "9m", "is not known"),
        ("HERMES_OPENCODE__URL", "http://x", IN_THE_FILE_ALONE),
        ("HERMES_OPENCODE__1__URL", "http://x", IN_THE_FILE_ALONE),
        ("HERMES_TELEGRAM__USERS", "", "is empty, so nobody could answer; it must be"),
        ("HERMES_TELEGRAM__USERS", "[1", "is not a list; it must be"),
    ],
)
def test_an_error_in_the_environment_names_the_variable(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    """The file is not blamed for what the environment says."""
    said = told(tmp_path, NEEDED, {name: text})
    assert said.startswith(f"The environment variable {name} {sentence}")


def test_a_section_of_the_wrong_kind_is_said_even_with_a_variable_for_it(tmp_path: Path) -> None:
    """A variable cannot be laid over what is no table."""
    assert "log is wrong" in told(tmp_path, f"log = 3\n{NEEDED}", {"HERMES_LOG__LEVEL": "debug"})
    assert "opencode is wrong" in told(tmp_path, f"opencode = 3\n{NEEDED}")


def test_the_token_can_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    """As systemd hands over credentials."""
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    text = NEEDED.replace(f'token = "{TOKEN}"', f'token_file = "{tmp_path}/token"')
    assert load(written(tmp_path, text), environ={}).telegram.token.get_secret_value() == TOKEN


def test_a_secret_from_the_environment_puts_away_its_file_from_the_file(tmp_path: Path) -> None:
    """No quarrel between the two: the environment wins."""
    text = NEEDED.replace(f'token = "{TOKEN}"', 'token_file = "/nowhere"')
    config = load(written(tmp_path, text), environ={"HERMES_TELEGRAM__TOKEN": TOKEN})
    assert config.telegram.bot_id == 123456789


def test_a_password_can_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    """The same for a server's password, of any UTF-8."""
    (tmp_path / "password").write_text("hüsh\n", encoding="utf-8")
    text = f'{NEEDED}[[opencode]]\nurl = "http://a"\npassword_file = "{tmp_path}/password"'
    assert load(written(tmp_path, text), environ={}).opencode[0].password.get_secret_value() == "hüsh"


@pytest.mark.parametrize(
    ("held", "extra", "sentence"),
    [
        (None, "", "token cannot be read from token_file {file} (No such file or directory); it must be"),
        (b" \n", "", "token is not there: token_file {file} is empty; it must be"),
        (b"\xff\xfe", "", "token cannot be read from token_file {file} (not UTF-8); it must be"),
        (
            b"x",
            f'token = "{TOKEN}"\n',
            "token is set, and token_file too: one of the two must go; it must be",
        ),
    ],
)
def test_a_secret_file_that_does_not_serve_is_named(
    held: bytes | None, extra: str, sentence: str, tmp_path: Path
) -> None:
    """The sentence names the file, and what is wrong with it."""
    file = tmp_path / "token"
    if held is not None:
        file.write_bytes(held)
    text = NEEDED.replace(f'token = "{TOKEN}"\n', f'token_file = "{file}"\n{extra}')
    assert f"[telegram] {sentence.format(file=file)}" in told(tmp_path, text)


def test_the_address_of_a_monitor_is_a_secret_of_any_form(tmp_path: Path) -> None:
    """With a query, from a file, from the environment; none where nothing is said."""
    assert not load(written(tmp_path, NEEDED), environ={}).monitor.ping_url
    url = "https://kuma.example/api/push/5ecre7/?status=up&ping="
    file = tmp_path / "url"
    file.write_text(f"{url}\n")
    text = f'{NEEDED}[monitor]\nping_url_file = "{file}"'
    for environ in ({}, {"HERMES_MONITOR__PING_URL": url}):
        config = load(written(tmp_path, text), environ=environ)
        assert config.monitor.ping_url.get_secret_value() == url
        assert "5ecre7" not in repr(config)
    for wrong in ("ftp://5ecre7", "5ecre7", "https://a/5ecre7#x", "https://a /5ecre7"):
        sentence = told(tmp_path, f'{NEEDED}[monitor]\nping_url = "{wrong}"')
        assert "[monitor] ping_url " in sentence
        assert 'it must be an http(s) URL such as "https://hc-ping.com/your-uuid"' in sentence
        assert "5ecre7" not in sentence


SECRET = "hush-hush-hush-hush-hush"


@pytest.mark.parametrize(
    "text",
    [
        NEEDED.replace(TOKEN, SECRET),
        NEEDED.replace(f'"{TOKEN}"', f'["{SECRET}"]'),
        NEEDED.replace("chat_id", f'proxy = "{SECRET}"\nchat_id'),
        NEEDED.replace("chat_id", f'proxy = "ftp://a:{SECRET}@b"\nchat_id'),
        NEEDED.replace("chat_id", f'api_base = "http://a:{SECRET}@b"\nchat_id'),
        f'{NEEDED}[[opencode]]\nurl = "http://a:{SECRET}@b"',
        f'{NEEDED}[[opencode]]\nurl = "http://a:{SECRET}"',
        f'{NEEDED}[[opencode]]\nurl = "http://a"\npassword = ["{SECRET}"]',
        f'{NEEDED}[[opencode]]\nurl = "http://a"\npassword = "{SECRET}',
        f'{NEEDED}[[opencode]]\nulr = "http://a"\npassword = "{SECRET}"',
    ],
)
def test_no_error_holds_a_secret(text: str, tmp_path: Path) -> None:
    """Neither the sentence nor what stands behind it (`told` looks at the causes)."""
    assert SECRET not in told(tmp_path, text)


def test_no_repr_holds_a_secret(tmp_path: Path) -> None:
    """A configuration can be printed."""
    text = f'{NEEDED}proxy = "http://a:{SECRET}@b"\n[[opencode]]\nurl = "http://a"\npassword = "{SECRET}"'
    config = load(written(tmp_path, text), environ={})
    for shown in (repr(config), str(config), config.model_dump_json(), repr(config.telegram)):
        assert SECRET not in shown
        assert TOKEN.partition(":")[2] not in shown


def test_a_configuration_stays_as_it_was_read(tmp_path: Path) -> None:
    """Settings are frozen, in every section."""
    config = load(written(tmp_path, NEEDED), environ={})
    for part in (config, config.telegram, config.questions, config.log):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, next(iter(type(part).model_fields)), None)


def test_the_argument_comes_before_the_variable_and_that_before_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config, then $HERMES_CONFIG, then the platform's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    named = {"HERMES_CONFIG": "/from/environ"}
    assert config_path(Path("/from/argument"), environ=named) == Path("/from/argument")
    assert config_path(None, environ=named) == Path("/from/environ")
    assert config_path(None, environ={"HERMES_CONFIG": "~nobody-has-this-name/x"}).is_absolute()
    assert config_path(Path("here"), environ={}) == Path.cwd() / "here"
    assert config_path(None, environ={}).name == "config.toml"


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """Absent though named, a folder, not UTF-8, not TOML: one sentence each, with the path."""
    for name, held, sentence in (
        ("none.toml", None, "does not exist; `hermes setup` writes it"),
        ("binary.toml", b"\xff", "is not UTF-8; it must be TOML"),
        ("broken.toml", b"[telegram\n", "is not TOML (Expected ']'"),
    ):
        path = tmp_path / name
        if held is not None:
            path.write_bytes(held)
        with pytest.raises(ConfigError, match=re.escape(f"{path} {sentence}")):
            load(path, environ={})
    with pytest.raises(ConfigError, match="does not exist"):
        load(None, environ={"HERMES_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        load(tmp_path, environ={})


def test_a_pipe_is_no_configuration(tmp_path: Path) -> None:
    """As of `--config <(…)`: a listener would find it empty, and one without a writer would be waited for."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=re.escape(f"{path} is a pipe, which can be read only once; it must be a")):
        load(path, environ={})


def test_a_file_that_others_may_read_is_seen(tmp_path: Path) -> None:
    """Group and world count; a file that is not there is read by nobody."""
    path = written(tmp_path, NEEDED)
    for mode, readable in ((0o600, False), (0o640, True), (0o604, True), (0o700, False)):
        path.chmod(mode)
        assert open_to_others(path) is readable
    assert open_to_others(tmp_path / "none") is False


def uncommented() -> str:
    """The example with every line of TOML in force."""
    line = re.compile(r"^# (\w+ = .*|\[\[\w+\]\])$", re.MULTILINE)
    return line.sub(r"\1", EXAMPLE.read_text(encoding="utf-8"))


def test_the_example_holds_every_key_and_no_other() -> None:
    """Each key of each section once."""
    example = tomllib.loads(uncommented())
    shown = {section: set(table[0] if section == "opencode" else table) for section, table in example.items()}
    assert shown == {section: set(model.model_fields) for section, model in SECTIONS.items()}


def test_the_example_uncommented_is_the_defaults(tmp_path: Path) -> None:
    """Taking the '#' from every line changes nothing but what has no default."""
    shown = load(written(tmp_path, uncommented()), environ={})
    needed = {"token": shown.telegram.token, "chat_id": shown.telegram.chat_id, "users": shown.telegram.users}
    server = OpenCode(url=shown.opencode[0].url)
    plain = Config.model_validate({"telegram": needed, "opencode": [server]})
    platform = {"store": {"path"}, "log": {"file"}}
    assert shown.model_dump(exclude=platform) == plain.model_dump(exclude=platform)


@pytest.mark.skipif(sys.platform != "linux", reason="the example shows the folders of Linux")
def test_the_example_shows_the_folders_of_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands there as the default is what the platform says."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    shown = load(written(tmp_path, uncommented()), environ={})
    plain = load(written(tmp_path, NEEDED), environ={})
    assert (shown.store, shown.log) == (plain.store, plain.log)


def test_the_example_says_nothing_by_itself() -> None:
    """As it comes, every key is a comment, and each has a line above it that says what it means."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert not any(tomllib.loads(text).values())
    for key in re.findall(r"(?<=\n\n)# (\w+) = ", text):
        pytest.fail(f"{key} has no meaning above it")


def test_every_key_has_a_description() -> None:
    """Sentences of errors are made from them."""
    models: list[type[BaseModel]] = [Config, *SECTIONS.values()]
    for model in models:
        assert all(field.description for field in model.model_fields.values())


def test_what_is_this_machine() -> None:
    """Loopback alone."""
    here = ("http://127.0.0.1:1", "http://localhost", "http://[::1]:2")
    assert all(map(is_here, here))
    assert not any(map(is_here, ("http://10.0.0.7:1", "https://example.org", "http://localhost.example.org")))

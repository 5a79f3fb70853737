"""Without a person: every step has an option, the token is never one, and what is missing is one sentence."""

from __future__ import annotations

import os
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from hermes.config import reading as configuration
from tests.commands.setup.desk import ANN, BOB, TEAM, Desk

ALONE = ("--chat", str(ANN.id), "--no-agents", "--no-service")


def test_every_step_by_an_option(desk: Desk) -> None:
    """A token in a file is named in the configuration, and stays where it is."""
    desk.has_opencode()
    file = desk.root / "token"
    file.write_text(f"{desk.api.token}\n")
    options = ("--token-file", str(file), "--chat", str(TEAM.id), "--user", "1001", "--user", "1002")
    status, said = desk.unattended(*options, "--agent", "opencode", "--no-prompts", "--no-service", "--no-test")
    assert (status, desk.api.token in said) == (0, False)
    telegram = configuration.load(desk.config, environ={}).telegram
    assert (telegram.chat_id, telegram.users, telegram.token_file) == (TEAM.id, (ANN.id, BOB.id), file)
    assert desk.api.token not in desk.config.read_text()
    assert "token below" not in desk.config.read_text()
    assert list((desk.root / ".config" / "opencode").rglob("*.js"))
    assert any("Connected." in text for text in desk.told(TEAM.id))


def test_a_token_from_standard_input(desk: Desk) -> None:
    """It is written into the configuration, which nobody else can read; a private chat is its own person's."""
    given = desk.root / "given"
    given.write_text(f"{desk.api.token}\n")
    status, said = desk.unattended("--token-file", "-", *ALONE, stdin=given)
    assert (status, desk.api.token in said) == (0, False)
    telegram = configuration.load(desk.config, environ={}).telegram
    assert (telegram.token.get_secret_value(), telegram.users) == (desk.api.token, (ANN.id,))
    assert stat.S_IMODE(desk.config.stat().st_mode) == 0o600


class _Forwarding(BaseHTTPRequestHandler):
    """A proxy: it makes each request itself, and passes the answer on."""

    def do_POST(self) -> None:
        """Forward a request with a body."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kept = {name: self.headers[name] for name in ("Content-Type",) if name in self.headers}
        answer = httpx.request(self.command, self.path, content=body, headers=kept, timeout=60, trust_env=False)
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def test_a_proxy_by_an_option(desk: Desk) -> None:
    """Telegram is asked through it from the first request on, and it is written down."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forwarding) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        status, _ = desk.unattended("--proxy", url, *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
        server.shutdown()
    assert status == 0
    proxy = configuration.load(desk.config, environ={}).telegram.proxy
    assert proxy is not None
    assert proxy.get_secret_value() == url
    status, said = desk.unattended("--yes", "--no-agents", "--no-service")
    assert status == 1
    assert "Telegram cannot be reached" in said
    assert "Behind a proxy? Give it with `hermes setup --proxy http://HOST:PORT`" in said


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "http://ann:hush@127.0.0.1:8080", "http://\udcff:8080", "http://a/\udcff"]
)
def test_a_proxy_that_is_wrong_or_has_a_password(desk: Desk, url: str) -> None:
    """Others can see a command line: status 2, and the sentence does not repeat it."""
    status, said = desk.unattended("--proxy", url, *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert status == 2
    assert "give http://HOST:PORT" in said
    assert "hush" not in said


@pytest.mark.parametrize("url", ["127.0.0.1:8081", "http://127.0.0.1:8081/?x=1"])
def test_an_address_that_is_none_is_not_out_of_reach(desk: Desk, url: str) -> None:
    """Status 2, before anything is asked there."""
    status, said = desk.unattended("--api-base", url, *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert status == 2
    assert "hermes: --api-base " in said
    assert "reached" not in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--no-agents", "--agent", "opencode"), "give --agent or --no-agents, not both."),
        (("--no-agents", "--store-tls", "off"), "and there is none: give --store-url URL or --join URL, too."),
        (("--no-agents", "--one-machine", "--store-password-file", "x"), "give --store-url URL or --join URL, too."),
    ],
)
def test_options_that_would_say_nothing_are_refused(desk: Desk, options: tuple[str, ...], why: str) -> None:
    """What somebody typed is not passed over; nothing is written."""
    people = ("--chat", "7", "--user", "7", "--no-service")
    status, said = desk.unattended(*people, *options, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, why in " ".join(said.split())) == (2, True), said
    assert not desk.config.exists()


def test_who_is_named_twice_is_one_person(desk: Desk) -> None:
    """In the order of the options."""
    options = ("--chat", "-4242", "--no-agents", "--no-service", "--user", "7", "--user", "5", "--user", "7")
    _, said = desk.unattended(*options, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert "by hand" not in said
    assert configuration.load(desk.config, environ={}).telegram.users == (7, 5)


FOUND = "Without --chat and --user, `hermes setup` in a terminal finds the ids by itself."


@pytest.mark.parametrize(
    ("chat", "user", "why"),
    [
        ("0", "5", "--chat 0 is not a chat"),
        (
            "@team",
            "5",
            f"hermes: --chat '@team' is not the id of a chat: that is a number, below 0 for a group. {FOUND}",
        ),
        ("-4242", "0", f"hermes: --user '0' is not the id of a person: that is a number above 0. {FOUND}"),
        ("-4242", "@ann", f"hermes: --user '@ann' is not the id of a person: that is a number above 0. {FOUND}"),
    ],
)
def test_an_id_of_nobody_is_refused_at_once(desk: Desk, chat: str, user: str, why: str) -> None:
    """Not after all questions, as an error of a configuration that is not there yet."""
    options = ("--chat", chat, "--user", user, "--no-agents", "--no-service")
    status, said = desk.unattended(*options, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, why in said, "Setting up" in said) == (2, True, False)


def test_an_address_may_end_in_a_slash(desk: Desk) -> None:
    """The configuration has it without one, and is written all the same."""
    options = ("--api-base", f"{desk.api.base_url}/", *ALONE)
    status, said = desk.unattended(*options, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert status == 0, said
    assert configuration.load(desk.config, environ={}).telegram.api_base == desk.api.base_url


def test_a_token_from_the_environment(desk: Desk) -> None:
    """It is written down: who starts a listener later may not have that variable."""
    status, said = desk.unattended(*ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, desk.api.token in said) == (0, False)
    assert configuration.load(desk.config, environ={}).telegram.token.get_secret_value() == desk.api.token


def test_the_configured_token_in_the_environment_changes_nothing(desk: Desk) -> None:
    """One that stands in a file of its own is not copied into the configuration."""
    file = desk.root / "token"
    file.write_text(desk.api.token)
    assert desk.unattended("--token-file", str(file), *ALONE)[0] == 0
    before = desk.config.read_bytes()
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, "in this shell" in said) == (0, False)
    assert desk.config.read_bytes() == before


def test_a_stale_token_in_the_environment_is_named(desk: Desk) -> None:
    """Nobody remembers that variable: where the token comes from is said."""
    desk.has_config()
    status, said = desk.unattended("--yes", HERMES_TELEGRAM__TOKEN="7000000001:AAF-this-token-belongs-to-nobody-at-all")
    assert status == 2
    assert "hermes: HERMES_TELEGRAM__TOKEN: Telegram does not know this token" in said


def test_whoever_locks_the_owner_out_is_warned(desk: Desk) -> None:
    """In a private chat nobody else can answer."""
    desk.has_config()
    status, said = desk.unattended("--yes", "--no-agents", "--no-service", "--user", str(BOB.id))
    assert (status, f"! Nobody can answer in the private chat {ANN.id}" in said) == (0, True)
    options = ("--user", str(BOB.id), "--user", str(ANN.id))
    assert "Nobody can answer" not in desk.unattended("--yes", "--no-agents", "--no-service", *options)[1]


def test_only_one_thing_is_given(desk: Desk) -> None:
    """With --yes all the rest stays as it is configured."""
    desk.has_config()
    assert desk.unattended("--yes", "--no-agents", "--no-service", "--user", str(BOB.id))[0] == 0
    telegram = configuration.load(desk.config, environ={}).telegram
    assert (telegram.chat_id, telegram.users) == (ANN.id, (BOB.id,))
    assert desk.told() == []


def test_another_chat_leaves_the_people(desk: Desk) -> None:
    """Who may answer is changed only where somebody else has the private chat."""
    desk.has_config()
    for chat, users in ((TEAM.id, (ANN.id,)), (ANN.id, (ANN.id,)), (BOB.id, (BOB.id,))):
        desk.write("/start", BOB)
        assert desk.unattended("--yes", "--no-agents", "--no-service", "--chat", str(chat))[0] == 0
        telegram = configuration.load(desk.config, environ={}).telegram
        assert (telegram.chat_id, telegram.users) == (chat, users)
    assert any("Connected." in text for text in desk.told(BOB.id))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), "--token-file FILE"),
        (("--yes",), "--token-file FILE"),
        (("--token-file", "token"), "--chat ID and --user ID"),
        (("--token-file", "token", "--yes"), "--chat ID and --user ID"),
        (("--token-file", "token", "--chat", "1001"), "--agent opencode or --no-agents"),
        (("--token-file", "token", "--chat", "-4242"), "add --user ID for each person who may"),
        (("--token-file", "token", *ALONE, "--agent", "skynet"), "'skynet' is not an agent that Hermes knows"),
    ],
)
def test_what_is_missing_is_one_sentence(desk: Desk, options: tuple[str, ...], wanted: str) -> None:
    """Status 2, the option that answers it, and nothing was changed."""
    desk.has_opencode()
    (desk.root / "token").write_text(desk.api.token)
    if "skynet" in options:
        options = tuple(option for option in options if option != "--no-agents")
    status, said = desk.unattended(*options)
    assert status == 2
    assert wanted in said.splitlines()[-1]
    assert said.count("hermes:") == 1
    assert desk.left() == []


@pytest.mark.parametrize(
    "content",
    [pytest.param("", marks=pytest.mark.nightly), "nonsense", "7000000001:AAF-this-token-belongs-to-nobody-at-all"],
)
def test_a_token_that_is_none(desk: Desk, content: str) -> None:
    """Status 2, with the file's name and never its content."""
    file = desk.root / "token"
    file.write_text(content)
    status, said = desk.unattended("--token-file", str(file), *ALONE)
    assert status == 2
    assert (f"hermes: {file}: " if content else f"--token-file {file} is empty") in said
    assert not content or content not in said
    file.unlink()
    assert "cannot be read" in desk.unattended("--token-file", str(file), *ALONE)[1]


@pytest.mark.parametrize("option", ["--token-file", "--store-password-file"])
def test_a_file_of_a_user_that_nobody_knows_is_missing(desk: Desk, option: str) -> None:
    """As after a slip of the pen: `~token` instead of `~/token`."""
    more = () if option == "--token-file" else ("--store-url", "postgresql://hermes@127.0.0.1/hermes")
    status, said = desk.unattended(option, "~token", *more, *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, "Traceback" in said) == (2, False)
    assert f"{option} {desk.root / '~token'} (No such file or directory)" in said.splitlines()[-1]


@pytest.mark.parametrize("option", ["--token-file", "--store-password-file", "--store-ca-file"])
def test_a_file_whose_name_the_configuration_cannot_hold(desk: Desk, option: str) -> None:
    """It is named before any step: the configuration is UTF-8."""
    (desk.root / "t\udcff").write_text(desk.api.token)
    more = () if option == "--token-file" else ("--store-url", "postgresql://hermes@127.0.0.1/hermes")
    status, said = desk.unattended(option, "t\udcff", *more, *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, "Traceback" in said) == (2, False)
    wanted = (
        f"{option} {desk.root}/t\\udcff is not UTF-8, and the configuration cannot hold such a path; rename or move it."
    )
    assert said.splitlines() == [f"hermes: {wanted}"]
    assert desk.left() == []


@pytest.mark.parametrize("option", ["--token-file", "--store-password-file", "--store-ca-file"])
@pytest.mark.parametrize("place", ["/dev/stdin", "pipe"])
def test_a_file_that_can_be_read_only_once(desk: Desk, option: str, place: str) -> None:
    """As of `<(…)`: the configuration would name it, and each later command would look for a secret there."""
    (desk.root / "given").write_text(f"{desk.api.token}\n")
    os.mkfifo(desk.root / "pipe")
    more = ("--prompts",) if option == "--token-file" else ("--store-url", "postgresql://hermes@127.0.0.1/hermes")
    environ = {} if option == "--token-file" else {"HERMES_TELEGRAM__TOKEN": desk.api.token}
    status, said = desk.unattended(option, place, *more, *ALONE, stdin=desk.root / "given", **environ)
    assert (status, desk.api.token in said) == (2, False)
    assert said.startswith(f"hermes: {option} {desk.root / place} can be read only once")
    assert (" - and the token on standard input" in said) is (option == "--token-file")
    assert desk.left() == []


def test_nobody_is_let_in_by_an_option(desk: Desk) -> None:
    """--yes takes defaults; the approval of a person has none but no, and still is asked for."""
    with desk.setup("--yes", "--token-file", "token", "--no-agents", "--no-service") as terminal:
        assert terminal.ends() == 2
    (desk.root / "token").write_text(desk.api.token)
    with desk.setup(
        "--yes", "--token-file", "token", "--no-agents", "--no-prompts", "--no-service", "--no-test"
    ) as terminal:
        desk.write(f"/start {terminal.link()[1]}")
        terminal.answers("Let Ann answer your agents?", "y")
        assert terminal.ends() == 0


def test_telegram_is_away(desk: Desk) -> None:
    """Status 1, and nothing was changed."""
    status, said = desk.unattended("--api-base", "http://127.0.0.1:9", *ALONE, HERMES_TELEGRAM__TOKEN=desk.api.token)
    assert (status, desk.api.token in said) == (1, False)
    assert "Telegram cannot be reached" in said
    assert desk.left() == []

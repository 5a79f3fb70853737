"""What a repository puts into an agent's environment changes nothing: neither where the token goes, nor the store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from hermes.hook import starting
from tests.agents.speaking import SINGLE, SPEAKING, Speaking
from tests.listening import House, house
from tests.stores import a_store

if TYPE_CHECKING:
    from collections.abc import Iterator

home = house()
KEPT = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "Europe/Berlin"}


class _Trap(BaseHTTPRequestHandler):
    """Whatever comes here was sent to the wrong place."""

    def _note(self) -> None:
        self.server.came.append(self.path)  # type: ignore[attr-defined]
        self.send_error(404)

    do_GET = do_POST = do_CONNECT = _note  # noqa: N815 (the names are the library's)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """The URL of a server that a repository names, and the paths that were asked of it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Trap) as server:
        server.came = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.came  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def hostile(root: Path, url: str) -> dict[str, str]:
    """An agent's environment after it has loaded a hostile `.env`."""
    elsewhere = root / "elsewhere"
    (elsewhere / "python").mkdir(parents=True)
    for module in ("json", "sitecustomize", "hermes"):
        (elsewhere / "python" / f"{module}.py").write_text("raise SystemExit('a module of the repository ran')\n")
    (elsewhere / "config.toml").write_text("[telegram]\n")
    clock = elsewhere / "clock.json"
    clock.write_text(json.dumps({"epoch_s": 0, "steady_s": 0, "ahead_s": 0, "pace": 100}))
    taken = {
        name: str(elsewhere) for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    }
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), url)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(elsewhere / "python"),
        "HERMES_TELEGRAM__API_BASE": url,
        "HERMES_STORE__PATH": str(elsewhere / "store"),
        "HERMES_FOO__BAR": "1",
        "HERMES_CONFIG": str(elsewhere / "config.toml"),
        "HERMES_TEST_CLOCK": str(clock),
        "SSL_CERT_FILE": str(elsewhere / "ca.pem"),
        **taken,
        **proxies,
        **KEPT,
    }


def configured(home: House) -> Path:
    """A configuration that names neither store nor log: what the environment says would count."""
    config = home.root / "config.toml"
    config.write_text(
        f'[telegram]\ntoken = "{home.api.token}"\nchat_id = 1001\nusers = [1001]\napi_base = "{home.api.base_url}"\n'
    )
    config.chmod(0o600)
    return config


def places(home: House) -> list[str]:
    """The arguments of a hook."""
    return ["--store", str(home.store), "--log", str(home.root / "log"), "--config", str(configured(home))]


def the_listener_is_ours(home: House) -> None:
    """The listener of this store has an environment of Hermes' own making, and serves nobody else's."""
    holder = a_store(home.store).home.listener()
    assert holder is not None
    environ = Path(f"/proc/{holder.pid}/environ")
    if environ.exists():
        told = dict(one.split("=", 1) for one in environ.read_text().split("\0") if one)
        assert told == {"HOME": pwd.getpwuid(os.getuid()).pw_dir, "PATH": starting.PATH, **KEPT}
    elsewhere = home.root / "elsewhere"
    assert {path.name for path in elsewhere.iterdir()} == {"python", "config.toml", "clock.json"}


@pytest.mark.parametrize("agent", SPEAKING.values(), ids=SPEAKING)
async def test_a_listener_that_a_hook_starts_goes_by_its_arguments_alone(
    home: House, agent: Speaking, trap: tuple[str, list[str]]
) -> None:
    """The question reaches the phone, the answer comes back, and the repository's server hears nothing."""
    url, came = trap
    command = [sys.executable, "-I", "-m", "hermes", "hook", agent.name, *places(home), *agent.options]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=hostile(home.root, url), cwd=home.root
    )
    assert process.stdin is not None
    assert process.stdout is not None
    payload = agent.ask([dict(SINGLE)])
    try:
        process.stdin.write(json.dumps(payload).encode() + b"\n")
        asked = await home.person.sees(SINGLE["question"], buttons=True)
        the_listener_is_ours(home)
        home.person.tap(asked, "SQLite")
        line = (await process.stdout.readline()).decode()
        assert agent.took(payload, line) == [["SQLite"]]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
    assert came == []


async def test_the_mcp_server_goes_by_its_arguments_alone(home: House, trap: tuple[str, list[str]]) -> None:
    """It is started by an agent, as a hook is, and reads the configuration itself."""
    url, came = trap
    environ = hostile(home.root, url)
    config = configured(home)
    config.write_text(f'{config.read_text()}[store]\npath = "{home.store}"\n[log]\nfile = "{home.root / "log"}"\n')
    server = StdioServerParameters(
        command=sys.executable, args=["-I", "-m", "hermes", "mcp", "--config", str(config)], env=environ
    )
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        questions: list[Any] = [{"question": SINGLE["question"], "options": SINGLE["options"]}]
        call = asyncio.create_task(session.call_tool("ask_user", {"questions": questions}))
        asked = await home.person.sees(SINGLE["question"], buttons=True)
        the_listener_is_ours(home)
        home.person.tap(asked, "SQLite")
        result = await call
    assert result.structured_content is not None
    assert result.structured_content["answers"] == [{"question": SINGLE["question"], "answer": ["SQLite"]}]
    assert came == []


@pytest.mark.parametrize(
    "words", [("hook", "generic"), ("ask", SINGLE["question"], "-o", "SQLite")], ids=["hook", "ask"]
)
async def test_variables_set_no_key_for_who_asks(
    home: House, words: tuple[str, ...], trap: tuple[str, list[str]]
) -> None:
    """Neither the store nor the Bot API of the listener that is started for the question."""
    url, came = trap
    config = configured(home)
    config.write_text(f'{config.read_text()}[store]\npath = "{home.store}"\n[log]\nfile = "{home.root / "log"}"\n')
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-I", "-m", "hermes", *words, "--config", str(config)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=hostile(home.root, url), cwd=home.root
    )
    assert process.stdin is not None
    if words[0] == "hook":
        process.stdin.write(json.dumps({"questions": [dict(SINGLE)]}).encode() + b"\n")
    asked = await home.person.sees(SINGLE["question"], buttons=True)
    the_listener_is_ours(home)
    home.person.tap(asked, "SQLite")
    assert process.stdout is not None
    assert b"SQLite" in await process.stdout.readline()
    await process.communicate()
    assert came == []


def test_the_environment_is_built_and_not_inherited() -> None:
    """Language and time zone are the agent's, all else is ours; a variable that only begins like one of them is not."""
    built = starting.built_environment(
        {"LANG": "de_DE.UTF-8", "LC_TIME": "C", "TZ": "UTC", "LCX": "1", "LANGUAGE": "de"}
    )
    assert built == {
        "HOME": pwd.getpwuid(os.getuid()).pw_dir,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "de_DE.UTF-8",
        "LC_TIME": "C",
        "TZ": "UTC",
    }

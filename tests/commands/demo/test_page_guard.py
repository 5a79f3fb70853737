"""Who may see the page of the demo, and who may do something there."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.commands.demo.computer import ScriptedComputer
from hermes.commands.demo.page import HEADERS, LONGEST_BODY, Page, origin_of, serving
from hermes.commands.demo.stage import Stage, staged
from hermes.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.xdist_group("page-guard")  # one stage for all

ASK = {"do": "ask", "scene": "one"}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One for all that is asked here."""
    with staged(ScriptedComputer()) as ready:
        yield ready


@pytest.fixture(scope="module")
def url(stage: Stage) -> Iterator[str]:
    """The page's address."""
    with serving(stage) as address:
        yield address


def post(url: str, told: Any = ASK, **headers: str) -> httpx.Response:
    """Do something, as the page itself would."""
    own = {"Origin": url[: url.index("/", len("http://"))]}
    content = told if isinstance(told, bytes) else None
    return httpx.post(f"{url}do", json=None if content else told, content=content, headers={**own, **headers})


def test_the_page_does_what_its_own_buttons_say(url: str, stage: Stage) -> None:
    """The secret, the host and the origin are right: it is done."""
    before = stage.computer.rows()
    assert post(url).status_code == 200
    assert [row.title for row in stage.computer.rows()[len(before) :]] == ["Fix login flow"]


@pytest.mark.parametrize("path", ["", "demo.js", "events", "scenes", "do"])
def test_without_the_secret_nothing_is_there(path: str, url: str) -> None:
    """A wrong secret is answered as a page that does not exist."""
    origin, secret = url.rstrip("/").rsplit("/", 1)
    for wrong in ("x" * len(secret), secret[:-1], f"{secret}x", ""):
        assert httpx.get(f"{origin}/{wrong}/{path}").status_code == 404
        assert httpx.post(f"{origin}/{wrong}/{path}", json=ASK, headers={"Origin": origin}).status_code == 404
    assert httpx.get(origin).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1"])
def test_a_name_that_was_bent_to_loopback_sees_nothing(host: str, url: str) -> None:
    """Only the host that was printed is served, whatever name the request says (DNS rebinding)."""
    assert httpx.get(url, headers={"Host": host}).status_code == 404
    assert post(url, Host=host).status_code == 404


async def test_at_the_usual_port_a_browser_names_none(stage: Stage) -> None:
    """With `--port 80` Host and Origin come without it, and are right."""
    app = Page(stage, secret="x", origin=origin_of(80)).app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:80") as browser:
        assert (await browser.get("/x/")).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_another_page_can_do_nothing(origin: str, url: str, stage: Stage) -> None:
    """What does something must say that it comes from this page."""
    before = stage.computer.rows()
    assert post(url, Origin=origin).status_code == 403
    assert httpx.post(f"{url}do", json=ASK).status_code == 403
    assert httpx.get(f"{url}do").status_code == 405
    assert stage.computer.rows() == before


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (b"", "Expecting value"),
        (b"[1]", ""),
        ({"do": "format"}, "format"),
        ({"do": 1}, "is not text"),
        ({"do": "ask", "scene": "none"}, "no scene"),
        ({"do": "tap", "message_id": 99, "data": "x"}, "never was"),
        ({"do": "write", "text": ""}, "empty"),
        ({"do": "rewrite", "message_id": 1, "text": "x"}, "of your own"),
        ({"do": "write", "text": "x" * LONGEST_BODY}, "too much"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(told: Any, why: str, url: str) -> None:
    """A request that makes no sense changes nothing, and says what was wrong with it."""
    answer = post(url, told)
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_a_browser_is_told_to_ask_nobody_else(url: str) -> None:
    """Every answer forbids scripts, styles and connections of others, frames, and a referrer that tells the secret."""
    for address in (url, f"{url}demo.js", f"{url}nothing", url[:-5]):
        headers = httpx.get(address).headers
        assert {name: headers[name] for name in HEADERS} == dict(HEADERS)
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy


def test_a_port_that_is_taken_is_one_sentence(stage: Stage) -> None:
    """The person is told which port it is, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(HermesError, match=rf"port {port} cannot be used: .*; choose another"),
            serving(stage, port=port),
        ):
            pass

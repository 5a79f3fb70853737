"""The dead-man's switch: fetched while all is well, silent when it is not, and never a burden or a leak."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from hermes.listener.ping import EVERY_S, Pinger
from tests.listening import House, house, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

URL = "https://hc.example/ping/5ecre7-uuid?status=up"
home = house()


class Minutes:
    """A minute passes when a test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._passed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._passed.clear()
        await self._passed.wait()

    async def next(self) -> None:
        """Let the time pass that is slept now, and wait until sleep comes again."""
        count = len(self.asked)
        self._passed.set()
        await until(lambda: len(self.asked) > count, "sleep")


class Playing:
    """A pinger and the world around it."""

    def __init__(self) -> None:
        self.minutes = Minutes()
        self.well = True
        self.pings: list[str] = []
        self.answer: Callable[[], httpx.Response] = lambda: httpx.Response(200)
        self.pinger = Pinger(URL, transport=httpx.MockTransport(self._answered), sleep=self.minutes.sleep)

    def _answered(self, request: httpx.Request) -> httpx.Response:
        self.pings.append(f"{request.method} {request.url}")
        return self.answer()

    async def begins(self) -> None:
        """Run until it sleeps for the first time."""
        self.pinger.is_well = self.well
        self._running = asyncio.create_task(self.pinger.run())
        await until(lambda: self.minutes.asked, "sleep")

    async def minute(self) -> None:
        """Let a minute pass, in which the listener says whether all is well."""
        self.pinger.is_well = self.well
        await self.minutes.next()

    def stop(self) -> None:
        self._running.cancel()


@pytest.fixture
async def playing() -> AsyncIterator[Playing]:
    """One that runs from `begins` on."""
    made = Playing()
    yield made
    made.stop()


async def test_it_is_fetched_every_minute_while_all_is_well(playing: Playing) -> None:
    """The whole address; not while something is wrong; again when that is over."""
    await playing.begins()
    assert playing.pings == [f"GET {URL}"]
    await playing.minute()
    assert len(playing.pings) == 2
    playing.well = False
    await playing.minute()
    assert len(playing.pings) == 2
    playing.well = True
    await playing.minute()
    assert len(playing.pings) == 3
    assert set(playing.minutes.asked) == {EVERY_S}


async def test_the_first_one_waits_for_the_first_good_poll(playing: Playing) -> None:
    """Not for a minute."""
    playing.well = False
    await playing.begins()
    assert playing.pings == []
    playing.well = True
    await playing.minute()
    assert playing.minutes.asked == [1.0, EVERY_S]
    assert len(playing.pings) == 1


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("no way to " + URL), httpx.ReadTimeout("slow"), OSError("x"), 404]
)
async def test_a_failure_is_said_once(
    playing: Playing, caplog: pytest.LogCaptureFixture, error: Exception | int
) -> None:
    """A warning without the address; then that it works again, and the next failure anew."""
    caplog.set_level(logging.INFO)

    def failing() -> httpx.Response:
        if isinstance(error, Exception):
            raise error
        return httpx.Response(error)

    playing.answer = failing
    await playing.begins()
    await playing.minute()
    playing.answer = lambda: httpx.Response(204)
    await playing.minute()
    playing.answer = failing
    await playing.minute()
    ours = [record for record in caplog.records if record.name == "hermes.listener.ping"]
    assert [record.levelname for record in ours] == ["WARNING", "INFO", "WARNING"]
    assert "monitor.ping_url cannot be reached" in ours[0].getMessage()
    assert not any(part in record.getMessage() for record in ours for part in ("hc.example", "5ecre7"))


@asynccontextmanager
async def hearing() -> AsyncIterator[tuple[int, list[str]]]:
    """The port of a server that answers well, and the first line of each request that came."""
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_listener_pings_once_telegram_answers(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before, and not for a listener that nobody told of a monitor; no proxy of the environment sees it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with hearing() as (port, heard):
        home.api.control.fault(method="getUpdates", action="error", status=502, times=100)
        await home.start(monitor={"ping_url": f"http://127.0.0.1:{port}/ping/abc?x=1"})
        await until(lambda: home.api.control.state().calls["getUpdates"] > 1, "a second try")
        assert heard == []
        home.api.control.clear_faults()
        await until(lambda: heard, "a ping")
        assert heard == ["GET /ping/abc?x=1 HTTP/1.1"]


async def test_a_ping_goes_by_the_bots_own_proxy() -> None:
    """Where Telegram is reached by a proxy, so is the monitor."""
    async with hearing() as (port, heard):
        pinger = Pinger("http://monitor.test/ping", proxy=f"http://127.0.0.1:{port}")
        pinger.is_well = True
        running = asyncio.create_task(pinger.run())
        await until(lambda: heard, "a ping")
        running.cancel()
    assert heard == ["GET http://monitor.test/ping HTTP/1.1"]


async def test_an_inbox_that_is_not_read_is_not_well(home: House) -> None:
    """Telegram alone does not make all well: what agents ask must be taken in, too."""
    await home.start()
    await until(home.listener._loops.is_well, "a good word")
    (home.store / "inbox").touch()
    home.clock.advance(31)
    assert not home.listener._loops.is_well()
    (home.store / "inbox").unlink()
    await until(home.listener._loops.is_well, "the next look into the inbox")

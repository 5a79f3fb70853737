"""Check each configured OpenCode server: it answers, its password is right, it lists questions and sends events."""

import asyncio
import contextlib
import socket
import time
from typing import Final
from urllib.parse import urlsplit

from hermes.agents.opencode import wire
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.opencode2.discovery import Address, at, port_of
from hermes.agents.server import numbers
from hermes.agents.wire import decode
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.status.survey import client
from hermes.commands.status.table import span
from hermes.config.settings import OpenCode
from hermes.errors import AgentAway, AgentError, Unauthorized

AREA = Area("OpenCode servers")

OLDEST: Final = (1, 1, 53)
LIST_S: Final = 5.0
EVENT_S: Final = 3.0
CONNECT_S: Final = 1.0


async def look(around: Around) -> tuple[Finding, ...]:
    """Check all servers at once."""
    servers = around.config.opencode
    if not servers:
        return (AREA.good("servers", "none is configured; questions come through the plugin"),)
    ttl_s = around.config.questions.ttl
    found = await asyncio.gather(*(AREA.guarded(server.name, _server(server, ttl_s), limit_s=8) for server in servers))
    return tuple(finding for findings in found for finding in findings)


async def _server(server: OpenCode, ttl_s: float) -> list[Finding]:
    async with client(server) as there:
        try:
            version = await _version(there)
        except AgentError as error:
            return [await _second(server) or await _unreachable(server, error)]
        rest = await asyncio.gather(
            AREA.guarded(f"{server.name}: password", _password(server)),
            AREA.guarded(f"{server.name}: questions", _questions(server, there, ttl_s), limit_s=LIST_S),
            AREA.guarded(f"{server.name}: events", _events(server, there), limit_s=EVENT_S),
        )
    return [_reached(server, version), *(finding for findings in rest for finding in findings)]


async def _second(server: OpenCode) -> Finding | None:
    """Return the finding about an OpenCode 2 at this URL, None if none answers there."""
    address = Address(server.url, server.password.get_secret_value(), server.username)
    async with OpenCode2Server(server.name, at(address), machine="") as there:
        with contextlib.suppress(AgentError):
            return AREA.good(server.name, f"OpenCode {(await there.connect()).version} at {server.url}")
    return None


async def _version(there: OpenCodeServer) -> str:
    """Ask a second time if the server is away: a busy or starting server may not answer within one second."""
    with contextlib.suppress(AgentAway):
        return await there.health()
    return await there.health()


def _reached(server: OpenCode, version: str) -> Finding:
    seen = f"OpenCode {version} at {server.url}"
    if numbers(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return AREA.warning(
            server.name, f"{seen}; Hermes was never run with one older than {oldest}", "opencode upgrade"
        )
    return AREA.good(server.name, seen)


async def _unreachable(server: OpenCode, error: AgentError) -> Finding:
    if isinstance(error, Unauthorized):
        mend = f"set password of [[opencode]] {server.name!r} to the server's OPENCODE_SERVER_PASSWORD"
    elif isinstance(error, AgentAway) and not server.is_here:
        mend = f"start it there, or correct the url of [[opencode]] {server.name!r}"
    elif isinstance(error, AgentAway) and not await _listens(urlsplit(server.url).hostname or "", port_of(server.url)):
        mend = f"opencode serve --port {port_of(server.url)}"
    else:
        mend = f"is url of [[opencode]] {server.name!r} right? Else restart that server"
    return AREA.broken(server.name, str(error), mend)


# --- the port ------------------------------------------------------------------------------------------


async def _listens(host: str, port: int) -> bool:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False


def outward_address() -> str:
    """Return the address by which other machines reach this one; without a network, a second loopback address.

    A server that listens on 127.0.0.1 alone does not take connections there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: this only chooses the address to send from
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


# --- password, questions, events -----------------------------------------------------------------------


async def _password(server: OpenCode) -> list[Finding]:
    check = f"{server.name}: password"
    start = "start the server with OPENCODE_SERVER_PASSWORD, and set password here"
    if not server.password.get_secret_value():
        if not server.is_here or await _listens(outward_address(), port_of(server.url)):
            return [AREA.warning(check, "none, and other machines can reach this server", start)]
        return [AREA.good(check, "none, and only this machine can reach the server")]
    async with client(server, password=False) as stranger:
        try:
            await stranger.health()
        except Unauthorized:
            return [AREA.good(check, "wanted, and right")]
    mend = f"OPENCODE_SERVER_PASSWORD=… opencode serve --port {port_of(server.url)}"
    return [AREA.warning(check, "one is configured, but the server takes everybody without", mend)]


async def _questions(server: OpenCode, there: OpenCodeServer, ttl_s: float) -> list[Finding]:
    """List the questions of the newest project within the TTL: a request about an older one starts OpenCode there."""
    directories = await there.directories(time.time() - ttl_s)
    asks = (await there.pending(directories[0] if directories else "")).asks
    where = f"in {directories[0]}" if directories else f"and no project of the last {span(ttl_s)}"
    return [AREA.good(f"{server.name}: questions", f"listed: {len(asks) or 'none'} open {where}")]


async def _events(server: OpenCode, there: OpenCodeServer) -> list[Finding]:
    check = f"{server.name}: events"
    async with there.api.listening() as events:
        async for event in events:
            with contextlib.suppress(ValueError):
                if decode(wire.Event, event.data).type == "server.connected":
                    return [AREA.good(check, "the stream is there")]
    return [AREA.broken(check, "the stream ended before its first event", "restart that server")]

"""Check each configured OpenCode server: it answers, its password is right, it lists questions and sends events."""

import asyncio
import contextlib
from typing import Final

from hermes.agents.opencode import wire
from hermes.agents.opencode.client import OpenCodeServer, numbers
from hermes.commands.doctor import ports
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.status.table import span
from hermes.config.settings import OpenCode
from hermes.errors import AgentAway, AgentError, Unauthorized

AREA = Area("OpenCode servers")

OLDEST: Final = (1, 1, 53)
LIST_S: Final = 5.0
EVENT_S: Final = 3.0


async def look(around: Around) -> tuple[Finding, ...]:
    """Check all servers at once."""
    servers = around.config.opencode
    if not servers:
        return (AREA.good("servers", "none is configured: the plugin alone serves"),)
    ttl_s = around.config.questions.ttl
    found = await asyncio.gather(*(AREA.guarded(server.name, _server(server, ttl_s), limit_s=8) for server in servers))
    return tuple(finding for findings in found for finding in findings)


def asked(server: OpenCode, *, password: bool = True) -> OpenCodeServer:
    """Return a client of the server, with its password or without."""
    secret = server.password.get_secret_value() if password else ""
    return OpenCodeServer(server.name, server.url, machine="", username=server.username, password=secret)


async def _server(server: OpenCode, ttl_s: float) -> list[Finding]:
    found = await asyncio.to_thread(_listening, server)
    async with asked(server) as there:
        try:
            version = await _version(there)
        except AgentError as error:
            return [_unreachable(server, error, found)]
        rest = await asyncio.gather(
            AREA.guarded(f"{server.name}: password", _password(server, found)),
            AREA.guarded(f"{server.name}: questions", _questions(server, there, ttl_s), limit_s=LIST_S),
            AREA.guarded(f"{server.name}: events", _events(server, there), limit_s=EVENT_S),
        )
    return [_reached(server, version, found), *(finding for findings in rest for finding in findings)]


async def _version(there: OpenCodeServer) -> str:
    """Ask a second time if the server is away: a busy or starting server may not answer within one second."""
    with contextlib.suppress(AgentAway):
        return await there.health()
    return await there.health()


def _listening(server: OpenCode) -> ports.Listening | None:
    with contextlib.suppress(OSError, ValueError, IndexError):  # it is only a hint
        if ports.is_here(server.url):
            return ports.listening(ports.port_of(server.url))
    return None


def _reached(server: OpenCode, version: str, found: ports.Listening | None) -> Finding:
    who = f", {found.who}" if found and found.who else ""
    seen = f"OpenCode {version} at {server.url}{who}"
    if numbers(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return AREA.warning(
            server.name, f"{seen}; Hermes was never run with one older than {oldest}", "opencode upgrade"
        )
    return AREA.good(server.name, seen)


def _unreachable(server: OpenCode, error: AgentError, found: ports.Listening | None) -> Finding:
    who = f"; {found.who or 'a process of another user'} listens on that port" if found else ""
    seen = f"{error}{who}"
    if isinstance(error, Unauthorized):
        mend = f"set password of [[opencode]] {server.name!r} to the server's OPENCODE_SERVER_PASSWORD"
    elif isinstance(error, AgentAway) and not found:
        mend = f"opencode serve --port {ports.port_of(server.url)}"
        if not ports.is_here(server.url):
            mend = f"start it there, or correct the url of [[opencode]] {server.name!r}"
    else:
        mend = f"is url of [[opencode]] {server.name!r} right? Else start that server anew"
    return AREA.broken(server.name, seen, mend)


async def _password(server: OpenCode, found: ports.Listening | None) -> list[Finding]:
    check = f"{server.name}: password"
    start = "start the server with OPENCODE_SERVER_PASSWORD, and set password here"
    if not server.password.get_secret_value():
        if not ports.is_here(server.url) or (found and found.everywhere):
            return [AREA.warning(check, "none, and other machines can reach this server", start)]
        return [AREA.good(check, "none, and only this machine can reach the server")]
    async with asked(server, password=False) as stranger:
        try:
            await stranger.health()
        except Unauthorized:
            return [AREA.good(check, "wanted, and right")]
    mend = f"OPENCODE_SERVER_PASSWORD=… opencode serve --port {ports.port_of(server.url)}"
    return [AREA.warning(check, "one is configured, but the server takes everybody without", mend)]


async def _questions(server: OpenCode, there: OpenCodeServer, ttl_s: float) -> list[Finding]:
    """List the questions of the newest project within the TTL: a request about an older one starts OpenCode there."""
    directories = await there.directories(ttl_s)
    asks = await there.questions(directories[0] if directories else "")
    where = f"in {directories[0]}" if directories else f"and no project of the last {span(ttl_s)}"
    return [AREA.good(f"{server.name}: questions", f"listed: {len(asks) or 'none'} open {where}")]


async def _events(server: OpenCode, there: OpenCodeServer) -> list[Finding]:
    check = f"{server.name}: events"
    async with there.listening() as events:
        async for event in events:
            with contextlib.suppress(ValueError):
                if wire.decode(wire.Event, event.data).type == "server.connected":
                    return [AREA.good(check, "the stream is there")]
    return [AREA.broken(check, "the stream ended before its first event", "start that server anew")]

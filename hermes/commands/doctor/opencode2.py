"""Check the OpenCode 2 server of this user: its file, its process, its password, and the lists that Hermes reads."""

import shlex
import time

from hermes.agents.opencode2 import discovery
from hermes.agents.opencode2.client import OpenCode2Server
from hermes.agents.server import numbers
from hermes.commands.doctor import listener
from hermes.commands.doctor.finding import Area, Around, Finding
from hermes.commands.service import service_state
from hermes.errors import AgentAway, AgentError, AgentRefused, NotRunning, Unauthorized

AREA = Area("OpenCode 2")

NEWEST = (2, 3)
"""The newest version whose notes were read. No released version was run: see hermes/agents/README.md."""
_RESTART = "stop OpenCode, and start it again"


async def look(around: Around) -> tuple[Finding, ...]:
    """Check the server, if one runs; never start one."""
    settings = around.config.opencode2
    if not settings.enabled:
        return (AREA.good("server", "switched off by enabled = false"),)
    try:
        address = discovery.read(settings.file)
    except NotRunning as error:
        return (AREA.good("server", str(error)),)
    except AgentRefused as error:
        mend = f"chmod 600 {shlex.quote(str(settings.file))}" if error.tag == discovery.EXPOSED else _RESTART
        return (AREA.broken("file", str(error), mend),)
    except AgentAway as error:
        return (AREA.warning("file", str(error), _RESTART),)
    async with OpenCode2Server(discovery.NAME, discovery.at(address), machine="") as server:
        try:
            info = await server.connect()
            open_ones = await _open(server, around.config.questions.ttl)
        except Unauthorized:
            seen = f"{address.url} refuses the password of {settings.file}"
            return (AREA.broken("password", seen, _RESTART),)
        except AgentError as error:
            return (AREA.broken("server", str(error), _RESTART),)
    seen = f"OpenCode {info.version} at {address.url}, process {info.pid}, found by {settings.file}"
    found = AREA.good("server", seen)
    if numbers(info.version)[:2] > NEWEST:
        found = AREA.warning("server", f"{seen}; Hermes knows versions up to 2.3", "does a newer Hermes know it?")
    return (found, AREA.good("questions", f"listed: {open_ones or 'none'} open"), *_listener(around))


async def _open(server: OpenCode2Server, ttl_s: float) -> int:
    directories = await server.directories(time.time() - ttl_s)
    return sum([len((await server.pending(directory)).asks) for directory in directories[:5]])


def _listener(around: Around) -> tuple[Finding, ...]:
    """Without a plugin, nothing starts a listener when OpenCode 2 asks."""
    if around.home().listener() is not None:
        return ()
    if listener.has_service(service_state(machine=listener.machine(around)), around):
        return ()
    seen = "nobody listens, and a question of OpenCode 2 starts no listener"
    return (AREA.warning("listener", seen, around.hermes("install", "service")),)

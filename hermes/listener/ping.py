"""A dead-man's switch: as long as all is well, an address is fetched about every minute, and silence is the alarm.

The address is a secret (whoever knows it can keep the alarm from going off): no log and no error holds it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

EVERY_S: Final = 60.0
TIMEOUT_S: Final = 10.0


class Pinger:
    """Fetches `url` while `is_well` says so. Failures are a warning the first time, until one succeeds again.

    `proxy` and `tls` are the bot's own; the environment has no say in it.
    """

    def __init__(
        self,
        url: str,
        *,
        is_well: Callable[[], bool],
        proxy: str | None = None,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._url, self._is_well, self._sleep = url, is_well, sleep
        self._proxy, self._tls, self._transport = proxy, True if tls is None else tls, transport
        self._failing = False

    async def run(self) -> None:
        """Ping until cancelled."""
        async with httpx.AsyncClient(
            timeout=TIMEOUT_S, proxy=self._proxy, verify=self._tls, transport=self._transport, trust_env=False
        ) as client:
            # Right after a start nobody has polled yet: the first ping need not be a minute late.
            while not self._is_well():
                await self._sleep(1.0)
            while True:
                if self._is_well():
                    self._note(await self._ping(client))
                await self._sleep(EVERY_S)

    async def _ping(self, client: httpx.AsyncClient) -> str:
        """Return what went wrong, or ""."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await client.get(self._url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # TimeoutError is an OSError
            return type(error).__name__
        return "" if answer.is_success else f"status {answer.status_code}"

    def _note(self, wrong: str) -> None:
        if wrong and not self._failing:
            log.warning("monitor.ping_url cannot be reached (%s): the monitor may raise an alarm", wrong)
        elif self._failing and not wrong:
            log.info("monitor.ping_url is reached again")
        self._failing = bool(wrong)

"""A dead man's switch: while Hermes works, it fetches a URL about once a minute; if it stops, the monitor alarms.

The URL is a secret, because anyone who knows it can suppress the alarm: no log and no error contains it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import httpx

log = logging.getLogger(__name__)

EVERY_S: Final = 60.0
TIMEOUT_S: Final = 10.0


class Pinger:
    """Fetches `url` about once a minute if the listener has set `is_well` since the last time.

    Of several failures in a row only the first is logged, as a warning. `proxy` and `tls` are those of the bot; the
    proxy and TLS variables of the environment are ignored.
    """

    def __init__(
        self,
        url: str,
        *,
        proxy: str | None = None,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._url, self._sleep = url, sleep
        self.is_well = False
        self._proxy, self._tls, self._transport = proxy, True if tls is None else tls, transport
        self._failing = False

    async def run(self) -> None:
        """Ping until cancelled."""
        async with httpx.AsyncClient(
            timeout=TIMEOUT_S, proxy=self._proxy, verify=self._tls, transport=self._transport, trust_env=False
        ) as client:
            # Right after a start no poll has succeeded yet: look each second, so that the first ping is not late.
            while not self.is_well:
                await self._sleep(1.0)
            while True:
                if self.is_well:
                    self.is_well = False
                    self._note(await self._ping(client))
                await self._sleep(EVERY_S)

    async def _ping(self, client: httpx.AsyncClient) -> str:
        """Fetch the URL once; return the reason if that fails, else ""."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await client.get(self._url)
        except (TimeoutError, httpx.TimeoutException):
            return "no answer in time"
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            return "the URL is wrong"
        except (httpx.HTTPError, OSError, ValueError):
            return "no connection"
        return "" if answer.is_success else f"status {answer.status_code}"

    def _note(self, wrong: str) -> None:
        if wrong and not self._failing:
            log.warning("monitor.ping_url cannot be reached (%s): the monitor may raise an alarm", wrong)
        elif self._failing and not wrong:
            log.info("monitor.ping_url is reached again")
        self._failing = bool(wrong)

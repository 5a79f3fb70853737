"""Tells the person that the database of several machines cannot be reached, and that it is back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from hermes.chat.screens.machines import store_away, store_back
from hermes.chat.screens.screen import Screen
from hermes.config.settings import Telegram
from hermes.core.answer_clock import AnswerTimes
from hermes.errors import HermesError
from hermes.listener.phone.parts import bot_of

log = logging.getLogger(__name__)

PATIENCE_S: Final = 120.0
"""A database that is back sooner is not worth a message."""


class Outage:
    """The time in which a process that was the phone side of this `machine` cannot reach its database.

    `times` know the quiet hours.
    """

    def __init__(
        self, telegram: Telegram, chat_id: int, times: AnswerTimes, *, machine: str, monotonic: Callable[[], float]
    ) -> None:
        self._telegram = telegram
        self._chat_id = chat_id
        self._times = times
        self._machine = machine
        self._monotonic = monotonic
        self._since_s = monotonic()
        self._is_told = False

    async def goes_on(self) -> None:
        """Say so, once, when it has lasted."""
        if not self._is_told and self._monotonic() - self._since_s >= PATIENCE_S:
            self._is_told = await self._say(store_away(self._machine))

    async def is_over(self) -> None:
        """Say so if the person was told of it."""
        if self._is_told:
            await self._say(store_back(self._machine))

    async def _say(self, screen: Screen) -> bool:
        """Send this without a lease: it needs no answer, and is true also if another machine has the phone."""
        try:
            async with bot_of(self._telegram) as bot:
                await bot.send(self._chat_id, screen, silent=self._times.is_quiet())
        except HermesError as error:
            log.warning("the person was not told of the database: %s", error)
            return False
        return True

"""The context that each step of one setup needs."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hermes.chat.bot import Bot
from hermes.commands.setup.file import Draft
from hermes.commands.setup.given import Given
from hermes.commands.setup.terminal import Terminal

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end; Ctrl-C cancels it and raises KeyboardInterrupt."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """Return the result of the coroutine."""


@dataclass(frozen=True, slots=True)
class Context:
    """The options, the present configuration, and the ways to the person and to Telegram.

    `connect` returns the bot of a token. It raises ConfigError if the proxy cannot be used.
    """

    terminal: Terminal
    given: Given
    draft: Draft
    environ: Mapping[str, str]
    connect: Callable[[str], Bot]
    run: Run
    now: Callable[[], float]

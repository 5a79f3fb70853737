"""The circumstances in which a listener runs, beside its store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermes.config.reading import Followed
from hermes.config.settings import Config
from hermes.listener.sd_notify import Supervisor


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances that all parts of a listener may need to know.

    - `followed`: the configuration file; if it is another by now, the listener starts again. None: nobody follows it.
    - `monotonic`: a clock that never jumps, in seconds.
    - `rate_scale`: 2 sends twice as fast as Telegram is known to take it.
    - `idle_s`: the listener leaves after nothing was open for so long; None: it stays.
    """

    config: Config
    followed: Followed | None
    supervisor: Supervisor
    monotonic: Callable[[], float]
    rate_scale: float
    idle_s: float | None

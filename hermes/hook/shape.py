"""The facts about an agent that its hook needs: the shape of its payloads, and which payloads ask something."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Shape:
    """The shape of one agent's payloads, and how its hooks run.

    `keys` must be in a payload, each with a value of its type ("context" may be missing); `carried` are the keys that
    the hook keeps, None for all. `asks` returns whether a payload is an ask; the others are news. News for which
    `needs_listener` returns True concerns no ask, and is dropped if no listener runs. An agent with `calls` starts a
    second hook with --wait for each ask; the hook of any other agent always waits. A hook that was started `by_hand`
    also ends at Ctrl-C and when its terminal closes. `has_desk` returns whether the agent itself shows a dialog for
    this ask while the hook waits.
    """

    def __init__(
        self,
        keys: Mapping[str, type],
        carried: tuple[str, ...] | None,
        asks: Callable[[Mapping[str, Any]], bool],
        *,
        needs_listener: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        calls: bool = False,
        by_hand: bool = False,
        has_desk: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        self.keys = keys
        self.carried = carried
        self.asks = asks
        self.needs_listener = needs_listener
        self.calls = calls
        self.by_hand = by_hand
        self.has_desk = has_desk

"""What the hook knows of an agent: the shape of its payloads, and which of them ask something."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Shape:
    """`keys` must be in a payload; `carried` are the keys that are kept of it, None for all.

    `asks` tells an ask from news. An agent with `calls` starts a second hook with --wait for each ask; the hook of any
    other agent waits itself. A hook that was started `by_hand` ends with its terminal and at its Ctrl-C. `has_desk`
    tells whether the agent shows a dialog of its own for this ask meanwhile.
    """

    def __init__(
        self,
        keys: Mapping[str, type],
        carried: tuple[str, ...] | None,
        asks: Callable[[Mapping[str, Any]], bool],
        *,
        calls: bool = False,
        by_hand: bool = False,
        has_desk: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        self.keys = keys
        self.carried = carried
        self.asks = asks
        self.calls = calls
        self.by_hand = by_hand
        self.has_desk = has_desk

"""Telegram's sending limits, with a scale. Pure; the time is an argument.

1 message a second in a chat (short bursts pass), 30 messages a second in all chats, 20 messages a minute in a group.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from hermes.sandbox.botapi.wire import too_many

UNLIMITED = 1e9  # the default scale: no message is ever refused

CHAT_BURST, CHAT_WINDOW_S = 3, 3.0  # three at once, but no more than three in three seconds
ALL_BURST, ALL_WINDOW_S = 30, 1.0
GROUP_BURST, GROUP_WINDOW_S = 20, 60.0


@dataclass(slots=True)
class Window:
    """At most `most` messages within any `span_s` seconds."""

    most: float
    span_s: float
    sent_at: deque[float] = field(default_factory=deque)

    def wait_s(self, now: float) -> float:
        """Return the seconds until one more message fits; 0 if it fits now."""
        while self.sent_at and now - self.sent_at[0] >= self.span_s:
            self.sent_at.popleft()
        if len(self.sent_at) < self.most:
            return 0.0
        return self.sent_at[0] + self.span_s - now


@dataclass(slots=True)
class Rates:
    """All limits of one bot; `scale` 2 allows twice as many messages."""

    scale: float = UNLIMITED
    _windows: dict[tuple[str, int], Window] = field(default_factory=dict)

    def take(self, chat_id: int, *, group: bool, now: float) -> None:
        """Count one message to this chat; raise ApiError 429 with `retry_after` if it exceeds a limit."""
        windows = [
            self._window("chat", chat_id, CHAT_BURST, CHAT_WINDOW_S),
            self._window("all", 0, ALL_BURST, ALL_WINDOW_S),
        ]
        if group:
            windows.append(self._window("group", chat_id, GROUP_BURST, GROUP_WINDOW_S))
        wait_s = max(window.wait_s(now) for window in windows)
        if wait_s > 0:
            raise too_many(max(1, math.ceil(wait_s)))
        for window in windows:
            window.sent_at.append(now)

    def _window(self, kind: str, chat_id: int, most: float, span_s: float) -> Window:
        return self._windows.setdefault((kind, chat_id), Window(max(1.0, most * self.scale), span_s))

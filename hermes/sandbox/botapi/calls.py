"""What the bot asked, and the trouble that is to befall it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hermes.sandbox.phone_values import Call, Fault


@dataclass(slots=True)
class Calls:
    """The log of requests, in order of arrival; a held request stands in it from the start."""

    monotonic: Callable[[], float]
    log: list[Call] = field(default_factory=list)

    def begin(self, method: str, params: dict[str, Any]) -> int:
        """Note a request; its place in the log."""
        self.log.append(Call(method, self.monotonic(), params))
        return len(self.log) - 1

    def end(self, place: int, status: int, description: str | None) -> None:
        """Note how it ended; status 0 is a connection that was cut."""
        call = self.log[place]
        took_s = self.monotonic() - call.at_s
        self.log[place] = replace(call, status=status, took_s=took_s, description=description)

    def of(self, method: str | None) -> tuple[Call, ...]:
        """The requests of one method, in any case; or all."""
        return tuple(call for call in self.log if method is None or call.method.lower() == method.lower())

    def counts(self) -> dict[str, int]:
        """How many requests of each method."""
        return dict(Counter(call.method for call in self.log))


@dataclass(slots=True)
class Faults:
    """Faults wait in a queue; the first that fits a request is taken."""

    waiting: list[Fault] = field(default_factory=list)
    generation: int = 0  # counts the clearings, which also end what hangs

    def put(self, fault: Fault) -> None:
        """Queue a fault."""
        self.waiting.append(fault)

    def clear(self) -> None:
        """Forget all faults and let go what hangs."""
        self.waiting.clear()
        self.generation += 1

    def await_poll(self) -> bool:
        """Whether trouble waits for a getUpdates; then a held poll ends, so that the next one meets it."""
        return any(fault.method.lower() in {"*", "getupdates"} for fault in self.waiting)

    def take(self, method: str) -> Fault | None:
        """The fault that befalls this request, if any; used up by it."""
        for place, fault in enumerate(self.waiting):
            if fault.method.lower() not in {"*", method.lower()}:
                continue
            if fault.skip > 0:
                self.waiting[place] = replace(fault, skip=fault.skip - 1)
                return None
            if fault.times > 1:
                self.waiting[place] = replace(fault, times=fault.times - 1)
            else:
                del self.waiting[place]
            return fault
        return None

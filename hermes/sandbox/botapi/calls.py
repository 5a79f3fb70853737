"""The log of the bot's requests, and the queue of faults."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hermes.sandbox.phone_values import Call, Fault


@dataclass(slots=True)
class Calls:
    """The log of requests, in order of arrival; a held request is in it from its start."""

    monotonic: Callable[[], float]
    log: list[Call] = field(default_factory=list)

    def begin(self, method: str, params: dict[str, Any]) -> int:
        """Log a request and return its index in the log."""
        self.log.append(Call(method, self.monotonic(), params))
        return len(self.log) - 1

    def end(self, place: int, status: int, description: str | None) -> None:
        """Log the end of a request; status 0 means that the connection was cut."""
        call = self.log[place]
        took_s = self.monotonic() - call.at_s
        self.log[place] = replace(call, status=status, took_s=took_s, description=description)

    def of(self, method: str | None) -> tuple[Call, ...]:
        """Return the requests of one method (in any letter case), or all if it is None."""
        return tuple(call for call in self.log if method is None or call.method.lower() == method.lower())

    def counts(self) -> dict[str, int]:
        """Return the number of requests for each method."""
        return dict(Counter(call.method for call in self.log))


@dataclass(slots=True)
class Faults:
    """The queue of faults; a request takes the first one that fits."""

    waiting: list[Fault] = field(default_factory=list)
    generation: int = 0  # the number of calls of `clear`; each one ends the requests that hang

    def put(self, fault: Fault) -> None:
        """Queue a fault."""
        self.waiting.append(replace(fault, generation=self.generation))

    def clear(self) -> None:
        """Remove all faults, and end the requests that hang."""
        self.waiting.clear()
        self.generation += 1

    def is_cleared(self, fault: Fault) -> bool:
        """Tell whether the faults were cleared after this one was put into the queue."""
        return fault.generation != self.generation

    def await_poll(self) -> bool:
        """Tell whether a fault waits for getUpdates; then a held poll ends, so that the next one gets the fault."""
        return any(fault.method.lower() in {"*", "getupdates"} for fault in self.waiting)

    def take(self, method: str) -> Fault | None:
        """Return the fault of this request, or None, and count its `skip` or its `times` down."""
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

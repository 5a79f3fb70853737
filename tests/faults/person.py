"""The person of a round: reads the phone, taps and writes until the answer was acknowledged, and never again after."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from random import Random

    from hermes.sandbox.phone import Phone
    from hermes.sandbox.phone_values import ShownMessage, Tap, Toast
    from tests.faults.asks import Ask, Shape

PATIENCE_S: Final = 1.5
"""After this long without a word the person taps again."""
REDRAWN_S: Final = 0.6
PART: Final = 4096
"""So many letters go into one message."""
BETWEEN_S: Final = 0.15
"""The parts of a long text follow each other within this, unless something comes between them."""
BESIDE: Final = (
    "Is this your",
    "Type your",
    "Reply to this",
    "⏰",
    "Still waiting",
    "⌛ No answer to",
    "⚠️",
    "Your answer",
    "Your ",
    "Refuse ",
    "All of it",
    "✅ About ",
    "❌ About ",
    "Talk ",
)
"""How messages beside a question begin; the last two tell that a turn of its session has ended."""
TAPS: Final[Mapping[Shape, tuple[str, ...]]] = {
    "stop": ("Yes, stop", "⏹ Stop"),
    "skip": ("Yes, skip", "⏭ Skip", "Yes"),
    "once": ("Allow once",),
    "always": ("Yes, always", "Always…"),
    "refuse": ("Yes, refuse", "✋ Refuse"),
}
"""The button that comes later first: it is there after the other one was tapped."""
WHY: Final = "✏️ Refuse with a reason"
SETTLED: Final = ("Already ", "The agent no longer", "Nobody answered")
UNSAVED: Final = "I could not save that"


@dataclass(frozen=True, slots=True)
class View:
    """The phone at one moment."""

    messages: tuple[ShownMessage, ...]
    toasts: dict[str, Toast]
    removed: Mapping[int, ShownMessage] = field(default_factory=dict)
    """What a person has removed together with its topic, by id."""

    @classmethod
    def of(cls, phone: Phone, *, after: int = 0, after_s: float = 0.0) -> View:
        """Look at the phone: at the messages with higher ids than `after`, and the toasts since then."""
        toasts = phone.toasts(after_s=after_s)
        return cls(phone.messages(after=after), {toast.tap_id: toast for toast in toasts})

    def without(self, forgotten: Collection[int]) -> View:
        """Return this view without the messages with these ids."""
        return View(tuple(one for one in self.messages if one.message_id not in forgotten), self.toasts, self.removed)

    def shown(self) -> Sequence[ShownMessage]:
        """Return what the bot shows."""
        return [message for message in self.messages if message.from_bot and not message.deleted]

    def told(self) -> Sequence[ShownMessage]:
        """Return what the bot shows, and what of it a person has removed together with its topic."""
        return [one for one in self.messages if one.from_bot and (not one.deleted or one.message_id in self.removed)]

    def notices(self, ask: Ask) -> Sequence[ShownMessage]:
        """Return the messages that a turn of the question's session has ended."""
        return [one for one in self.told() if one.text.startswith(f"✅ About {ask.token} is done")]

    def about(self, ask: Ask) -> Sequence[ShownMessage]:
        """Return the question's messages (copies of it, too), without those beside them."""
        return [message for message in self.shown() if _is_about(ask, message)]

    def removed_about(self, ask: Ask) -> Sequence[ShownMessage]:
        """Return those of its messages that a person has removed together with its topic."""
        return [message for message in self.removed.values() if message.from_bot and _is_about(ask, message)]

    def ever_about(self, ask: Ask) -> Sequence[ShownMessage]:
        """Return all of its messages, the deleted ones, too."""
        return [message for message in self.messages if message.from_bot and _is_about(ask, message)]


def _is_about(ask: Ask, message: ShownMessage) -> bool:
    return ask.token in message.text and not message.text.startswith(BESIDE) and message.reply_to is None


class Fingers(Protocol):
    """What a person does to a phone; see `Phone`."""

    def tap(self, message: ShownMessage, label: str, *, times: int) -> Tap:
        """Tap a button. Raises LookupError where it is no longer there."""
        ...

    def write(
        self, text: str, *, reply_to: ShownMessage | None = None, thread_id: int | None = None
    ) -> tuple[int, ...]:
        """Write a text, in a topic if wanted, and return the ids of its messages. Raises LookupError: it is gone."""
        ...


@dataclass
class Person:
    """Works at one ask. `acts` is False for one who only looks; `now` is steady seconds."""

    ask: Ask
    fingers: Fingers
    rng: Random
    acts: bool = True
    thinks_s: float = 0.2
    """How long this person may look at a screen before acting on it: faults are to strike before, amid and after."""
    now: Callable[[], float] = time.monotonic
    in_group: bool = False
    """Whether other people talk there, too: there an armed text is the reply to the message that asks for it."""
    between: Callable[[], None] | None = None
    """What happens between the parts of a long text."""
    sleep: Callable[[float], None] = time.sleep
    done: bool = False
    pressed: list[tuple[int, str]] = field(default_factory=list)
    """What was ever tapped: message and data, for taps on old pages."""
    updates: list[int] = field(default_factory=list)
    first_seen_s: float = 0.0
    last_copy_s: float = 0.0
    """When the newest message of the question came; the first one is a copy, too."""
    over_s: float = 0.0
    touches_s: list[float] = field(default_factory=list)
    """When this person did something about the question; any tap or text starts its time anew."""
    asked_again: bool = False
    """Whether the agent asked the same again, by itself, after it was restarted."""
    time_was_up: bool = False
    """Whether nobody answered, and the timer did."""
    _tap: Tap | None = None
    _label: str = ""
    _wrote: tuple[int, ...] = ()
    _armed: int | None = None
    """The message whose text is written next."""
    _next_s: float = 0.0
    _looked_s: float | None = None
    _pressed_s: float = 0.0
    _seen: tuple[int, int] = (0, 0)
    _copies: set[int] = field(default_factory=set)
    _view: View | None = None

    def look(self, view: View, came: Callable[[], Sequence[object]]) -> None:
        """Note when the question was first seen, and when time has ended it.

        Who is asked again turns to the new message once it is there, whatever was done about the first one until then.
        """
        # What went with its topic before this look was on the phone, too: somebody has seen the topic there.
        about = [*view.removed_about(self.ask), *view.about(self.ask)]
        if not self._copies.issuperset(message.message_id for message in about):
            self._copies.update(message.message_id for message in about)
            self.last_copy_s = self.now()
            self.first_seen_s = self.first_seen_s or self.last_copy_s
            if self.asked_again:
                self.ask.promised = self.done = False
                self._armed = None
                self._tap, self._wrote, self._seen = None, (), (0, 0)
        self.time_was_up = self.time_was_up or any("⌛ Expired" in message.text for message in about)
        if not self.over_s and (came() or self.time_was_up):
            self.over_s = self.now()

    def begin_again(self, request_id: str) -> None:
        """Note that another question comes in the place of one that is gone."""
        self.ask.request_id, self.asked_again = request_id, True

    def step(self, view: View) -> None:
        """Do the next thing, if it is time."""
        self._view = view
        if self._armed in view.removed:
            self._armed = None
        if self._tap is not None and not self._heard(self._tap, view):
            return
        if self._wrote:
            self._watch(view)
        now_s = self.now()
        if self.done or not self.acts or now_s < self._next_s:
            return
        asked = [message for message in view.about(self.ask) if message.rows]
        if asked and self._looked_s is None:
            self._looked_s = now_s + self.rng.uniform(0.0, self.thinks_s)
        if asked and now_s >= (self._looked_s or now_s):
            self._looked_s = None
            self._next_s = now_s + self.rng.uniform(0.02, 0.2)
            self._act(asked[-1])

    def _heard(self, tap: Tap, view: View) -> bool:
        """Take in the answer to the last tap; False while it may still come."""
        toast = view.toasts.get(tap.tap_id)
        if toast is None:
            if self.now() < self._pressed_s + PATIENCE_S:
                return False
        elif toast.text.startswith("On its way") or (
            self.ask.shape in {"single", "once"} and toast.text == self._label
        ):
            self.ask.promised = self.done = True
        elif toast.text.startswith(SETTLED):
            self.done = True
        elif toast.text.startswith(("Type your answer", "Write why not")):
            self._armed = tap.message_id
        self._tap = None
        self._next_s = self.now() + self.rng.uniform(0.0, 0.1)
        return True

    def _watch(self, view: View) -> None:
        """A text is acknowledged by the message that turns; the person hears of it where it was not saved."""
        for message in view.about(self.ask):
            if any(not version.rows and self.ask.token + " in words" in version.text for version in message.versions):
                self.ask.promised = self.done = True
        sorry = [m for m in view.shown() if UNSAVED in m.text and m.reply_to in self._wrote]
        if sorry:
            self._wrote, self._armed = (), None
        # In a group, a reply to a copy that Telegram never confirmed is only offered as the answer.
        use = f"Use “{self.ask.token} in words"
        for message in [one for one in view.shown() if self.ask.token in one.text]:
            for label in [one for row in message.labels for one in row if one.startswith(use)]:
                self._press(message, label)

    def _act(self, message: ShownMessage) -> None:
        seen = (message.message_id, len(message.versions))
        if seen == self._seen and self.now() < self._pressed_s + REDRAWN_S:
            return
        labels = [label for row in message.labels for label in row]
        if self.ask.shape in {"reply", "typed", "why"}:
            self._word(message, labels)
        elif wanted := self._button(message, labels):
            self._press(message, wanted)
            self._seen = seen

    def _word(self, message: ShownMessage, labels: Sequence[str]) -> None:
        if self._wrote:
            return
        self.touches_s.append(self.now())
        if self.ask.shape == "reply":
            self._write_reply(message)
        elif self.ask.shape == "why" and self._armed is None and WHY in labels:
            self._press(message, WHY)
        elif self._armed is not None or ("✏️ Other" not in labels and any(label.startswith("✏️") for label in labels)):
            self._wrote = self._write_armed(message)
        elif "✏️ Other" in labels:
            self._press(message, "✏️ Other")

    def _write_reply(self, message: ShownMessage) -> None:
        """Reply; a long text goes in two parts, and something happens between them."""
        first, rest = self.ask.text[:PART], self.ask.text[PART:]
        try:
            self._wrote = self.fingers.write(first, reply_to=message)
        except LookupError:
            return  # it was deleted under the finger
        if rest:
            # At once, and not at a later step: the driver may be late, and Hermes does not wait for long.
            self.sleep(self.rng.uniform(0.0, BETWEEN_S))
            if self.between is not None:
                self.between()
            try:
                self._wrote += self.fingers.write(rest, reply_to=message)
            except LookupError:
                self._wrote += self.fingers.write(rest)

    def _write_armed(self, message: ShownMessage) -> tuple[int, ...]:
        """Write the text that ✏️ asked for; in a group as a reply to what asks for it, once that is there."""
        if not self.in_group:
            with contextlib.suppress(LookupError):  # its topic was deleted
                return self.fingers.write(self.ask.text, thread_id=message.thread_id)
            return ()
        code = message.text.rpartition("#")[2]
        shown = self._view.shown() if self._view else ()
        asks_for_it = [one for one in shown if one.force_reply and one.text.rpartition("#")[2] == code]
        with contextlib.suppress(LookupError):  # it was deleted under the finger
            return self.fingers.write(self.ask.text, reply_to=asks_for_it[-1]) if asks_for_it else ()
        return ()

    def _button(self, message: ShownMessage, labels: Sequence[str]) -> str:
        """Return the button that this person presses next, "" for none."""
        ask = self.ask

        def one(*parts: str) -> str:
            return next((label for part in parts for label in labels if part in label), "")

        match ask.shape:
            case "single":
                return one(ask.label(1, "b"))
            case "multiple":
                missing = [ask.label(1, sign) for sign in "ac" if f"☐ {ask.label(1, sign)}" in labels]
                return one(*missing) or one("Done", "Yes, send")
            case "two":
                picks = [ask.label(1, "c"), ask.label(2, "a")]
                missing = [
                    label for label in labels if any(label.endswith(pick) for pick in picks) and "●" not in label
                ]
                return (missing or [""])[0] or one("1 ⚠️", "2 ⚠️") or ("Send" if "Send" in labels else one("▶"))
            case shape:
                return one(*TAPS.get(shape, ()))

    def _press(self, message: ShownMessage, label: str) -> None:
        times = 2 if self.rng.random() < 0.15 else 1
        try:
            self._tap = self.fingers.tap(message, label, times=times)
        except LookupError:
            return  # it was redrawn under the finger
        self._label = label
        self._pressed_s = self.now()
        self.touches_s.append(self._pressed_s)
        self.pressed.append((message.message_id, self._tap.data))
        self.updates.append(self._tap.update_id)

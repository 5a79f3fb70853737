"""What must be true after a round, whatever went wrong in it. Each law returns what violates it, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes.sandbox.opencode2.world import VERSIONS
from tests.faults.world import FLEETING_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes.sandbox.phone import Phone
    from hermes.sandbox.phone_values import ShownMessage
    from tests.faults.asks import Answers, Ask
    from tests.faults.person import Person, View

BUSY_S: Final = {"Telegram": 40.0, "an agent server": 80.0}
"""More requests a second than this, in the mean of a round, is spinning; time here runs faster than on the wall."""
STUMBLED: Final = ("stumbled", "tripped", "nothing waits for", "Traceback")
SLACK_S: Final = 2.0
"""How late the driver may have looked."""
LATE_S: Final = 1.0
"""How long before the end a tap may come too late to count."""
LONGEST: Final = 400
NO_LONGER: Final = "The agent no longer needs this"
WORDS: Final = {
    "stop": "⏹ Stopped",
    "skip": "⏭ Skipped",
    "once": "✅ Allowed once",
    "always": "✅ Always allowed",
    "refuse": "✋ Refused",
    "why": "✋ Refused: ",
}
"""How the end is told that the person wanted, where it is not the answer itself."""
TIME_OUT: Final = "⌛ Expired"


def effects(person: Person, came: Sequence[Answers | None]) -> Iterator[str]:
    """At most one effect, by the phone as its person meant it, or by the desk, or by time."""
    ask = person.ask
    if len(came) > 1:
        yield f"{ask.token} took effect {len(came)} times: {came}"
    for one in came:
        if not _is_rightful(ask, one) and not (one == ask.dismissed and person.time_was_up):
            yield f"{ask.token} received {_short(one)}, its person meant {_short(ask.wanted)}"
    if not came and not ask.ended_by:
        yield f"{ask.token} ({ask.shape}, {ask.route}, {ask.fate}) has no end; acknowledged: {ask.promised}"


def end(person: Person, came: Sequence[Answers | None]) -> str:
    """Return how an ask ended, in a word or two."""
    ask = person.ask
    if person.time_was_up:
        return "expired"
    if not came:
        return "gone" + (", though acknowledged" if ask.promised else "")
    if came[0] == ask.wanted:
        return "by the phone"
    return "at the desk"


def _is_rightful(ask: Ask, one: Answers | None) -> bool:
    if "desk" in ask.ended_by and one == ask.at_desk:
        return True
    if "dismissed" in ask.ended_by and one == ask.dismissed:
        return True
    return one == ask.wanted


def shows(person: Person, came: Sequence[Answers | None], view: View) -> Iterator[str]:
    """The phone tells truly how it ended, without buttons, also where an acknowledged answer came to nothing."""
    ask = person.ask
    about = view.about(ask)
    for message in about:
        if message.rows:
            yield f"{ask.token} still has buttons: {message.message_id} {message.text[:60]!r}"
    texts = [message.text for message in (*about, *view.removed_about(ask)) if not message.rows]
    if not about:
        # A question that ended before it could be shown owes the phone nothing, but an answered one does, unless a
        # person has removed it together with its topic.
        is_told = any(ask.token in message.text for message in view.shown())
        if view.removed_about(ask) and (came or is_told or not ask.promised):
            return
        if ask.promised or (came and came[0] == ask.wanted and not ask.ended_by):
            yield f"{ask.token} is not on the phone"
        return
    said = _true_words(ask, came, person)
    if person.asked_again and "desk" in ask.ended_by and len(texts) == 1:
        # The desk answered the second question before Hermes could hear of it: the one message is of the first.
        said.append(NO_LONGER)
    if not any(word in text for text in texts for word in said):
        yield f"{ask.token} came to {_short(list(came))} ({sorted(ask.ended_by)}), the phone says {_short(texts)}"


def _short(what: object) -> str:
    """Return it as Python writes it: a long one by its beginning, its length and its end."""
    text = repr(what)
    return text if len(text) <= LONGEST else f"{text[:200]}[… {len(text)} letters …]{text[-60:]}"


def shown_once(ask: Ask, view: View) -> Iterator[str]:
    """One question has one message, where Telegram confirmed every message that it took."""
    asked = [message.message_id for message in view.about(ask) if any(version.rows for version in message.versions)]
    if len(asked) > 1:
        yield f"{ask.token} ({ask.route}) was asked {len(asked)} times, by the messages {asked}"


def turns_told(ask: Ask, turns: int, view: View, *, is_sure: bool) -> Iterator[str]:
    """Each turn that ended by itself is told: at least once, and once if Telegram confirmed every message."""
    told = len(view.notices(ask))
    if told < turns or (is_sure and told > turns):
        yield f"{ask.token}: {turns} turns ended by themselves, and {told} were told"


def _true_words(ask: Ask, came: Sequence[Answers | None], person: Person) -> list[str]:
    """Return the words of which one must be shown."""
    if not came and ask.allowed is not None:
        # The agent took the leave, and was stopped while its tool ran: who heard it take the leave shows that.
        return [NO_LONGER, *_true_words(ask, [ask.allowed], person)]
    if not came and ask.agent in VERSIONS and ask.ended_by & {"aborted", "deleted"}:
        return [NO_LONGER, "🖥 Dismissed on the computer"]  # OpenCode 2 cancels a form, whatever ended its turn
    if not came:
        return [TIME_OUT if person.time_was_up and "left" in ask.ended_by else NO_LONGER]
    # A session takes its record with it: what took effect just before can be proven by nobody who was killed meanwhile.
    # Nor can a hook tell of it that has left a full disk, nor an agent that says nothing for too long.
    said = [NO_LONGER] if ask.ended_by & {"deleted", "left", "silent"} else []
    if "desk" in ask.ended_by and came[0] == ask.at_desk:
        # Where no event told which of the two it was, its tool shows that it was allowed, and no more.
        always = ["🖥 Always allowed"] if came[0] == (("always",),) else []
        said += ["🖥 Allowed", *always] if ask.is_permission else ["🖥 Answered on the computer"]
    if came[0] == ask.dismissed:
        refused = "🖥 Refused on the computer" if ask.is_permission else "🖥 Dismissed on the computer"
        said += [refused] if "dismissed" in ask.ended_by else []
        said += [TIME_OUT] if person.time_was_up else []
    if came[0] == ask.wanted:
        said.append(WORDS.get(ask.shape, "✅ "))
    if ask.shape in {"once", "always"} and came[0] in {(("once",),), (("always",),)}:
        # As above, where a listener was killed with the word in its hands.
        said.append("✅ Allowed ·")
    return said


def time_ran_out_rightly(
    person: Person, *, fleeting: bool, pace: float, gap_s: float, stalled_s: float = 0.0, reopened: bool = False
) -> Iterator[str]:
    """Nothing expires that was not answerable for its time to live.

    `gap_s`: when the last listener was ended; `stalled_s`: how long the driver stood still at most. `reopened`:
    somebody wrote /open, which shows a question again, and its time goes on; other texts of the kind are offered as
    answers, which starts a time anew after a gap, too. Any other copy follows one that Telegram never confirmed: time
    begins with the last copy.
    """
    if not person.time_was_up:
        return
    ask = person.ask
    # What was done in the last moment may have come too late.
    shown_s = person.first_seen_s if reopened else person.last_copy_s
    since_s = max([shown_s, *(at_s for at_s in person.touches_s if at_s < person.over_s - LATE_S)])
    open_s = (person.over_s - since_s) * pace
    if not fleeting or person.first_seen_s == 0.0:
        yield f"{ask.token} expired, though nothing expires here"
    elif open_s < FLEETING_S - (SLACK_S + stalled_s) * pace:
        yield f"{ask.token} expired after {open_s:.1f} s of {FLEETING_S} s"
    elif since_s < gap_s < person.over_s and not reopened:
        yield f"{ask.token} expired within ten minutes of a gap in which nobody could answer"


def files(store: Path, planted: Mapping[str, bytes]) -> Iterator[str]:
    """What could not be read is where it was, or in quarantine, to the byte; nothing else is left open."""
    kept = {file.read_bytes() for file in (store / "quarantine").rglob("*") if file.is_file()}
    for name, content in planted.items():
        place = store / "pending" / name
        there = place.read_bytes() if place.exists() else None
        if content not in {there, *kept}:
            yield f"the unreadable {name} was lost or changed"
    for file in (store / "pending").glob("*.json"):
        if file.name not in planted and not file.is_dir():
            yield f"the entry {file.name} is left open"
    left = left_in_the_inbox(store)
    if left:
        yield f"the inbox keeps {left}"


def left_in_the_inbox(store: Path) -> list[str]:
    """Return the names of the records that nobody took in; what a killed hook had begun to write is none."""
    return sorted(file.name for file in (store / "inbox").glob("[!.]*"))


def trapped(heard: Sequence[str]) -> Iterator[str]:
    """No process of Hermes speaks to a server that only an agent's environment names: it would get the token."""
    if heard:
        verbs = sorted({line.partition(" ")[0] for line in heard})
        yield f"{len(heard)} requests went to a server of the agent's environment ({', '.join(verbs)})"


def foreign_deletions(phone: Phone) -> Iterator[str]:
    """No message is deleted that Hermes did not send; to try counts."""
    ours = {message.message_id for message in phone.messages() if message.from_bot}
    for call in phone.calls("deleteMessage"):
        if int(call.params["message_id"]) not in ours:
            yield f"Hermes wanted to delete message {call.params['message_id']}, which it did not send"


def words_of_the_log(text: str, token: str) -> Iterator[str]:
    """No step ever stumbled, and the token is in no line."""
    for line in text.splitlines():
        if any(word in line for word in STUMBLED):
            yield f"the log says: {line[:200]}"
    if token in text:
        yield "the token is in the log"


def spinning(whom: str, calls: int, took_s: float) -> Iterator[str]:
    """The listener asks for no more than its work needs; `whom` is a key of BUSY_S."""
    if calls / took_s > BUSY_S[whom]:
        yield f"{calls / took_s:.0f} requests a second to {whom}"


def deafness(fresh: Ask, came: Sequence[Answers | None]) -> Iterator[str]:
    """A question that is asked when all is over is answered as any other."""
    if list(came) != [fresh.wanted]:
        yield f"deaf: a fresh question came to {list(came)!r}, its person meant {fresh.wanted!r}"


def leftovers(view: View, tokens: Sequence[str]) -> list[ShownMessage]:
    """Return the messages of these asks whose buttons wait for an answer.

    A list of sessions names some asks, too. An answer that came too late is offered as a prompt: a tap would send it.
    """
    shown = [m for m in view.shown() if m.rows and not m.text.startswith(("Your sessions", "Your answer"))]
    return [m for m in shown if any(token in m.text for token in tokens)]

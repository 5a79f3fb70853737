"""Prompts of a round: a session, the person who writes to it, and the desk that keeps it busy meanwhile.

A talk is one session with a few letters.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hermes.sandbox.opencode2.world import VERSIONS
from tests.faults import letters
from tests.faults.letters import FINAL, HEADS, TOO_LATE, Letter
from tests.faults.person import BETWEEN_S, UNSAVED
from tests.faults.world import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from hermes.sandbox.phone_values import ShownMessage
    from tests.faults.letters import Desk, Speaking
    from tests.faults.person import View

LOCKED: Final = "🔒 Locked"
WRITE: Final = "✏️ Write a prompt"
UNHEARD_S: Final = 15.0
"""After so long without a word about a text the person writes it again: a hint is said once, and may be lost.

It is longer than a group has to wait when it has got all the messages that Telegram lets it have in a minute.
"""
AGAIN_S: Final = 2.5
"""After so long without an effect the person tries again."""
PACE_S: Final = (0.05, 0.3)
RUNS_S: Final = (0.0, 0.3, 1.2)
FAILS: Final = 0.1
ABORTED: Final = 0.08
DELETED: Final = 0.06


@dataclass
class Talk:
    """One session of a round. `may_arm`: no other plain text of the person can come between."""

    token: str
    agent: Desk
    phone: Speaking
    rng: Random
    letters: list[Letter]
    in_group: bool = False
    may_arm: bool = True
    has_topics: Callable[[], bool] = lambda: False
    """Whether the chat has topics of sessions now."""
    between: Callable[[], None] | None = None
    """What happens between the pieces of an album."""
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    session: str = ""
    is_deleted: bool = False
    notes: list[str] = field(default_factory=list)
    _busy_at: list[tuple[float, float]] = field(default_factory=list)
    """When the desk begins a question of its own, and when it answers it."""
    _is_asking: bool = False
    _runs_since_s: float | None = None
    _runs_for_s: float = 0.0
    _next_s: float = 0.0
    _asked_s: float = -AGAIN_S
    _tapped: dict[tuple[int, str], float] = field(default_factory=dict)
    _armed_s: float | None = None
    _forgotten_id: int = 0
    """Cards up to this message brought nothing: they are of a store that was removed, and Hermes does not know them."""
    _began_s: float = 0.0

    @property
    def title(self) -> str:
        """The title of the session."""
        return f"Talk {self.token}"

    @property
    def is_second(self) -> bool:
        """Whether its agent is an OpenCode 2."""
        return self.agent.manner in VERSIONS

    def begin(self, *, keeps_busy: bool = False) -> None:
        """Make the session; the desk will keep it busy now and then, or (`keeps_busy`) until `let_go`."""
        self._began_s = self.now()
        self.session = self.agent.do("session", title=self.title)
        if not self.is_second:
            self.agent.do("take_time", session=self.session)
        if keeps_busy:
            self._busy_at.append((self._began_s, math.inf))
            return
        for _ in range(self.rng.randint(0, 2)):
            begins_s = self._began_s + self.rng.choice([0.0, self.rng.uniform(0.0, 1.5)])
            self._busy_at.append((begins_s, begins_s + self.rng.uniform(0.1, 2.5)))
        if any(letter.door == "notice" for letter in self.letters) and not self._busy_at:
            self._busy_at.append((self._began_s, self._began_s + 0.1))
        self._busy_at.sort()

    def let_go(self) -> None:
        """Let the desk end what keeps the session busy."""
        self._busy_at = [(begins_s, 0.0) for begins_s, _ in self._busy_at]

    def step(self, view: View) -> None:
        """Let the desk and the person do the next thing."""
        if not self.is_deleted:
            with contextlib.suppress(LookupError):
                self._work()
        for letter in self.letters:
            if letter.ids:
                self._watch(letter, view)
        if self.now() >= self._next_s:
            self._next_s = self.now() + self.rng.uniform(*PACE_S)
            self._write_next(view)

    def is_over(self, view: View) -> bool:
        """Tell whether each letter has come to its end, and the desk is done."""
        return not self._busy_at and all(
            letter.is_unheard or (letter.ids and self.end_of(letter, view) and self._is_heard(letter, view))
            for letter in self.letters
        )

    def end_of(self, letter: Letter, view: View) -> str:
        """Return the last words about a letter, "" if there are none yet.

        What comes after its topic was deleted replies to nothing: then one end of this session is as good as another.
        """
        end = letter.end(view)
        if end or not letter.is_removed(view):
            return end
        without = [one for one in self.letters if one.is_removed(view) and not one.end(view)]
        ends = [m.text for m in self._orphans(view) if (m.text + "\n").startswith(FINAL)]
        place = without.index(letter)
        return ends[place] if place < len(ends) else self._told_end(letter, view)

    def _told_end(self, letter: Letter, view: View) -> str:
        """Return a later notice: a line that went with its topic when the turn was over does not come again."""
        later = [m.text for m in self._notices(view.told()) if m.message_id > max(letter.ids)]
        return later[0] if later and self.got(letter) else ""

    def _notices(self, messages: Sequence[ShownMessage]) -> list[ShownMessage]:
        return [m for m in messages if m.text.startswith((f"✅ {self.title} is done", f"❌ {self.title} "))]

    def _orphans(self, view: View) -> list[ShownMessage]:
        """Return the lines of this session that reply to nothing."""
        alone = [m for m in view.told() if m.reply_to is None and self.title in m.text]
        return [m for m in alone if m.text.startswith(HEADS) and not m.text.startswith(f"❌ {self.title}")]

    def _offers(self, view: View) -> list[ShownMessage]:
        """Return the lines that reply to nothing, and ask first whether a text is for this session."""
        alone = [m for m in view.told() if m.reply_to is None and m.text.startswith("What is this for?")]
        return [m for m in alone if m.rows and self.title in m.labels[0][0]]

    def _is_heard(self, letter: Letter, view: View) -> bool:
        """Tell whether the person knows what came of an edit: a word that it came too late is a message of its own."""
        if letter.is_removed(view):
            return True
        return not letter.is_edited or letter.is_refused or letter.edited in self.got(letter) or not self.got(letter)

    def got(self, letter: Letter) -> list[str]:
        """Return what the model got of a letter, each text as often as it did."""
        return [text for text in self.texts() if text.startswith(f"{letter.token} ")]

    def texts(self) -> list[str]:
        """Return all that the model got in this session."""
        told: list[str] = self.agent.do("texts_of", session=self.session)
        return told

    def files(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return each text that the model got in this session, with the digests of the files that came with it."""
        texts = self.texts()
        if self.is_second:  # Hermes sends it texts alone
            return [(text, ()) for text in texts]
        # A prompt may go to the model between the two calls.
        return list(zip(texts, map(tuple, self.agent.do("files_of", session=self.session)), strict=False))

    def turns(self) -> int | None:
        """Return how many turns ended by themselves, None if nobody can know."""
        if self.is_deleted:
            return None
        told: int = self.agent.do("turns_of", session=self.session)
        return told

    # --- the desk ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        now_s = self.now()
        if self._busy_at and not self._is_asking and now_s >= self._busy_at[0][0]:
            if self.agent.do("is_active", session=self.session):
                self._finish()
                return
            self._is_asking = True
            yes = {"label": "Yes", "description": ""}
            asked = {"question": f"What does {self.title} need?", "header": "Desk", "options": [yes]}
            self.agent.do("ask", questions=[asked], session=self.session)
        elif self._is_asking and now_s >= self._busy_at[0][1]:
            self._answer()
            self._is_asking = False
            self._busy_at.pop(0)
        elif not self._is_asking:
            self._go_on(now_s)

    def _answer(self) -> None:
        """Answer what the session asks, also what it asks again after a restart."""
        if self.is_second:
            pending = self.agent.do("pending", session=self.session)
        else:
            pending = [one for one in self.agent.do("listed", directory=DIRECTORY) if one["sessionID"] == self.session]
        for one in pending:
            self.agent.do("answer", request_id=one["id"], answers=[["Yes"]])

    def _go_on(self, now_s: float) -> None:
        """Let a turn that a prompt has begun end after a while, in one way or another."""
        self._answer()
        if not self.agent.do("is_active", session=self.session):
            self._runs_since_s = None
            return
        if self._runs_since_s is None:
            self._runs_since_s, self._runs_for_s = now_s, self.rng.uniform(0.0, self.rng.choice(RUNS_S))
        elif now_s >= self._runs_since_s + self._runs_for_s:
            self._runs_since_s = None
            self._finish()

    def _finish(self) -> None:
        chance = self.rng.random()
        if chance < FAILS:
            self.agent.do("fail", session=self.session, message="the provider says no")
        elif chance < FAILS + ABORTED:
            self.agent.do("abort", session=self.session)
        elif chance < FAILS + ABORTED + DELETED and not self._busy_at:
            self.is_deleted = True
            self.agent.do("delete", session=self.session)
        elif self.is_second:
            self.agent.do("say", session=self.session, text=f"Done with {self.token}.")
        else:
            self.agent.do("finish", session=self.session)

    # --- the person -------------------------------------------------------------------------------------------

    def _write_next(self, view: View) -> None:
        """Write the next letter once the one before is acknowledged."""
        for place, letter in enumerate(self.letters):
            without = (*self._orphans(view), *self._offers(view))
            lines = letter.lines(view)
            hears_more = bool(lines) and self._waits_for_word(letter, lines[-1])
            is_heard = (lines and not hears_more) or (letter.is_removed(view) and without)
            if letter.ids and not letter.is_unheard and not is_heard:
                if self.now() > letter.written_s + UNHEARD_S:
                    letter.is_unheard = True
                    self.letters.insert(place + 1, Letter(f"{letter.token}x", "", "card"))
                return
            if not letter.ids:
                lines = [line for one in self.letters[:place] for line in one.lines(view) if not line.deleted]
                self._write(letter, lines, view)
                return

    def _write(self, letter: Letter, lines: list[ShownMessage], view: View) -> None:
        if letter.door == "line" and lines:
            self._send(letter, lines[-1])
            return
        threads = [m.thread_id for m in view.shown() if m.thread_id and self.title in m.text]
        if letter.door == "topic" and threads and self.has_topics():
            self._send(letter, None, threads[-1])
            return
        notices = self._notices(view.shown())
        if letter.door == "notice" and (notices or self.now() < self._began_s + AGAIN_S):
            if notices:
                self._send(letter, notices[-1])
            return
        known = [m for m in view.shown() if m.message_id > self._forgotten_id]
        cards = [m for m in known if m.text.startswith(f"{self.title} ")]
        if not cards and self.is_deleted:
            self.letters.remove(letter)  # no list has a session that the desk has deleted: nobody can write to it
        elif not cards:
            self._look_for_card(view)
        elif letter.door == "armed" and self.may_arm:
            self._arm(letter, cards[-1], view)
        else:
            self._send(letter, cards[-1])

    def _look_for_card(self, view: View) -> None:
        """Tap the session on a list, turn the list over, or ask for one. After a jump of the clocks it is far below."""
        now_s = self.now()
        lists = [m for m in view.shown() if m.rows and m.text.startswith("Your sessions")]
        labels = [label for row in lists[-1].labels for label in row] if lists else []
        mine = [label for label in labels if self.title in label]
        if mine and (lists[-1].message_id, self.title) not in self._tapped and self._may_tap(lists[-1], self.title):
            self._asked_s = now_s
            self._tap(lists[-1], mine[0])
        elif not mine and "▶" in labels and now_s < self._asked_s + AGAIN_S:
            if self._may_tap(lists[-1], lists[-1].text):
                self._tap(lists[-1], "▶")
        elif now_s > self._asked_s + AGAIN_S:  # no list names it, or only one of a store that was removed
            self._asked_s = now_s
            self.phone.write("/sessions")

    def _arm(self, letter: Letter, card: ShownMessage, view: View) -> None:
        heads = (f"Type your prompt for {self.title} ", f"Reply to this with your prompt for {self.title}.")
        asks = [m for m in view.shown() if m.text.startswith(heads)]
        if asks and self._armed_s is not None:
            self._armed_s = None
            self._send(letter, asks[-1] if self.in_group else None, None if self.in_group else asks[-1].thread_id)
        elif self._armed_s is None or self.now() > self._armed_s + AGAIN_S:
            label = next((x for row in card.labels for x in row if WRITE in x), "")
            if self._armed_s is not None and not asks:
                self._armed_s, self._forgotten_id = None, card.message_id
            elif label and not asks:
                self._armed_s = self.now()
                self._tap(card, label)
            else:
                letter.door = "card"  # it was armed for an earlier letter, or its session is gone

    def _send(self, letter: Letter, reply_to: ShownMessage | None, thread_id: int | None = None) -> None:
        with contextlib.suppress(LookupError):  # it was deleted under the finger
            letter.ids = self._sent(letter, reply_to, thread_id)
            letter.written_s = self.now()
            self._next_s = self.now() + self.rng.uniform(*PACE_S)

    def _sent(self, letter: Letter, reply_to: ShownMessage | None, thread_id: int | None) -> tuple[int, ...]:
        if not letter.enclosed:
            return self.phone.write(letter.written, reply_to=reply_to, thread_id=thread_id)
        media = [one.media() for one in letter.enclosed[1:]]
        media.insert(0, letter.enclosed[0].media(letter.written))
        if not letter.in_pieces:
            return self.phone.share(media, reply_to=reply_to, thread_id=thread_id)
        album = str(self.rng.randrange(2**53))
        ids = self.phone.share(media[:1], reply_to=reply_to, thread_id=thread_id, album=album)
        for one in media[1:]:
            # At once, as with the parts of a long text.
            self.sleep(self.rng.uniform(0.0, BETWEEN_S))
            if self.between is not None:
                self.between()
            ids += self._sent_piece(one, reply_to, thread_id, album)
        return ids

    def _sent_piece(
        self, one: Mapping[str, Any], reply_to: ShownMessage | None, thread_id: int | None, album: str
    ) -> tuple[int, ...]:
        """Send a further piece of an album; it replies to nothing if what the first one replied to was deleted."""
        try:
            return self.phone.share([one], reply_to=reply_to, thread_id=thread_id, album=album)
        except LookupError:
            return self.phone.share([one], album=album)

    def _watch(self, letter: Letter, view: View) -> None:
        """Do with a letter what the person wants to do with it."""
        if letter.is_removed(view):
            self._watch_removed(letter, view)
            return
        lines = letter.lines(view)
        for message in view.shown():
            if message.reply_to not in letter.ids or message in lines:
                continue
            if letter.is_edited:
                letter.is_refused = letter.is_refused or message.text.startswith(TOO_LATE)
            elif UNSAVED in message.text or not lines:
                # It was not saved, or it replied to a copy that Telegram never confirmed, and the person heard so.
                letter.lost += letter.ids
                letter.ids, letter.door = (), "card"
                return
        if letter.wish == "doubled" and not letter.is_doubled:
            letter.is_doubled = True
            self.phone.repeat(letter.ids[0])
        if lines and not letter.end(view):
            self._act(letter, lines[-1])

    def _watch_removed(self, letter: Letter, view: View) -> None:
        """Let a letter that went with its topic be sent, no more."""
        for line in self._offers(view):
            self._once(line, line.labels[0][0])
        for line in self._orphans(view):
            if "Send it now?" in line.text:
                letter.is_hurried = True
                self._once(line, "▶️ Send now")

    def _act(self, letter: Letter, line: ShownMessage) -> None:
        labels = [label for row in line.labels for label in row]
        if line.text.startswith("What is this for?"):
            if self._waits_for_word(letter, line):
                return
            mine = [label for label in labels if self.title in label]
            if mine or self._may_tap(line, "Nothing"):
                self._tap(line, mine[0] if mine else "Nothing")
                self._forgotten_id = self._forgotten_id if mine else line.message_id
            return
        if "Send it now?" in line.text:
            letter.is_hurried = True
            self._once(line, "▶️ Send now")
        match letter.wish:
            case "edit" if not letter.is_edited and line.text.startswith(("⏳", "📥", "💾", "📨")):
                letter.is_edited = True
                self.phone.rewrite(letter.ids[0], letter.rewritten)
                if self.rng.random() < 0.5:
                    self.phone.repeat(letter.ids[0])
            case "cancel":
                self._once(line, "✖️ Cancel")
            case "now" if "▶️ Send now" in labels:
                letter.is_hurried = True
                self._once(line, "▶️ Send now")
            case "stop":
                self._once(line, "Yes, stop" if "Yes, stop" in labels else "⏹ Stop")

    def _waits_for_word(self, letter: Letter, line: ShownMessage) -> bool:
        """Tell whether another piece of an album may still be refused: the person would write the whole again."""
        is_offer = line.text.startswith("What is this for?")
        return is_offer and letter.in_pieces and self.now() < letter.written_s + AGAIN_S

    def _once(self, line: ShownMessage, label: str) -> None:
        """Tap this, if it is there, and again only after a while."""
        if any(label == one for row in line.labels for one in row) and self._may_tap(line, label):
            self._tap(line, label)

    def _may_tap(self, message: ShownMessage, label: str) -> bool:
        key, now_s = (message.message_id, label), self.now()
        if now_s < self._tapped.get(key, -AGAIN_S) + AGAIN_S:
            return False
        self._tapped[key] = now_s
        return True

    def _tap(self, message: ShownMessage, label: str) -> None:
        with contextlib.suppress(LookupError):  # it was redrawn under the finger
            self.phone.tap(message, label)


def invented(
    rng: Random, token: str, agent: Desk, phone: Speaking, *, topics_of_sessions: bool = False, **more: Any
) -> Talk:
    """Make a talk up."""
    return Talk(token, agent, phone, rng, letters.invented(rng, token, in_topics=topics_of_sessions), **more)

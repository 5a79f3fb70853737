"""The laws of prompts can fail, and the person who writes prompts does what a person would."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hermes.sandbox.phone_values import Button, ShownMessage
from tests.faults import prompt_laws, talking
from tests.faults.letters import Letter
from tests.faults.person import View
from tests.faults.round import Round
from tests.faults.talking import Talk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.sandbox.phone_values import Toast
    from tests.faults.letters import Door, Wish

WROTE = 50


@dataclass
class Desk:
    """An agent whose model got these texts."""

    texts: list[str] = field(default_factory=list)
    files: list[list[str]] = field(default_factory=list)
    """The digests of the files that came with each text."""
    turns: int = 1
    manner: str = "new"

    def do(self, act: str, **_: Any) -> Any:
        told = {"texts_of": self.texts, "files_of": self.files, "turns_of": self.turns, "is_active": False}
        return {**told, "listed": []}.get(act, "ses_1")


@dataclass
class Pen:
    """Notes what a person does."""

    did: list[str] = field(default_factory=list)
    albums: set[str] = field(default_factory=set)

    def tap(self, message: ShownMessage, label: str) -> object:
        self.did.append(f"tap {message.message_id} {label}")
        return None

    def write(
        self, text: str, *, reply_to: ShownMessage | None = None, thread_id: int | None = None
    ) -> tuple[int, ...]:
        place = f" in {thread_id}" if thread_id else ""
        self.did.append(f"write {text!r} to {reply_to.message_id if reply_to else None}{place}")
        return (WROTE,)

    def share(
        self,
        media: Sequence[Mapping[str, Any]],
        *,
        reply_to: ShownMessage | None = None,
        thread_id: int | None = None,
        album: str = "",
    ) -> tuple[int, ...]:
        captions = [one["caption"] for one in media]
        self.albums.add(album)
        self.did.append(f"share {captions} to {reply_to.message_id if reply_to else None}")
        return tuple(range(WROTE + len(self.did), WROTE + len(self.did) + len(media)))

    def rewrite(self, message_id: int, text: str) -> None:
        self.did.append(f"rewrite {message_id} {text!r}")

    def repeat(self, message_id: int) -> None:
        self.did.append(f"repeat {message_id}")


@dataclass
class Phone:
    """A phone that shows these messages."""

    shows: tuple[ShownMessage, ...]

    def messages(self, *, after: int) -> tuple[ShownMessage, ...]:
        return tuple(one for one in self.shows if one.message_id > after)

    def toasts(self, *, after_s: float) -> list[Toast]:
        del after_s
        return []

    def state(self) -> Any:
        return SimpleNamespace(pending_update_count=0)


class Watch:
    """A clock that goes on a little at each look."""

    now_s = 1000.0

    def __call__(self) -> float:
        self.now_s += 0.2
        return self.now_s


def shown(message_id: int, text: str, *labels: str, reply_to: int | None = None) -> ShownMessage:
    """Let the bot say something."""
    rows = tuple((Button(label),) for label in labels)
    return ShownMessage(1001, message_id, 4711, True, "text", 0, text, rows=rows, reply_to=reply_to)  # noqa: FBT003


def view(*messages: ShownMessage) -> View:
    """Show these messages."""
    return View(messages, {})


def a_talk(wish: Wish = "", door: Door = "card", **desk: Any) -> Talk:
    """One letter in one session."""
    return Talk("q1t", Desk(**desk), Pen(), Random(1), [Letter("q1tk", wish, door)], now=Watch(), session="ses_1")


FIRST = Letter("q1tk", "", "card").first
EDITED = Letter("q1tk", "", "card").edited


@pytest.mark.parametrize(
    ("end", "got", "edited", "broken"),
    [
        ("✅ Done · 2 min", [FIRST], False, ""),
        ("✅ Done", [EDITED], True, ""),
        ("✅ Done", [FIRST, FIRST], False, "2 times"),
        ("✅ Done", [], False, "0 times"),
        ("✅ Done", [FIRST], True, "and not"),
        ("✖️ Cancelled", [], False, ""),
        ("✖️ Cancelled", [FIRST], False, "1 times"),
        ("❌ Not sent: the session does not exist any more", [], False, ""),
        ("❌ Not sent: the session does not exist any more", [FIRST], False, "1 times"),
        ("❌ the agent did not answer it", [FIRST], False, ""),
        ("❌ the agent did not answer it", [FIRST, FIRST], False, "2 times"),
        ("⏹ Stopped\nproject", [FIRST], False, ""),
        ("⏹ Stopping …", [FIRST], False, "has no end"),
        ("📨 Sent", [FIRST], False, "has no end"),
    ],
)
def test_a_prompt_takes_effect_as_the_phone_says(end: str, got: list[str], *, edited: bool, broken: str) -> None:
    """Once if it is done, never if it was cancelled or not sent, at most once if it failed; and it ends."""
    talk = a_talk(texts=got)
    talk.letters[0].ids, talk.letters[0].is_edited = (WROTE,), edited
    said = prompt_laws.kept(talk, view(shown(7, end, reply_to=WROTE)), is_sure=True)
    assert len(said) == (1 if broken else 0), said
    assert broken in "".join(said)


@pytest.mark.parametrize(("lines", "kinds", "is_over"), [(1, (), True), (2, (), False), (2, ("telegram cut",), True)])
def test_a_round_waits_until_the_first_line_is_gone(lines: int, kinds: tuple[str, ...], *, is_over: bool) -> None:
    """A prompt that failed has a new line before that; a copy that Telegram never confirmed stays."""
    talk = a_talk(texts=[FIRST])
    talk.letters[0].ids = (WROTE,)
    phone = Phone((shown(8, "❌ the provider says no", reply_to=WROTE), shown(7, "📨 Sent", reply_to=WROTE))[:lines])
    world: Any = SimpleNamespace(stage=SimpleNamespace(phone=phone))
    assert Round(world, 1, 1, kinds=list(kinds), talks=[talk])._all_said() is is_over


def test_a_line_that_went_with_its_topic_needs_a_notice_of_the_turn() -> None:
    """Its turn was over already, so that no line comes again."""
    talk = a_talk(texts=[FIRST])
    talk.letters[0].ids = (WROTE,)
    text, line = shown(WROTE, FIRST), shown(7, "▶️ Working", reply_to=WROTE)
    gone, notice = {WROTE: text, 7: line}, shown(WROTE + 1, f"✅ {talk.title} is done · 3 s")
    earlier = shown(WROTE - 1, notice.text)
    assert "has no end" in prompt_laws.kept(talk, View((earlier,), {}, gone), is_sure=True)[0]
    assert not prompt_laws.kept(talk, View((notice,), {}, gone), is_sure=True)
    talk.agent.texts.clear()  # type: ignore[attr-defined]
    assert "has no end" in prompt_laws.kept(talk, View((notice,), {}, gone), is_sure=True)[0]


def test_prompts_keep_their_order() -> None:
    """But for one that was hurried, or lost and written once more."""
    talk = a_talk(texts=["b said", "a said"])
    talk.letters = [Letter("a", "", "card", (1,)), Letter("b", "", "card", (2,))]
    done = view(shown(7, "✅ Done", reply_to=1), shown(8, "✅ Done", reply_to=2))
    assert any("in the order" in one for one in prompt_laws.kept(talk, done, is_sure=False))
    talk.letters[1].is_hurried = True
    assert not any("in the order" in one for one in prompt_laws.kept(talk, done, is_sure=False))
    talk.letters[1].is_hurried = False
    talk.letters[0].lost = [3]
    assert not any("in the order" in one for one in prompt_laws.kept(talk, done, is_sure=False))


def test_a_turn_that_the_phone_began_is_told_once() -> None:
    """Not twice, if Telegram confirmed every message; and not never, unless another prompt went on with it."""
    talk = a_talk(texts=[FIRST])
    talk.letters[0].ids = (WROTE,)
    line, notice = shown(7, "✅ Done", reply_to=WROTE), shown(8, "✅ Talk q1t is done · 3 s")
    assert not prompt_laws.told(talk, view(line, notice), is_sure=True)
    assert prompt_laws.told(talk, view(line, notice, shown(9, notice.text)), is_sure=True)
    assert not prompt_laws.told(talk, view(line, notice, shown(9, notice.text)), is_sure=False)
    assert prompt_laws.told(talk, view(line), is_sure=False)
    stopped = a_talk(texts=[FIRST, "next said"])
    stopped.letters = [*talk.letters, Letter("next", "stop", "line", (2,))]
    assert not prompt_laws.told(stopped, view(line, shown(9, "⏹ Stopped", reply_to=2)), is_sure=True)


def test_a_person_asks_for_the_list_finds_the_card_and_replies() -> None:
    """Turning the list over if the session is not on its first page."""
    talk = a_talk()
    talk.step(view())
    talk.step(view(shown(1, "Your sessions. Tap one", "Another", "▶")))
    talk.step(view(shown(1, "Your sessions. Tap one", "Talk q1t", "◀")))
    talk.step(view(shown(2, "Talk q1t 💤 waits for you", talking.WRITE)))
    assert isinstance(talk.phone, Pen)
    assert talk.phone.did == ["write '/sessions' to None", "tap 1 ▶", "tap 1 Talk q1t", f"write {FIRST!r} to 2"]


def test_a_person_asks_again_if_a_list_brings_no_card() -> None:
    """Hermes has lost the store in which the sessions of that list were."""
    talk = a_talk()
    dead = view(shown(1, "Your sessions. Tap one", "Talk q1t"))
    for _ in range(40):
        talk.step(dead)
    assert isinstance(talk.phone, Pen)
    assert talk.phone.did[:2] == ["tap 1 Talk q1t", "write '/sessions' to None"]
    talk.step(view(shown(2, "Your sessions. Tap one", "Talk q1t")))
    assert talk.phone.did[-1] == "tap 2 Talk q1t"


@pytest.mark.parametrize(
    ("wish", "line", "labels", "did"),
    [
        ("cancel", "⏳ Waits", ("✖️ Cancel",), "tap 7 ✖️ Cancel"),
        ("now", "⏳ Waits", ("▶️ Send now", "✖️ Cancel"), "tap 7 ▶️ Send now"),
        ("stop", "▶️ Working", ("⏹ Stop",), "tap 7 ⏹ Stop"),
        ("stop", "Stop the agent?", ("Yes, stop", "Back"), "tap 7 Yes, stop"),
        ("edit", "⏳ Waits", (), f"rewrite {WROTE} {EDITED!r}"),
        ("doubled", "⏳ Waits", (), f"repeat {WROTE}"),
        ("", "⏳ Not sent yet, for 2 h. Send it now?", ("▶️ Send now",), "tap 7 ▶️ Send now"),
        ("", "What is this for?", ("Talk q1t", "Nothing"), "tap 7 Talk q1t"),
        ("", "What is this for?", ("Talk q2t", "Nothing"), "tap 7 Nothing"),
    ],
)
def test_a_person_does_what_was_wished(wish: Wish, line: str, labels: tuple[str, ...], did: str) -> None:
    """On the line below the text."""
    talk = a_talk(wish)
    talk.letters[0].ids = (WROTE,)
    talk.step(view(shown(7, line, *labels, reply_to=WROTE)))
    assert isinstance(talk.phone, Pen)
    assert talk.phone.did[0] == did


def test_a_text_that_was_not_saved_is_written_again() -> None:
    """The person heard so, by a reply."""
    talk = a_talk()
    talk.letters[0].ids = (WROTE,)
    talk.step(view(shown(7, "⚠️ I could not save that (disk full)", reply_to=WROTE)))
    (letter,) = talk.letters
    assert (letter.ids, letter.lost) == ((), [WROTE])


def test_a_person_hears_of_each_piece_of_an_album_before_they_say_what_it_is_for() -> None:
    """A piece that was not saved makes them write the whole again: the other piece must not be sent before.

    Nor do they write anything else meanwhile, which would come first.
    """
    now_s = 100.0
    talk = a_talk()
    talk.now = lambda: now_s
    talk.letters[0].ids, talk.letters[0].in_pieces, talk.letters[0].written_s = (WROTE, WROTE + 1), True, now_s
    talk.letters.append(Letter("q1tl", "", "card"))
    asked = shown(7, "What is this for?", "Talk q1t", "Nothing", reply_to=WROTE)
    card = shown(3, "Talk q1t 💤 waits for you")
    talk.step(view(card, asked))
    assert isinstance(talk.phone, Pen)
    assert talk.phone.did == []
    now_s += 3
    talk.step(view(card, asked))
    assert talk.phone.did[0] == "tap 7 Talk q1t"


def test_a_card_that_nobody_knows_any_more_is_looked_for_again() -> None:
    """It is of a store that was removed: a reply to it would be asked about for ever."""
    talk = a_talk()
    talk.letters[0].ids = (WROTE,)
    card = shown(3, "Talk q1t 💤 waits for you")
    talk.step(view(card, shown(7, "What is this for?", "Talk q2t", "Nothing", reply_to=WROTE)))
    talk.step(view(card, shown(8, "All right, I send it to nobody", reply_to=WROTE)))
    assert isinstance(talk.phone, Pen)
    for _ in range(20):
        talk.step(view(card))
    assert set(talk.phone.did[1:]) == {"write '/sessions' to None"}
    for _ in range(20):
        talk.step(view(card, shown(9, "Talk q1t 💤 waits for you")))
    assert talk.phone.did[-1] == f"write {FIRST!r} to 9"


def test_a_card_on_which_a_tap_brings_nothing_is_looked_for_again() -> None:
    """It is of a store that was removed, too."""
    talk = a_talk(door="armed")
    for _ in range(60):
        talk.step(view(shown(3, "Talk q1t 💤 waits for you", "✏️ Write a prompt")))
    assert isinstance(talk.phone, Pen)
    assert set(talk.phone.did) == {"tap 3 ✏️ Write a prompt", "write '/sessions' to None"}
    assert talk.phone.did.count("tap 3 ✏️ Write a prompt") == 1


def test_a_text_to_which_nobody_says_a_word_is_written_again() -> None:
    """Under another name, so that each is judged by itself."""
    talk = a_talk()
    talk.letters[0].ids = (WROTE,)
    for _ in range(100):
        talk.step(view())
    assert talk.letters[0].is_unheard
    assert len(talk.letters) == 2

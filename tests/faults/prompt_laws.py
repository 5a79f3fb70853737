"""What must be true of the prompts of a talk. Each law returns what violates it, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults import enclosures
from tests.faults.person import UNSAVED

if TYPE_CHECKING:
    from tests.faults.letters import Letter
    from tests.faults.person import View
    from tests.faults.talking import Talk


def kept(talk: Talk, view: View, *, is_sure: bool) -> list[str]:
    """Each letter ends, as the phone says, and takes effect as the phone says.

    They come in order, but for those that somebody hurried, or wrote once more because the first text was lost.
    """
    said: list[str] = []
    for letter in talk.letters:
        said += _kept(talk, letter, view, is_sure=is_sure)
    if any(letter.enclosed for letter in talk.letters):
        said += _with_files(talk)
    texts = talk.texts()
    order = [one.token for one in talk.letters if not one.is_hurried and not one.lost]
    came = [token for text in texts for token in order if text.startswith(f"{token} ")]
    if came != sorted(came, key=order.index):
        said.append(f"{talk.title}: its prompts came in the order {came}")
    return said


def _with_files(talk: Talk) -> list[str]:
    came, said = talk.files(), list[str]()
    for letter in talk.letters:
        about = f"{letter.token} ({letter.wish or 'plain'}, {letter.door})"
        mine = f"{letter.token} "
        said += enclosures.complete(about, letter.enclosed, [files for text, files in came if text.startswith(mine)])
        said += enclosures.strays(about, letter.enclosed, [files for text, files in came if not text.startswith(mine)])
    return said


def _kept(talk: Talk, letter: Letter, view: View, *, is_sure: bool) -> list[str]:
    end, got = talk.end_of(letter, view), talk.got(letter)
    about = f"{letter.token} ({letter.wish or 'plain'}, {letter.door})"
    if not letter.ids:
        return [f"{about} could not be written"]
    lines = letter.lines(view)
    told = [f"{m.message_id} {m.text[:80]!r}" for m in lines]
    if letter.is_unheard and not lines and not got and (not is_sure or _is_offered(letter, view)):
        return []
    if letter.is_removed(view) and not got and _was_told_unsaved(letter, view):
        return []
    if not end:
        told += [f"{m.message_id} {m.text[:80]!r}" for m in view.shown() if m.reply_to in letter.ids]
        return [f"{about} has no end on the phone: {told}; the model got it {len(got)} times"]
    if letter.is_removed(view):
        wrong = [text for text in got if text not in {letter.wanted, letter.first, letter.edited}]
        return [f"{about}, removed with its topic, came to {got}"] if wrong or len(got) > 1 else []
    said = []
    if is_sure and len([m for m in lines if m.reply_to in letter.ids]) > 1:
        said.append(f"{about} has several lines: {told}")
    allowed = [letter.wanted] if is_sure else [letter.wanted, letter.first]
    said += [
        f"{about}: the model got {text[:80]!r} and not {letter.wanted[:80]!r}" for text in got if text not in allowed
    ]
    least, most = {"✅": (1, 1), "✖": (0, 0), "⏹": (0, 1)}.get(end[0], (0, 0 if end.startswith("❌ Not sent") else 1))
    if not least <= len(got) <= most:
        said.append(f"{about} went to the model {len(got)} times, the phone says {end[:80]!r}")
    return said


def _was_told_unsaved(letter: Letter, view: View) -> bool:
    """Tell whether the person has read that a text was not saved; after its topic was deleted that replies to none."""
    later = [m for m in view.told() if m.message_id > max(letter.ids)]
    return any(UNSAVED in m.text and m.reply_to in {None, *letter.ids} for m in later)


def _is_offered(letter: Letter, view: View) -> bool:
    """Tell whether a text was offered as an answer: the line that it replied to had just made way for another."""
    shown = [m for m in view.messages if m.from_bot]
    return any(letter.token in str(version) for message in shown for version in message.versions)


def told(talk: Talk, view: View, *, is_sure: bool) -> list[str]:
    """The end of the last turn, if a prompt from the phone began it, is told; no end is told twice.

    A prompt that is done ends no turn if its agent had the next one already.
    """
    turns = talk.turns()
    notices = [m for m in view.told() if m.text.startswith(f"✅ {talk.title} is done")]
    if turns is None:
        return []
    came = [letter for text in talk.texts() for letter in talk.letters if text.startswith(f"{letter.token} ")]
    if is_sure and len(notices) > turns:
        return [f"{talk.title}: {turns} turns ended by themselves, and {len(notices)} were told"]
    if came and talk.end_of(came[-1], view).startswith("✅ Done") and not notices:
        return [f"{talk.title}: its last prompt is done, {turns} turns ended by themselves, and no notice tells of it"]
    return []

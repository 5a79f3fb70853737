"""A person locks the phone while a prompt waits; somebody unlocks it on the machine later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.faults.asks import token
from tests.faults.letters import Letter
from tests.faults.person import View
from tests.faults.talking import LOCKED, Talk

if TYPE_CHECKING:
    from tests.faults.round import Round

SEEN_S: Final = 25.0
"""What the person waits for is on the phone within this, on the wall."""
HELD_S: Final = 1.5
"""So long the session is idle, on the wall, and the prompt stays where it is."""


def phone_locked(play: Round) -> None:
    """What was queued before the lock leaves after it, once; what is written meanwhile goes nowhere.

    If the machine's clock is far ahead, Hermes asks first, and the person says "Send now".
    """
    phone = play.world.stage.phone
    letter = Letter(token(play.number, "lockk"), "", "card")
    talk = Talk(token(play.number, "lock"), play.agent(), phone, play.rng, [letter], in_group=play.world.is_group)
    talk.begin(keeps_busy=True)
    play.talks.append(talk)
    if not play.meanwhile(lambda: letter.is_hurried or _says(play, letter, "⏳"), SEEN_S):
        play.violations.append(f"{letter.token} does not wait for the turn of its session")
        talk.let_go()
        return
    (asked,) = phone.write("/lock")
    play.meanwhile(lambda: _is_told(play, asked), SEEN_S)
    (late,) = phone.write(f"{letter.token} while it is locked", reply_to=letter.lines(View.of(phone))[-1])
    talk.let_go()
    if not play.meanwhile(lambda: _is_told(play, late), SEEN_S):
        play.violations.append(f"nobody was told that {letter.token} was written to a locked phone")
    play.meanwhile(lambda: False, HELD_S)
    if talk.got(letter) and not letter.is_hurried:
        play.violations.append(f"{letter.token} went to the agent although the phone is locked: {talk.got(letter)}")
    unlocking = play.world.stage.run("unlock", "--config", str(play.world.stage.config))
    play.meanwhile(lambda: not unlocking.alive(), SEEN_S)
    unlocking.close()


def _says(play: Round, letter: Letter, head: str) -> bool:
    return any(line.text.startswith(head) for line in letter.lines(View.of(play.world.stage.phone)))


def _is_told(play: Round, message_id: int) -> bool:
    shown = View.of(play.world.stage.phone).shown()
    return any(m.reply_to == message_id and m.text.startswith(LOCKED) for m in shown)

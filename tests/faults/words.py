"""What people write where nobody asked for it: no text becomes an answer that was not meant as one."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Final

from tests.faults import enclosures
from tests.faults.asks import token
from tests.faults.letters import Letter
from tests.faults.person import View
from tests.faults.talking import Talk
from tests.faults.world import OTHER_BOT
from tests.scenes.stage import ANN, BOB

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.asks import Ask, Route
    from tests.faults.round import Round

    Lift = Callable[[], None]

CODE: Final = re.compile(r"#[a-z][0-9a-z]{1,7}$")
ABSENT_S: Final = 3.0
DEAF_S: Final = 1.5


def plain_texts(play: Round) -> None:
    """Exact labels, numbers, a "Yes": before the questions, between them, and after."""
    for person in play.persons:
        for _ in range(play.rng.randint(1, 2)):
            text = play.rng.choice([_unmeant(person.ask), "1", "Yes", "/open"])
            play.soon(play.rng.uniform(0.0, 1.0), lambda text=text: _say(play, text))  # type: ignore[misc]


def text_before_its_question(play: Round) -> Lift:
    """Hermes hears nothing for a while; somebody writes something; then comes a question that it would answer."""
    phone, lift = play.world.stage.phone, play.world.start
    route: Route = play.rng.choice(["server", "terminal"])
    if play.rng.random() < 0.5:
        play.world.signal_listeners(signal.SIGKILL)
    else:
        # The poll that is held ends with the odd update; the one after it brings nothing for a while.
        phone.fault("getUpdates", "hang", hang_s=DEAF_S, times=1)
        phone.inject({})
        play.meanwhile(lambda: not phone.state().pending_update_count, DEAF_S / 2)
        lift = phone.clear_faults
    _say(play, f"{token(play.number, 'early')}1a")
    play.ask_more("early", "single", route)
    return lift


def another_bots_code(play: Round) -> None:
    """Another bot's message ends as Hermes' messages do; what people say to that bot is for that bot."""
    phone = play.world.stage.phone

    def speak() -> None:
        view = View.of(phone)
        for person in play.persons:
            codes = [found[0] for message in view.about(person.ask) if (found := CODE.search(message.text))]
            if codes:
                (said,) = phone.write(f"Build 7 is ready.\n{codes[-1]}", user=OTHER_BOT.id)
                text = play.rng.choice([_unmeant(person.ask), f"{person.ask.token} to another bot"])
                phone.write(text, reply_to=said, user=play.rng.choice([ANN.id, BOB.id]))
                return

    for at_s in (0.3, 0.7, 1.1):
        play.soon(at_s * play.rng.uniform(0.5, 1.5), speak)


def long_text_cut_in_two(play: Round) -> None:
    """A text of two messages, between which Hermes or Telegram goes away for a while: it is delivered whole."""
    person = play.ask_more("long", "reply", "server", long=play.rng.randint(4500, 7500))
    person.between = lambda: _go_away(play)


def album_in_pieces(play: Round) -> None:
    """An album, between whose pieces Hermes or Telegram goes away for a while: it is one prompt."""
    phone, rng = play.world.stage.phone, play.rng
    name = token(play.number, "albk")
    letter = Letter(name, "", "card", enclosed=enclosures.album(rng, name), in_pieces=True)
    talk = Talk(token(play.number, "alb"), play.agent(), phone, rng, [letter], in_group=play.world.is_group)
    talk.between = lambda: _go_away(play)
    talk.begin()
    play.talks.append(talk)


def _go_away(play: Round) -> None:
    """Let Hermes, or Telegram, go away for a while."""
    if play.rng.random() < 0.7:
        play.world.signal_listeners(signal.SIGKILL)
        play.rests_for(play.rng.uniform(0.2, ABSENT_S))
    else:
        play.world.stage.phone.fault("getUpdates", "error", status=502, times=play.rng.randint(1, 4))


def away_and_back(play: Round) -> None:
    """The person leaves the computer, and may come back to it."""
    for text in ("/away", "/desk", "/away")[: play.rng.randint(1, 3)]:
        play.soon(play.rng.uniform(0.0, play.begins_s), lambda text=text: _say(play, text))  # type: ignore[misc]


def _unmeant(ask: Ask) -> str:
    """Return a label that the ask's person would never choose."""
    return ask.label(1, "a") if ask.shape != "multiple" else ask.label(1, "b")


def _say(play: Round, text: str) -> None:
    user = play.rng.choice([ANN.id, BOB.id]) if play.world.is_group else ANN.id
    play.world.stage.phone.write(text, user=user)

"""What the hook makes of oh-my-pi's payloads before anything else reads them."""

from __future__ import annotations

import json
from typing import Any

from hermes.agents.oh_my_pi.shape import SHAPE
from hermes.hook.run import _payload

Json = dict[str, Any]
PLACE = {"session": "s1", "directory": "/home/dev/shop-api", "title": ""}


def kept(payload: Json) -> Json:
    """What the hook keeps of a payload."""
    return _payload(SHAPE, json.dumps(payload).encode())


def test_questions_are_asked_with_an_id_of_their_own() -> None:
    """The hook makes it, and waits for the answer beside the dialog."""
    payload = {"questions": [], "context": "", **PLACE}
    found = kept(payload | {"id": "of another ask", "more": 1})
    assert found.pop("id") not in {"", "of another ask"}
    assert found == payload
    assert SHAPE.asks(found)
    assert SHAPE.has_desk(found)


def test_the_end_of_a_turn_is_news() -> None:
    """Whole, and without an id: nobody waits for an answer."""
    payload = {"turn": {"id": "1", "ended": 2}, **PLACE}
    assert kept(payload | {"id": "of an ask"}) == payload
    assert not SHAPE.asks(payload)

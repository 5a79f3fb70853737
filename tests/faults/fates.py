"""What the desk, or the agent itself, does with an ask: it answers it, dismisses it, or ends what asked it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.asks import Ask
    from tests.faults.world import World


def befall(world: World, ask: Ask) -> None:
    """Let an ask have its fate, and note in it what ended it; nothing happens where that is impossible."""
    if not ask.request_id:
        return
    with contextlib.suppress(LookupError):
        if ask.route == "terminal":
            _at_terminal(world, ask)
        elif ask.route == "program":
            if world.programs.kill(ask.request_id):
                ask.ended_by.add(ask.fate)
        else:
            _at_server(world, ask)


def _at_terminal(world: World, ask: Ask) -> None:
    match ask.fate:
        case "desk" | "dismissed":
            ended = world.terminal.settle(ask.request_id, ask.at_desk if ask.fate == "desk" else None)
        case _:
            ended = world.terminal.abort(ask.request_id)
    if ended:
        ask.ended_by.add(ask.fate)


def _at_server(world: World, ask: Ask) -> None:
    agent = world.agents[ask.agent]
    match ask.fate:
        case "desk" if ask.is_permission:
            agent.do("permit", request_id=ask.request_id, reply=ask.at_desk[0][0])
        case "dismissed" if ask.is_permission:
            agent.do("permit", request_id=ask.request_id, reply="reject")
        case "desk":
            agent.do("answer", request_id=ask.request_id, answers=ask.at_desk)
        case "dismissed":
            agent.do("dismiss", request_id=ask.request_id)
        case "aborted":
            agent.do("abort", session=ask.session)
        case _:
            agent.do("delete", session=ask.session)
    ask.ended_by.add(ask.fate)

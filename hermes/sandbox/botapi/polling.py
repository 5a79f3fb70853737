"""getUpdates: the long poll, and the conflict between two of them.

Facts from Client.cpp: only a poll that has to wait ends the one that already waits (the later poll goes on, the
earlier one gets 409); a negative offset is applied once, when the request comes; with a webhook, getUpdates fails.
"""

import time

from hermes.sandbox.botapi.updates import MAX_LIMIT, MAX_TIMEOUT_S, Update
from hermes.sandbox.botapi.wire import ApiError, Params, refused
from hermes.sandbox.botapi.world import World

OTHER_POLL = "terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_SET = "terminated by setWebhook request"
WEBHOOK_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"


async def get_updates(world: World, params: Params) -> list[Update]:
    """Return updates from the offset on; wait up to `timeout` (at most 50 s). Raise ApiError 409 on a conflict."""
    limit = params.clamped("limit", MAX_LIMIT, 1, MAX_LIMIT)
    deadline = time.monotonic() + params.clamped("timeout", 0, 0, MAX_TIMEOUT_S) / world.pace
    offset = params.integer("offset")
    with world.lock:
        if world.webhook:
            raise _conflict(WEBHOOK_ACTIVE)
        _remember_allowed(world, params)
        updates = world.updates.fetch(offset, limit, now=world.now())
    if updates or deadline <= time.monotonic():
        return updates
    return await _held(world, max(offset, 0), limit, deadline)


async def _held(world: World, offset: int, limit: int, deadline: float) -> list[Update]:
    with world.lock:
        world.polls += 1
        world.held += 1
        turn = world.polls
    world.bump()
    try:
        while True:
            with world.lock:
                version = world.version
                _check_turn(world, turn)
                updates = world.updates.fetch(offset, limit, now=world.now())
            left = deadline - time.monotonic()
            if updates or left <= 0 or world.closed or world.faults.await_poll():
                return updates
            await world.changed(version, left)
    finally:
        with world.lock:
            world.held -= 1
        world.bump()


def _check_turn(world: World, turn: int) -> None:
    if world.webhook:
        raise _conflict(WEBHOOK_SET)
    if world.polls != turn:
        raise _conflict(OTHER_POLL)


def _conflict(message: str) -> ApiError:
    return ApiError(409, f"Conflict: {message}")


def _remember_allowed(world: World, params: Params) -> None:
    if "allowed_updates" not in params.values:
        return
    kinds = params.structure("allowed_updates", "Can't parse allowed_updates JSON object")
    if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
        world.updates.allow(kinds)
    elif kinds is not None:
        raise refused("Expected an Array of String")

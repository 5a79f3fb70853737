"""Moves what is open between the folder of a machine and the database that it shares with others.

Each thing is written to the target, and only then removed from the source. So after a crash it is in one of them or in
both, and the next move completes it. Closed asks stay where they are.

A machine that had a bot of its own gives it up for the one of the database. A bot cannot edit the messages of another
one: the asks are posted again, and the records, which are about such messages, stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hermes.errors import Conflict, Missing
from hermes.model.entry import Entry
from hermes.model.notice import Notice
from hermes.model.prompt import Prompt
from hermes.storage.store import Kind, PromptFiles, R, RecordStore, Store, Survey


@dataclass(slots=True)
class Moved:
    """The result of a move.

    - `moved`: how many things of each kind were moved.
    - `of_another_bot`: how many records of each kind stay in the source, because another bot has sent their messages.
    - `left`: a sentence for each ask that could not be moved.
    - `is_locked`: the phone is locked in the target, as it was in the source.
    """

    moved: Counter[Kind] = field(default_factory=Counter)
    of_another_bot: Counter[Kind] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    is_locked: bool = False


async def move(source: Store, target: Store, bot_id: int | None) -> Moved:
    """Move what is open for this machine, and return what was moved.

    One of the stores is the folder, whose listener's lock this process holds; the other one is the database, which it
    has joined. `bot_id` is None on a machine without a bot. From a database that must be the phone side: nothing else
    changes the asks meanwhile.

    Raises StoreError: the rest was not moved.
    """
    result, machine = Moved(), source.home.machine()
    ahead_s = None
    if bot_id is not None:
        result.is_locked = await _lock_too(source, target)
        ahead_s = await _bring_chat(source, target, bot_id)
    survey = await source.survey()
    result.left += _unread(survey)
    for entry in survey.entries:
        if entry.ask.source.machine == machine:
            await _move_ask(entry, source, target, ahead_s)
            result.moved["entries"] += 1
        elif not source.is_shared:
            result.left.append(f"the question {entry.id} is of a machine with another id")
    if ahead_s is None:
        result.of_another_bot.update(await _records(source, machine))
    else:
        result.moved.update(await _records(source, machine, target))
    return result


async def _lock_too(source: Store, target: Store) -> bool:
    """Lock the phone in the target if it is locked in the source, and tell whether it is. A database stays locked."""
    is_locked = await source.is_phone_locked()
    if is_locked:
        await target.lock_phone()
        if not source.is_shared:
            await source.unlock_phone()
    return is_locked


async def _bring_chat(source: Store, target: Store, bot_id: int) -> float | None:
    """Give the target the memory of the chat, unless another process uses its own, or has polled later by it.

    Return by how many seconds the answerable clock of the target is ahead, or None if the bot has never polled for the
    source: then another bot has sent its messages. The memory also stays in the source: the next move back compares
    the polls again, and an old offset does no harm.
    """
    ours, theirs = await source.load_chat(bot_id), await target.load_chat(bot_id)
    if ours.last_poll_s is None:
        return None
    if target.is_phone() and ours.last_poll_s > (theirs.last_poll_s or 0.0):
        await target.save_chat(ours)
        theirs = ours
    return theirs.answerable_s - ours.answerable_s


async def _move_ask(entry: Entry, source: Store, target: Store, ahead_s: float | None) -> None:
    """Move an ask. Its times are by a clock that is so far ahead in the target; None: another bot has posted it."""
    wanted = entry.unposted() if ahead_s is None else _by_clock(entry, ahead_s)
    with suppress(Missing):  # an earlier move brought it there, and it was closed meanwhile
        try:
            await target.keep(wanted)
        except Conflict:
            await target.keep(replace(wanted, code=await target.new_code(())))
    await source.forget(entry.id)


def _by_clock(entry: Entry, ahead_s: float) -> Entry:
    times = {name: getattr(entry.timing, name) for name in ("set_at", "expires_at", "away_at")}
    later = {name: at + ahead_s for name, at in times.items() if at is not None}
    return replace(entry, timing=replace(entry.timing, **later))


async def _records(source: Store, machine: str, target: Store | None = None) -> dict[Kind, int]:
    """Move the records of this machine, or only look; return how many there are of each kind."""

    def ours(notice: Notice) -> Notice:
        return replace(notice, machine=machine if target is not None and target.is_shared else "")

    async def files(prompt: Prompt) -> None:
        if target is not None:
            await _move_files(prompt, source.files, target.files)

    return {
        "notices": await _each(source.notices, machine, None if target is None else target.notices, ours),
        "prompts": await _each(source.prompts, machine, None if target is None else target.prompts, along=files),
        "cards": await _each(source.cards, machine, None if target is None else target.cards),
    }


async def _each(
    source: RecordStore[R],
    machine: str,
    target: RecordStore[R] | None,
    fn: Callable[[R], R] = lambda record: record,
    along: Callable[[R], Awaitable[None]] | None = None,
) -> int:
    records = [record for record in await source.all() if record.machine in {machine, ""}]
    if target is not None:
        for record in records:
            await target.keep(fn(record))
            if along is not None:
                await along(record)
            await source.forget(record.id)
    return len(records)


async def _move_files(prompt: Prompt, source: PromptFiles, target: PromptFiles) -> None:
    for part in prompt.parts:
        if part.file is not None and part.file.is_here:
            with suppress(Missing):  # an earlier move brought it there, or the prompt is over
                await target.write(prompt.id, part.message_id, await source.read(prompt.id, part.message_id))
    await source.remove(prompt.id)


def _unread(survey: Survey) -> Iterator[str]:
    """Yield a sentence for each ask that cannot be read."""
    for path, why in survey.damaged:
        yield f"{path} is damaged: {why}"
    for path in survey.too_new:
        yield f"{path} was written by a newer Hermes; upgrade this one"
    for _, why in survey.unread:
        yield why

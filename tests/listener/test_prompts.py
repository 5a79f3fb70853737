"""All prompts that are known: whose turn it is in a session, and who wakes whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.core import prompts
from hermes.core.prompts import STARTS_S
from hermes.listener.prompts import Prompts
from hermes.listener.wakes import Wakes
from hermes.model.ask import Source
from hermes.model.files import File
from hermes.model.notice import Turn
from hermes.model.prompt import Prompt, PromptAbilities, Sight, Target
from hermes.model.prompt_events import Addressed, Agreed, Fetched, Heard, Hurried, Seen, Trying, Withdrawn
from hermes.model.state import Part
from tests.asks import ANN, CHAT_ID
from tests.stores import a_store

if TYPE_CHECKING:
    from hermes.model.prompt_events import PromptEvent

SOURCE = Source("opencode", "laptop", "ses_1", "/home/dev/shop-api")
TARGET = Target(SOURCE, "OpenCode", PromptAbilities(files=("picture",)))
OTHER = replace(TARGET, source=replace(SOURCE, session_id="ses_2"))
NEW = replace(TARGET, source=replace(SOURCE, session_id=""))


class House:
    """A store, its clock, and the prompts in it."""

    def __init__(self, root: Path) -> None:
        self.now_s = 1000.0
        self.store = a_store(root, now=lambda: self.now_s)
        self.wakes = Wakes()
        self.prompts = Prompts(self.store.prompts, self.wakes, now=self.store.now)

    async def write(
        self, name: str, *, target: Target = TARGET, at_s: float | None = None, file: File | None = None
    ) -> Prompt:
        """Let the person write a prompt, now or at that time."""
        asked_s = self.now_s if at_s is None else at_s
        fresh = Prompt(f"prompt_{name}", ANN, CHAT_ID, (Part(ord(name), "fix it", file=file),), asked_s)
        fresh = prompts.step(fresh, Addressed(asked_s, target))
        return await self.prompts.make(lambda one: one.id == fresh.id, lambda: fresh, lambda one: one)

    async def after(self, prompt: Prompt, *events: PromptEvent) -> Prompt:
        """Apply these events."""
        for event in events:
            after = await self.prompts.apply(prompt.id, event)
            assert after is not None
            prompt = after
        return prompt

    def woken(self) -> set[str]:
        """The prompts that the agent side looks at."""
        unread, self.wakes._unread = list(self.wakes._unread), {}
        return {one.entry_id for one in unread if one.worker == "prompt"}


@pytest.fixture
async def house(tmp_path: Path) -> House:
    """A store that is open."""
    made = House(tmp_path / "store")
    await made.store.open()
    await made.prompts.open()
    return made


async def test_prompts_of_a_session_go_in_the_order_in_which_they_were_written(house: House) -> None:
    """Also if they are read in another order, or were written at the same time. Each session has its own order."""
    second = await house.write("b", at_s=1000.0)
    third = await house.write("c", at_s=1000.0)
    first = await house.write("a", at_s=999.0)
    other = await house.write("d", target=OTHER, at_s=1001.0)
    assert [house.prompts.is_next(one) for one in (first, second, third, other)] == [True, False, False, True]
    again = House(house.store.home.root)
    await again.prompts.open()
    assert [again.prompts.is_next(one) for one in (first, second, third, other)] == [True, False, False, True]


async def test_a_voice_note_that_waits_for_a_yes_is_passed_over(house: House) -> None:
    """It holds up nobody, and comes when the person agrees. A file that is not here yet keeps its place."""
    sound = File("f1", "voice note", "audio/ogg", 1000, is_voice=True)
    note, picture = await house.write("a", file=sound), await house.write("b", file=File("f2", "a.jpg", "image/jpeg"))
    third = await house.write("c", at_s=1001.0)
    note = await house.after(note, Heard(ord("a"), "Fix it"))
    assert [house.prompts.is_next(one) for one in (picture, third)] == [True, False]
    note = await house.after(note, Agreed(1002.0))
    fourth = await house.write("d", at_s=house.prompts.written_s())
    picture = await house.after(picture, Fetched(ord("b"), "image/jpeg", 5))
    for one in (picture, third, note, fourth):
        known = [house.prompts.get(name) for name in (third.id, note.id, fourth.id, picture.id)]
        waiting = [each for each in known if each is not None and not prompts.is_over(each)]
        assert [each.id for each in waiting if house.prompts.is_next(each)] == [one.id]
        await house.after(one, Withdrawn())


async def test_prompts_keep_their_order_if_the_clock_is_set_back(house: House) -> None:
    """The one that is written later counts as later; and once nothing waits, as written at its own time."""
    first = await house.write("b")
    house.now_s -= 3600.0
    second = await house.write("a", at_s=house.prompts.written_s())
    assert [house.prompts.is_next(one) for one in (first, second)] == [True, False]
    for one in (first, second):
        await house.after(one, Withdrawn())
    assert house.prompts.written_s() == house.now_s


async def test_sessions_that_are_still_to_be_made_have_no_order(house: House) -> None:
    """Each is a session of its own. One for which nobody has chosen a session waits for nothing."""
    made = [await house.write(name, target=NEW) for name in "ab"]
    assert all(house.prompts.is_next(one) for one in made)
    assert house.prompts.is_next(replace(made[0], target=None))


async def test_the_end_of_one_wakes_the_next(house: House) -> None:
    """Nobody of another session."""
    first, second, third = [await house.write(name, at_s=float(at_s)) for at_s, name in enumerate("abc", 1000)]
    await house.write("d", target=OTHER)
    house.woken()
    await house.after(first, Withdrawn())
    assert house.woken() == {first.id, second.id, third.id}
    assert house.prompts.is_next(second)
    assert not house.prompts.is_next(third)


async def test_one_that_is_on_its_way_holds_up_the_next_however_old_it_is(house: House) -> None:
    """One that was not begun in time does not, unless the person wants it sent after all."""
    first, second = await house.write("a"), await house.write("b", at_s=1060.0)
    house.now_s = 1000.0 + STARTS_S
    assert house.prompts.is_next(second)
    await house.after(first, Hurried(house.now_s))
    assert not house.prompts.is_next(second)
    await house.after(first, Seen(house.now_s, Sight("idle", next_id="msg_1")), Trying(house.now_s))
    house.now_s += 9 * STARTS_S
    assert not house.prompts.is_next(second)


async def test_news_of_a_session_wakes_what_is_not_over(house: House) -> None:
    """There alone."""
    first, second = await house.write("a"), await house.write("b")
    await house.write("c", target=OTHER)
    await house.after(first, Withdrawn())
    house.woken()
    house.prompts.wake_session("ses_1")
    assert house.woken() == {second.id}


async def test_an_event_that_changes_nothing_wakes_nobody(house: House) -> None:
    """Nor does one of a prompt that is not known."""
    done = await house.after(await house.write("a"), Withdrawn())
    house.woken()
    assert await house.after(done, Withdrawn()) == done
    assert await house.prompts.apply("prompt_x", Withdrawn()) is None
    assert house.woken() == set()


async def test_a_prompt_is_found_by_its_messages(house: House) -> None:
    """By each of the person's; in its own chat alone."""
    prompt = await house.write("a")
    assert house.prompts.of_message(CHAT_ID, ord("a")) == prompt
    for chat_id, message_id in ((CHAT_ID, 1), (CHAT_ID + 1, ord("a"))):
        assert house.prompts.of_message(chat_id, message_id) is None


async def test_a_turn_that_names_its_prompt_is_known_by_that(house: House) -> None:
    """Of another session, or with another id, it is not."""
    begun = await house.after(await house.write("a"), Seen(1000.0, Sight("idle", next_id="msg_1")), Trying(1000.0))
    assert begun.record_id == "msg_1"
    turn = Turn(SOURCE, "OpenCode", "t1", 1000.0, 1300.0, prompt_id="msg_1")
    assert house.prompts.has_begun(turn)
    assert not house.prompts.has_begun(replace(turn, prompt_id="msg_2"))
    assert not house.prompts.has_begun(replace(turn, source=OTHER.source))
    bare = replace(turn, prompt_id="")
    assert not house.prompts.has_begun(replace(bare, source=OTHER.source))
    await house.after(begun, Seen(1001.0, Sight("busy", "running")))
    assert house.prompts.has_begun(bare), "an agent that does not tell: it works on the prompt"
    await house.after(begun, Seen(1002.0, Sight("idle", "finished")))
    assert house.prompts.has_begun(turn), "its end was seen in the record before it was told of"


async def test_only_what_is_over_is_forgotten(house: House) -> None:
    """If it is old."""
    over, late, waits = await house.write("a"), await house.write("b", at_s=1001.0), await house.write("c")
    for one in (over, late):
        await house.after(one, Withdrawn())
    await house.prompts.forget_before(1001.0)
    assert [one.id for one in house.prompts.all()] == [late.id, waits.id]
    assert {one.id for one in await house.store.prompts.all()} == {late.id, waits.id}


async def test_if_there_are_too_many_those_that_are_over_go_first(house: House) -> None:
    """The oldest of them first."""
    waits, old, young = await house.write("a", at_s=1.0), await house.write("b"), await house.write("c", at_s=1001.0)
    for one in (old, young):
        await house.after(one, Withdrawn())
    for number in range(Prompts.most - 3):
        house.prompts._known[f"filler_{number}"] = replace(waits, id=f"filler_{number}")
    await house.write("d")
    known = {one.id for one in house.prompts.all()}
    assert (len(known), old.id in known, {waits.id, young.id} <= known) == (Prompts.most, False, True)

"""One story of prompts, for a real OpenCode and for the scripted one: the way of Hermes, and what the model got."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pytest

from hermes.errors import NotThere
from hermes.model.ask import Source
from hermes.model.prompt import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.agents.prompting import PromptWay
    from hermes.model.prompt import Sight

OVER = ("finished", "failed", "stopped")


@dataclass
class Talk:
    """A session, and a way of prompts to it. `seen` are the different sights of all prompts, in their order."""

    way: PromptWay
    source: Source
    seen: list[Sight] = field(default_factory=list)

    async def look(self, record_id: str = "") -> Sight:
        """Look once."""
        sight = await self.way.look(self.source, record_id)
        if record_id and (not self.seen or (self.seen[-1].record, self.seen[-1].tool) != (sight.record, sight.tool)):
            self.seen.append(sight)
        return sight

    async def send(self, text: str, kind: str = "text", name: str = "") -> str:
        """Send a prompt under the next id, and return this id."""
        record_id = (await self.look()).next_id
        assert (await self.look(record_id)).record == "absent"
        await self.way.send(self.source, record_id, Content(kind, text, name))  # type: ignore[arg-type]
        return record_id

    async def until(self, record_id: str, *records: str, tool: str | None = None, within_s: float = 30) -> Sight:
        """Look until the record has one of these states (and this tool runs), and return the sight."""
        end_s = time.monotonic() + within_s
        while True:
            sight = await self.look(record_id)
            if sight.record in records and tool in {None, sight.tool}:
                return sight
            assert time.monotonic() < end_s, f"{within_s:g} s after {records}, {tool} it is {sight}; seen {self.seen}"
            await asyncio.sleep(0.02)

    async def rest(self, within_s: float = 30) -> None:
        """Wait until the session is idle."""
        end_s = time.monotonic() + within_s
        while (await self.look()).session != "idle":
            assert time.monotonic() < end_s, f"busy for {within_s:g} s"
            await asyncio.sleep(0.02)

    async def done(self, text: str, kind: str = "text", name: str = "") -> Sight:
        """Send a prompt and wait for the end of its turn; return the last sight."""
        sight = await self.until(await self.send(text, kind, name), *OVER)
        await self.rest()
        return sight

    def records(self) -> list[str]:
        """Return the states that were seen since the last call."""
        records = [sight.record for sight in self.seen]
        self.seen.clear()
        return [one for place, one in enumerate(records) if not place or one != records[place - 1]]


class Stage(Protocol):
    """What the story wants of an OpenCode beside Hermes' own way to it."""

    way: PromptWay
    directory: str
    is_old: bool
    """1.1.53 leaves the record of a turn that waited for a person as it was, if it is stopped."""

    def answering(self, word: str) -> str:
        """Return a prompt with this word that the model answers at once."""
        ...

    def asking(self, word: str) -> str:
        """Return a prompt with this word for which the agent asks a question, and waits."""
        ...

    def failing(self, word: str) -> str:
        """Return a prompt with this word that the provider refuses with 400."""
        ...

    async def begin(self, talk: Talk, record_id: str) -> None:
        """Let the agent do what the prompt wants, if it does not do so by itself."""
        ...

    async def answer(self, talk: Talk) -> None:
        """Answer the question at the desk."""
        ...

    async def delete(self, talk: Talk) -> None:
        """Delete the session at the desk."""
        ...

    def requests(self, word: str) -> list[tuple[str, ...]]:
        """Return the user's texts in each request to the model whose conversation has this word."""
        ...


async def tell(stage: Stage, word: Callable[[], str]) -> None:
    """Play the story. `word` returns a new word each time."""
    session = await stage.way.new_session(stage.directory)
    talk = Talk(stage.way, Source("opencode", "laptop", session, directory=stage.directory))
    assert (await talk.look()).session == "idle"
    assert not await stage.way.stop(talk.source), "nothing runs"
    first = await _a_text_is_answered_once(stage, talk, word())
    await _a_note_and_a_prompt_in_a_running_turn(stage, talk, [word() for _ in range(3)])
    stopped = await _a_stop(stage, talk, word())
    failed = await talk.send(stage.failing(word()))
    await stage.begin(talk, failed)
    assert "(400)" in (await talk.until(failed, "failed")).reason
    assert (await talk.look(stopped)).record == "stopped", "a later turn shows that this one is over"
    assert (await talk.look(first)).record == "finished"
    await stage.delete(talk)
    with pytest.raises(NotThere):
        await talk.look(failed)


async def _a_text_is_answered_once(stage: Stage, talk: Talk, one: str) -> str:
    """It is answered once, however often it is sent."""
    text = stage.answering(one)
    first = await talk.send(text)
    await stage.begin(talk, first)
    sight = await talk.until(first, "finished")
    assert sight.ended_s == pytest.approx(time.time(), abs=60)
    assert set(talk.records()) <= {"absent", "admitted", "running", "finished"}
    for _ in range(2):
        await stage.way.send(talk.source, first, Content("text", text))
    await asyncio.gather(*(stage.way.send(talk.source, first, Content("text", text)) for _ in range(5)))
    await talk.rest()
    assert (await talk.look(first)).record == "finished"
    assert stage.requests(one) == [(text,)]
    return first


async def _a_note_and_a_prompt_in_a_running_turn(stage: Stage, talk: Talk, words: Sequence[str]) -> None:
    """A note goes to the model with the next prompt. One that comes while the agent waits goes with the answer."""
    noted, two, three = words
    note = await talk.send(noted, "note")
    assert (await talk.until(note, "admitted")).session == "idle"
    assert stage.requests(noted) == []
    assert note < (await talk.look()).next_id
    asking = await talk.send(stage.asking(two))
    await stage.begin(talk, asking)
    await talk.until(asking, "running", tool="question")
    assert (await talk.look()).session == "busy"
    steering = await talk.send(three)
    assert (await talk.until(steering, "admitted")).session == "busy"
    await stage.answer(talk)
    await talk.until(steering, "finished")
    await talk.rest()
    assert (await talk.look(asking)).record == "finished"
    first, second = stage.requests(two)
    assert any(noted in said for said in first)
    assert any(three in said for said in second)
    assert not any(three in said for said in first)


async def _a_stop(stage: Stage, talk: Talk, one: str) -> str:
    """It ends what the agent does, and the list tells so."""
    stopped = await talk.send(stage.asking(one))
    await stage.begin(talk, stopped)
    await talk.until(stopped, "running", tool="question")
    assert await _listed(stage, talk) == "busy"
    assert await stage.way.stop(talk.source)
    await talk.rest()
    left = await talk.look(stopped)
    assert (left.session, left.record) == ("idle", "running" if stage.is_old else "stopped")
    assert await _listed(stage, talk) == "idle"
    return stopped


async def _listed(stage: Stage, talk: Talk) -> str:
    listed = await stage.way.listed(time.time() - 600)
    return next(one.state for one in listed if one.target.source.session_id == talk.source.session_id)

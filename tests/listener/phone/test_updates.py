"""The loop over updates: at least once, one update at a time, never deaf, never spinning."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, cast
from urllib.parse import parse_qsl

import httpx
import pytest
from telegram.request import HTTPXRequest

from hermes.chat.bot import Bot
from hermes.chat.incoming import read_update
from hermes.chat.poll import Offset, Poller, Trouble
from hermes.chat.screens.buttons import Button
from hermes.chat.screens.screen import Screen
from hermes.errors import ChatAway, ChatError, ChatRefused, NotSaved
from hermes.listener.entries import Entries
from hermes.listener.phone.phone import PhoneSide
from hermes.listener.phone.polling import Connection
from hermes.listener.phone.updates import Updates
from hermes.listener.prompts import Prompts
from hermes.model.events import Text
from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi

ANN, GROUP, TEAM = 1001, -500, -1001234567890
DAY_S = 86400.0
SCREEN = Screen("Which?", (), ((Button("A", "a1"),),))


def anns(text: str, update_id: int) -> dict[str, Any]:
    """A text of Ann's as an update."""
    person = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    message = {"message_id": 7, "date": 1_700_000_000, "text": text, "from": person}
    return {"update_id": update_id, "message": {**message, "chat": {"id": ANN, "type": "private"}}}


@dataclass
class Ears:
    """What stands beside the loop: the phone, the connection and the book; everything that they were told."""

    bot: Bot
    at_s: float = 1_700_000_000.0
    kept: Offset | None = None
    fails: dict[str, BaseException] = field(default_factory=dict)
    deaf: Exception | None = None
    full: Exception | None = None
    heard: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    untold: list[int] = field(default_factory=list)
    sorry: list[tuple[int, bool]] = field(default_factory=list)
    stumbles: list[Exception] = field(default_factory=list)
    good: list[float] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def updates(self, poll_s: float = 0.0) -> Updates:
        poller = Poller(self.bot, self.kept, now=self.now, poll_s=poll_s)
        book, phone, connection = cast("Entries", self), cast("PhoneSide", self), cast("Connection", self)
        return Updates(poller, book, cast("Prompts", None), phone, connection, sleep=self.sleep)

    async def lock_first(self, updates: list[dict[str, Any]]) -> None:
        """None of them locks the phone."""

    async def handle(self, raw: dict[str, Any]) -> None:
        incoming = read_update(raw)
        word = incoming.text if isinstance(incoming, Text) else type(incoming).__name__
        if error := self.fails.get(str(word)):
            raise error
        self.heard.append(str(word))
        self.ids.append(incoming.update_id)

    async def not_saved(self, raw: dict[str, Any], _: NotSaved) -> None:
        if self.deaf:
            raise self.deaf
        self.untold.append(raw["update_id"])

    def set_aside(self, raw: dict[str, Any], *, is_kept: bool) -> None:
        incoming = read_update(raw)
        if self.deaf:
            raise self.deaf
        self.sorry.append((incoming.update_id, is_kept))

    def note_offset(self, offset: Offset) -> None:
        self.kept = offset

    async def polled(self, at_s: float) -> None:
        if self.stumbles:
            raise self.stumbles.pop()
        self.good.append(at_s)

    async def poll_failed(self, trouble: Trouble) -> None:
        self.troubles.append(trouble)

    def joining_s(self) -> None:
        """Nothing is being joined."""

    @property
    def store(self) -> Self:
        return self

    @property
    def home(self) -> Self:
        return self

    def quarantine(self, _: str, data: bytes, __: str) -> None:
        if self.full:
            raise self.full
        self.aside.append(data.decode())

    def now(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at_s += seconds
        await asyncio.sleep(0)


@dataclass
class Script:
    """A Bot API that gives the next of its answers to each getUpdates, the last one for ever."""

    answers: list[Any]
    offsets: list[str | None] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        method = request.url.path.rpartition("/")[2]
        self.methods.append(method)
        if method != "getUpdates":
            return httpx.Response(200, json={"ok": True, "result": True})
        self.offsets.append(dict(parse_qsl(request.content.decode())).get("offset"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.Response):
            return answer
        if callable(answer):
            answer = answer()
        return httpx.Response(200, json={"ok": True, "result": answer})

    def ears(self, **values: Any) -> Ears:
        request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(self)})
        return Ears(Bot("1:token", api_base="https://telegram.test", request=request), **values)


def refusal(status: int, description: str, **parameters: int) -> httpx.Response:
    """A refusal of Telegram's."""
    body = {"ok": False, "error_code": status, "description": description}
    return httpx.Response(status, json={**body, "parameters": parameters} if parameters else body)


@pytest.fixture
def api() -> Iterator[RunningBotApi]:
    """A strict local Bot API of this test's own."""
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small"), Chat(TEAM, "Team", topics=(7,))]) as api:
        yield api


@pytest.fixture
async def bot(api: RunningBotApi) -> AsyncIterator[Bot]:
    """A bot on it."""
    async with Bot(api.token, api_base=api.base_url) as bot:
        yield bot


# at least once (items 1 and 2)


async def test_an_update_is_confirmed_only_after_it_was_handled(bot: Bot, api: RunningBotApi) -> None:
    """A listener that is killed in the middle hears it again, from whoever comes next."""
    api.phone.write("precious", chat=ANN)
    killed = Ears(bot, fails={"precious": asyncio.CancelledError()})
    with pytest.raises(asyncio.CancelledError):
        await killed.updates().step()
    ears = Ears(bot, kept=killed.kept)
    await ears.updates().step()
    assert (killed.heard, ears.heard) == ([], ["precious"])


async def test_the_next_offset_is_asked_for_after_the_last_update(bot: Bot, api: RunningBotApi) -> None:
    """While an update is handled, Telegram still keeps it."""
    ears = Ears(bot)
    updates = ears.updates()
    api.phone.write("one", chat=ANN)
    api.phone.write("two", chat=ANN)
    assert await updates.step()
    assert api.phone.state().pending_update_count == 2
    await updates.step()
    assert api.phone.state().pending_update_count == 0
    assert ears.heard == ["one", "two"]
    assert ears.kept == Offset(ears.ids[-1] + 1, ears.at_s)


async def test_what_was_written_while_nobody_listened_is_heard(bot: Bot, api: RunningBotApi) -> None:
    """The start takes a webhook away, and not the texts that wait."""
    api.phone.write("are you there?", chat=ANN)
    url = f"{api.base_url}/bot{api.token}/setWebhook"
    async with httpx.AsyncClient(trust_env=False) as client:
        (await client.post(url, data={"url": "https://example.com/x"})).raise_for_status()
    ears = Ears(bot)
    await ears.updates().step()
    assert (ears.heard, ears.troubles, api.phone.state().webhook) == (["are you there?"], [], "")


async def test_a_new_listener_goes_on_where_the_old_one_ended(bot: Bot, api: RunningBotApi) -> None:
    """The place in the queue is kept."""
    ears = Ears(bot)
    api.phone.write("one", chat=ANN)
    await ears.updates().step()
    later = Ears(bot, kept=ears.kept)
    api.phone.write("two", chat=ANN)
    await later.updates().step()
    assert later.heard == ["two"]


async def test_an_idle_poll_writes_nothing() -> None:
    """The disk rests while nobody taps."""
    ears = Script([[anns("x", 1)], []]).ears()
    updates = ears.updates()
    await updates.step()
    ears.kept = None
    await updates.step()
    assert ears.kept is None


async def test_each_answer_of_telegrams_is_told() -> None:
    """From these times the listener knows how long it was away; a failure is none of them."""
    ears = Script([[], refusal(502, "Bad Gateway"), [anns("x", 5)]]).ears()
    updates = ears.updates()
    for _ in range(3):
        ears.at_s += 10
        await updates.step()
    assert ears.good == [1_700_000_010.0, 1_700_000_030.0]


async def test_a_long_poll_waits_for_the_first_update(bot: Bot, api: RunningBotApi) -> None:
    """A tap is heard when it comes, not a poll later."""
    ears = Ears(bot)
    polling = asyncio.create_task(ears.updates(poll_s=20).step())
    await asyncio.to_thread(api.phone.wait_for_poll)
    api.phone.write("now", chat=ANN)
    assert await asyncio.wait_for(polling, 60)
    assert ears.heard == ["now"]


async def test_one_look_takes_in_what_waits_and_leaves() -> None:
    """A timer's run does not wait for a person."""
    waits: list[str | None] = []

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("getUpdates"):
            waits.append(dict(parse_qsl(request.content.decode())).get("timeout"))
        return httpx.Response(200, json={"ok": True, "result": []})

    request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(respond)})
    updates = Ears(Bot("1:token", api_base="https://telegram.test", request=request)).updates(poll_s=25)
    await updates.step()
    await updates.step(longest_s=0)
    assert waits == ["25", "0"]


# quarantine (item 3)


async def test_an_update_that_cannot_be_handled_is_put_aside_alone(bot: Bot, api: RunningBotApi) -> None:
    """Those before and after it are heard; it is kept whole, and it is not asked for again."""
    api.phone.write("before", chat=ANN)
    poison_id = api.phone.inject({"message": {"no": "shape"}})
    api.phone.write("after", chat=ANN)
    ears = Ears(bot)
    updates = ears.updates()
    await updates.step()
    await updates.step()
    assert ears.heard == ["before", "after"]
    assert ears.aside == [str({"update_id": poison_id, "message": {"no": "shape"}})]
    assert api.phone.state().pending_update_count == 0


@pytest.mark.parametrize("junk", ["text", 5, None, [], {"no": "id"}, {"update_id": "seven"}])
async def test_what_is_no_update_at_all_is_put_aside_once(junk: Any) -> None:
    """It cannot be confirmed, so Telegram may send it for ever: its neighbours are heard all the same."""
    ears = Script([[anns("before", 1), junk, anns("after", 3)]]).ears()
    updates = ears.updates()
    for _ in range(5):
        await updates.step()
    assert (ears.heard, ears.aside) == (["before", "after"], [repr(junk)])


async def test_a_full_quarantine_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    """It is said, and the loop goes on."""
    ears = Script([[{"update_id": 1, "message": []}, anns("next", 2)]]).ears(full=OSError("no space left"))
    await ears.updates().step()
    assert ears.heard == ["next"]
    assert "no space left" in caplog.text


@pytest.mark.parametrize("defect", [RuntimeError("a defect"), ValueError("a defect")])
@pytest.mark.parametrize("full", [None, OSError("no space left")])
async def test_the_person_is_told_of_an_update_that_met_a_defect(full: OSError | None, defect: Exception) -> None:
    """Once, and whether it was kept; nobody is told of one that cannot be read."""
    script = Script([[anns("poison", 1), {"update_id": 2, "message": []}, anns("next", 3)], []])
    ears = script.ears(fails={"poison": defect}, full=full)
    updates = ears.updates()
    await updates.step()
    await updates.step()
    assert (ears.heard, ears.sorry, len(ears.aside)) == (["next"], [(1, full is None)], 0 if full else 2)


async def test_a_defect_in_telling_of_a_defect_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    """Its update would come again for ever."""
    script = Script([[anns("poison", 1), anns("next", 2)], []])
    ears = script.ears(fails={"poison": RuntimeError("a defect")}, deaf=RuntimeError("another one"))
    updates = ears.updates()
    await updates.step()
    await updates.step()
    assert (ears.heard, script.offsets) == (["next"], [None, "3"])
    assert "another one" in caplog.text


# a full disk


async def test_an_update_that_was_not_saved_is_told_and_passed_over() -> None:
    """The person taps again; the others are heard."""
    script = Script([[anns("lost", 1), anns("next", 2)], []])
    ears = script.ears(fails={"lost": NotSaved("disk full")})
    updates = ears.updates()
    await updates.step()
    await updates.step()
    assert (ears.heard, ears.untold, ears.aside) == (["next"], [1], [])
    assert script.offsets == [None, "3"]


@pytest.mark.parametrize(
    "deaf",
    [
        ChatAway("no network"),
        ChatRefused("unauthorized: the token is not accepted"),
        ChatRefused("conflict: terminated by other getUpdates request"),
    ],
)
async def test_an_update_that_nobody_could_be_told_of_stays_with_telegram(deaf: ChatError) -> None:
    """Neither saved nor told: it is asked for again, and what follows keeps its turn."""
    script = Script([[anns("first", 1), anns("kept", 2), anns("next", 3)]])
    ears = script.ears(fails={"kept": NotSaved("disk full")}, deaf=deaf)
    updates = ears.updates()
    assert not await updates.step()
    assert ears.heard == ["first"]
    ears.fails.clear()
    await updates.step()
    assert ears.heard == ["first", "kept", "next"]
    assert script.offsets == [None, "2"]


async def test_a_person_who_cannot_be_told_at_all_jams_nothing() -> None:
    """They blocked the bot, say."""
    ears = Script([[anns("lost", 1), anns("next", 2)]]).ears(
        fails={"lost": NotSaved("disk full")}, deaf=ChatRefused("forbidden", blocked=True)
    )
    await ears.updates().step()
    assert ears.heard == ["next"]


# never deaf (items 3 and 4)


TROUBLES = {
    "401": (refusal(401, "Unauthorized"), "unauthorized"),
    "404": (refusal(404, "Not Found"), "unauthorized"),
    "409": (refusal(409, "Conflict: terminated by other getUpdates request"), "conflict"),
    "400": (refusal(400, "Bad Request: whatever"), "away"),
    "403": (refusal(403, "Forbidden: whatever"), "away"),
    "500": (refusal(500, "Internal Server Error"), "away"),
    "502": (httpx.Response(502, html="<p>sorry</p>"), "away"),
    "200": (httpx.Response(200, html="<p>please log in</p>"), "away"),
    "shape": (httpx.Response(200, json={"ok": True, "result": {"a": 1}}), "away"),
}


@pytest.mark.parametrize(("answer", "kind"), TROUBLES.values(), ids=TROUBLES)
async def test_no_error_makes_the_loop_deaf(answer: httpx.Response, kind: str) -> None:
    """Whatever it is, it is tried again, more and more slowly, and what comes then is heard."""
    ears = Script([*[answer] * 12, [anns("at last", 5)]]).ears()
    running = asyncio.create_task(ears.updates().run())
    async with asyncio.timeout(10):
        while not ears.heard:
            await asyncio.sleep(0)
    running.cancel()
    assert {trouble.kind for trouble in ears.troubles} == {kind}
    assert ears.pauses[:12] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30]


async def test_trouble_gets_loud_after_a_few(caplog: pytest.LogCaptureFixture) -> None:
    """A hiccup is a warning; what lasts is an error, said now and then and not each time; peace is said too."""
    caplog.set_level(logging.INFO)
    ears = Script([*[refusal(401, "Unauthorized")] * 45, []]).ears()
    updates = ears.updates()
    for _ in range(46):
        await updates.step()
    assert [trouble.loud for trouble in ears.troubles[:4]] == [False, False, True, True]
    levels = [record.levelname for record in caplog.records if record.name == "hermes.chat.poll"]
    assert (levels.count("WARNING"), levels[2], levels[-1]) == (2, "ERROR", "INFO")
    assert 2 <= levels.count("ERROR") <= 6
    assert "telegram.token" in caplog.text


async def test_after_trouble_the_first_good_poll_forgets_it() -> None:
    """The next hiccup starts with a short pause again."""
    away = refusal(500, "Internal")
    ears = Script([away, away, away, [anns("x", 1)], away]).ears()
    updates = ears.updates()
    pauses = []
    for _ in range(5):
        await updates.step()
        pauses.append(updates.poller.pause_s)
    assert pauses[-1] == 0.5
    assert [trouble.failures for trouble in ears.troubles] == [1, 2, 3, 1]


@pytest.mark.parametrize("seconds", [3, 3600])
async def test_a_429_is_obeyed(seconds: int) -> None:
    """Longer than any pause of our own, if Telegram says so."""
    ears = Script([refusal(429, "Too Many Requests", retry_after=seconds)]).ears()
    updates = ears.updates()
    assert not await updates.step()
    assert updates.poller.pause_s == seconds


async def test_a_rival_is_noticed_although_it_lets_polls_through() -> None:
    """Two pollers that take turns steal each other's taps in silence."""
    rival = refusal(409, "Conflict: terminated by other getUpdates request")
    ears = Script([rival, [], rival, [], rival]).ears()
    updates = ears.updates()
    for pause_s in (0.0, 0.0, 0.0, 3600.0, 0.0):
        ears.at_s += pause_s
        await updates.step()
    assert [(trouble.failures, trouble.loud) for trouble in ears.troubles] == [(1, False), (2, True), (1, False)]
    assert "another program" in ears.troubles[0].sentence


async def test_two_listeners_of_one_bot_both_say_so(api: RunningBotApi, bot: Bot) -> None:
    """The older poll gets the 409 from the newcomer."""
    older, newer = Ears(bot), Ears(bot)
    polling = asyncio.create_task(older.updates(poll_s=20).step())
    await asyncio.to_thread(api.phone.wait_for_poll)
    stealing = asyncio.create_task(newer.updates(poll_s=20).step())
    assert not await asyncio.wait_for(polling, 60)
    assert [trouble.kind for trouble in older.troubles] == ["conflict"]
    stealing.cancel()


async def test_a_webhook_set_meanwhile_is_removed_again() -> None:
    """And said, since somebody set it."""
    webhook = refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook")
    script = Script([[], webhook, [anns("x", 1)]])
    ears = script.ears()
    updates = ears.updates()
    for _ in range(3):
        await updates.step()
    assert script.methods == ["deleteWebhook", "getUpdates", "getUpdates", "deleteWebhook", "getUpdates"]
    assert (ears.heard, ears.troubles[0].kind) == (["x"], "conflict")
    assert "webhook" in ears.troubles[0].sentence


async def test_a_stumble_of_the_listener_does_not_end_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    """What is told of a good poll may fail; the loop is the last thing to die."""
    ears = Script([[anns("one", 1)], [anns("two", 2)]]).ears()
    ears.stumbles.append(RuntimeError("stumbled"))
    running = asyncio.create_task(ears.updates().run())
    async with asyncio.timeout(10):
        while not ears.heard:
            await asyncio.sleep(0)
    running.cancel()
    assert "stumbled" in caplog.text


@pytest.mark.parametrize("refusals", [0, 2])
async def test_polls_are_short_until_one_succeeds(refusals: int) -> None:
    """So a start knows at once whether Telegram is there; from then on each waits for the next tap."""
    timeouts: list[str] = []
    enough = asyncio.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("getUpdates"):
            return httpx.Response(200, json={"ok": True, "result": True})
        timeouts.append(dict(parse_qsl(request.content.decode()))["timeout"])
        if len(timeouts) == refusals + 3:
            enough.set()
        if len(timeouts) <= refusals:
            return refusal(409, "Conflict: terminated by other getUpdates request")
        return httpx.Response(200, json={"ok": True, "result": []})

    request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(answer)})
    ears = Ears(Bot("1:token", api_base="https://telegram.test", request=request))
    running = asyncio.create_task(ears.updates(poll_s=20).run())
    await asyncio.wait_for(enough.wait(), 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert timeouts[: refusals + 3] == ["0"] * refusals + ["0", "20", "20"]


async def test_the_loop_ends_when_it_is_cancelled(bot: Bot, api: RunningBotApi) -> None:
    """Stopping does not wait for the long poll."""
    running = asyncio.create_task(Ears(bot).updates(poll_s=50).run())
    await asyncio.to_thread(api.phone.wait_for_poll)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 60)


# never spinning


@pytest.mark.parametrize(
    "answer", [[], [anns("again", 5)], [{"update_id": 5, "message": {}}], [{"no": "id"}], ["junk"]]
)
async def test_a_server_that_answers_at_once_is_not_asked_all_the_time(answer: Any) -> None:
    """One that does not hold polls, or repeats an update for ever, gets about a request a second."""
    script = Script([answer])
    ears = script.ears()
    running = asyncio.create_task(ears.updates(poll_s=25).run())
    async with asyncio.timeout(10):
        while ears.at_s < 1_700_000_060:
            await asyncio.sleep(0)
    running.cancel()
    assert 55 <= len(script.offsets) <= 75
    assert len(ears.heard) + len(ears.aside) <= 1


async def test_an_empty_long_poll_is_followed_at_once_by_the_next() -> None:
    """No pause in which a tap would wait."""

    def long_poll() -> list[Any]:
        ears.at_s += 25
        return []

    ears = Script([long_poll]).ears()
    updates = ears.updates(poll_s=25)
    assert await updates.step()
    assert await updates.step()


# ids


async def test_ids_that_start_again_lower_are_followed() -> None:
    """After a week of silence, or on another Bot API server: who only raises the offset hears nothing new."""
    script = Script([[anns("old", 900_000)], [anns("new", 17)], [anns("newer", 18)], []])
    ears = script.ears()
    updates = ears.updates()
    for _ in range(4):
        await updates.step()
    assert ears.heard == ["old", "new", "newer"]
    assert script.offsets == [None, "900001", "18", "19"]


@pytest.mark.parametrize(("days", "offset"), [(5, "41"), (7, None)])
async def test_an_offset_of_last_week_is_not_used(days: float, offset: str | None) -> None:
    """Ids may have started anew, just below it; what comes twice changes nothing."""
    script = Script([[]])
    ears = script.ears(kept=Offset(41, 1_700_000_000.0 - days * DAY_S))
    await ears.updates().step()
    assert script.offsets == [offset]


async def test_an_update_sent_again_is_not_handled_again(bot: Bot, api: RunningBotApi) -> None:
    """And what is new is heard, whichever comes first."""
    ears = Ears(bot)
    updates = ears.updates()
    api.phone.write("one", chat=ANN)
    await updates.step()
    api.phone.redeliver(ears.ids[0])
    api.phone.write("two", chat=ANN)
    for _ in range(3):
        await updates.step()
    assert ears.heard == ["one", "two"]
    assert api.phone.state().pending_update_count == 0

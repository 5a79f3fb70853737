"""Everything that goes to the phone: in order, coalesced, paced, acknowledged first, lost never."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from telegram.request import HTTPXRequest

from hermes.chat.bot import Bot, Sent
from hermes.chat.outbox import Outbox
from hermes.chat.screens.screen import Screen
from hermes.errors import ChatAway, ChatRefused, Undelivered
from hermes.sandbox.botapi import Chat, RunningBotApi, running_botapi

ANN, BOB, GROUP = 1001, 1002, -500
UNPACED = 1e6


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self, at_s: float = 1_700_000_000.0) -> None:
        self.at_s = at_s
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        """Several who sleep at once sleep side by side; what is under way first gets where it goes."""
        self.slept.append(seconds)
        until_s = self.at_s + seconds
        for _ in range(50):
            await asyncio.sleep(0)
        self.at_s = max(self.at_s, until_s)


Reply = httpx.Response | Exception


@dataclass
class Wire:
    """A Bot API that notes what comes, may hold a method back, and refuses what it is told to."""

    clock: Clock = field(default_factory=Clock)
    came: list[tuple[str, str, str]] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    refusals: dict[str, deque[Reply]] = field(default_factory=dict)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        method = request.url.path.rpartition("/")[2]
        form = dict(parse_qsl(request.content.decode()))
        about = form.get("message_id", form.get("callback_query_id", form.get("chat_id", "")))
        self.came.append((method, about, form.get("text", "")))
        self.at_s.append(self.clock.now())
        self.arrived.set()
        if method in self.held:
            await self.held[method].wait()
        if self.refusals.get(method):
            reply = self.refusals[method].popleft()
            if isinstance(reply, Exception):
                raise reply
            return reply
        return httpx.Response(200, json={"ok": True, "result": {"message_id": len(self.came)}})

    def refuse(self, method: str, *replies: Reply) -> None:
        self.refusals[method] = deque(replies)

    def hold(self, method: str) -> asyncio.Event:
        self.held[method] = asyncio.Event()
        return self.held[method]

    def outbox(self, rate_scale: float = UNPACED, sleep: Callable[[float], Awaitable[None]] | None = None) -> Outbox:
        request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(self)})
        bot = Bot("1:token", api_base="https://telegram.test", request=request)
        return Outbox(bot, now=self.clock.now, sleep=sleep or self.clock.sleep, rate_scale=rate_scale)

    @property
    def texts(self) -> list[str]:
        return [text for _, _, text in self.came]

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.came]


def wait_please(seconds: int) -> httpx.Response:
    """A 429."""
    body = {"ok": False, "error_code": 429, "description": "Too Many Requests"}
    return httpx.Response(429, json={**body, "parameters": {"retry_after": seconds}})


def refused(words: str) -> httpx.Response:
    """A 400."""
    return httpx.Response(400, json={"ok": False, "error_code": 400, "description": f"Bad Request: {words}"})


async def until(condition: Callable[[], Any]) -> None:
    """Let the loop run until it holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def start(call: Awaitable[Any]) -> asyncio.Future[Any]:
    """Begin a call, as a step of the listener does."""
    return asyncio.ensure_future(call)


@pytest.fixture
def wire() -> Wire:
    """One wire a test."""
    return Wire()


# order


async def test_messages_of_a_chat_go_out_in_order(wire: Wire) -> None:
    """Even when all are handed in at once, and the first takes long."""
    outbox, go = wire.outbox(), wire.hold("sendMessage")
    sends = [start(outbox.send(ANN, Screen(str(number)))) for number in range(4)]
    await until(lambda: wire.came)
    assert wire.texts == ["0"]
    go.set()
    ids = [sent.message_id for sent in await asyncio.gather(*sends)]
    assert wire.texts == ["0", "1", "2", "3"]
    assert ids == sorted(ids)


async def test_chats_do_not_wait_for_each_other(wire: Wire) -> None:
    """One slow chat is no reason to keep another person waiting."""
    outbox, go = wire.outbox(), wire.hold("editMessageText")
    slow = start(outbox.edit(ANN, 5, Screen("slow")))
    await until(lambda: wire.came)
    await outbox.send(BOB, Screen("quick"))
    assert not slow.done()
    go.set()
    await slow


async def test_a_deletion_comes_after_what_was_queued_before(wire: Wire) -> None:
    """A side message is deleted after its edit, not before."""
    outbox = wire.outbox()
    await asyncio.gather(outbox.edit(ANN, 5, Screen("x")), outbox.delete(ANN, 5))
    assert wire.methods == ["editMessageText", "deleteMessage"]


# coalescing


async def test_a_newer_edit_replaces_one_that_waits(wire: Wire) -> None:
    """Quick taps redraw once, with the last screen; everybody who waited is told."""
    outbox, go = wire.outbox(), wire.hold("editMessageText")
    edits = [start(outbox.edit(ANN, 5, Screen(f"v{number}"))) for number in range(4)]
    await until(lambda: wire.came)
    go.set()
    await asyncio.gather(*edits)
    assert wire.texts == ["v3"]


async def test_an_edit_on_its_way_is_followed_by_the_newest(wire: Wire) -> None:
    """What left cannot be replaced; of what came since, only the last is drawn."""
    outbox, go = wire.outbox(), wire.hold("editMessageText")
    edits = [start(outbox.edit(ANN, 5, Screen("v0")))]
    await until(lambda: wire.came)
    edits += [start(outbox.edit(ANN, 5, Screen(f"v{number}"))) for number in (1, 2)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*edits)
    assert wire.texts == ["v0", "v2"]


async def test_edits_of_two_messages_stay_two(wire: Wire) -> None:
    """Only the same message is the same."""
    outbox = wire.outbox()
    await asyncio.gather(outbox.edit(ANN, 5, Screen("five")), outbox.edit(ANN, 6, Screen("six")))
    assert wire.texts == ["five", "six"]


async def test_an_edit_after_a_deletion_does_not_slip_before_it(wire: Wire) -> None:
    """Its caller must learn that the message is gone."""
    outbox = wire.outbox()
    wire.refuse("editMessageText", httpx.Response(200, json={"ok": True, "result": True}), refused("gone"))
    results = await asyncio.gather(
        outbox.edit(ANN, 5, Screen("a")),
        outbox.delete(ANN, 5),
        outbox.edit(ANN, 5, Screen("b")),
        return_exceptions=True,
    )
    assert wire.methods == ["editMessageText", "deleteMessage", "editMessageText"]
    assert isinstance(results[2], ChatRefused)


async def test_the_end_of_a_coalesced_edit_is_everybodys(wire: Wire) -> None:
    """A refusal reaches each caller."""
    outbox = wire.outbox()
    wire.refuse("editMessageText", refused("chat not found"))
    edits = [outbox.edit(ANN, 5, Screen(text)) for text in "ab"]
    results = await asyncio.gather(*edits, return_exceptions=True)
    assert [type(result) for result in results] == [ChatRefused, ChatRefused]
    assert wire.texts == ["b"]


async def test_that_a_message_is_gone_is_everybodys_result(wire: Wire) -> None:
    """It was deleted on the phone: that is no error."""
    outbox = wire.outbox()
    wire.refuse("editMessageText", refused("message to edit not found"))
    assert await asyncio.gather(*[outbox.edit(ANN, 5, Screen(text)) for text in "ab"]) == [False, False]
    assert await outbox.edit(ANN, 5, Screen("c"))


# acknowledgements


async def test_an_acknowledgement_goes_past_the_queue(wire: Wire) -> None:
    """A tap is answered at once, whatever waits."""
    outbox, go = wire.outbox(), wire.hold("sendMessage")
    sends = [start(outbox.send(ANN, Screen(str(number)))) for number in range(3)]
    await until(lambda: wire.came)
    await outbox.answer("tap-1", "Picked")
    assert wire.came[1:] == [("answerCallbackQuery", "tap-1", "Picked")]
    go.set()
    await asyncio.gather(*sends)


async def test_an_edit_after_an_acknowledgement_waits_for_it(wire: Wire) -> None:
    """The toast shows before the screen moves, also when nobody waits for the answer's end."""
    outbox, go = wire.outbox(), wire.hold("answerCallbackQuery")
    outbox.answer("tap-1", "Picked")
    edit = start(outbox.edit(ANN, 5, Screen("picked")))
    await until(lambda: wire.came)
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert wire.methods == ["answerCallbackQuery"]
    go.set()
    await edit
    assert wire.methods == ["answerCallbackQuery", "editMessageText"]


async def test_an_acknowledgement_that_fails_holds_nothing_up(wire: Wire) -> None:
    """The screen moves all the same, and nobody had to look at the failure."""
    outbox = wire.outbox()
    wire.refuse("answerCallbackQuery", httpx.ReadError("cut"))
    answer = outbox.answer("tap-1", "Picked")
    await outbox.edit(ANN, 5, Screen("picked"))
    assert isinstance(answer.exception(), ChatAway)


async def test_an_acknowledgement_outlasts_a_429_that_holds_the_whole_bot(wire: Wire) -> None:
    """It names no chat, so all wait."""
    outbox = wire.outbox()
    began_s = wire.clock.now()
    wire.refuse("answerCallbackQuery", wait_please(4))
    answer = outbox.answer("tap-1", "Picked")
    await asyncio.gather(answer, outbox.edit(ANN, 5, Screen("x")), outbox.send(BOB, Screen("y")))
    assert wire.methods[:2] == ["answerCallbackQuery"] * 2
    assert [at_s >= began_s + 4 for at_s in wire.at_s] == [False, True, True, True]


async def test_a_429_of_an_acknowledgement_holds_what_was_queued_before(wire: Wire) -> None:
    """Telegram said that the bot is too quick, and meant it."""
    gate, asleep = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await gate.wait()
        wire.clock.at_s += seconds

    outbox, go = wire.outbox(sleep=sleep), wire.hold("sendMessage")
    sends = [start(outbox.send(BOB, Screen(text))) for text in "ab"]
    await until(lambda: wire.came)
    wire.refuse("answerCallbackQuery", wait_please(4))
    answer = outbox.answer("tap-1")
    await asleep.wait()
    go.set()
    await sends[0]
    for _ in range(50):
        await asyncio.sleep(0)
    assert wire.methods == ["sendMessage", "answerCallbackQuery"]
    gate.set()
    await asyncio.gather(answer, *sends)


# 429


@pytest.mark.parametrize("times", [1, 3])
async def test_a_429_never_loses_a_message(wire: Wire, times: int) -> None:
    """The same request goes out again, after as long as Telegram says, before what came later."""
    outbox = wire.outbox()
    began_s = wire.clock.now()
    wire.refuse("sendMessage", *[wait_please(7)] * times)
    await asyncio.gather(outbox.send(ANN, Screen("first")), outbox.send(ANN, Screen("second")))
    assert wire.texts == ["first"] * (times + 1) + ["second"]
    assert wire.at_s[-1] == pytest.approx(began_s + 7 * times)


async def test_an_edit_that_waits_out_a_429_shows_the_newest_screen(wire: Wire) -> None:
    """Nobody wants to see an old screen after a wait."""
    outbox, go = wire.outbox(), wire.hold("editMessageText")
    wire.refuse("editMessageText", wait_please(3))
    first = start(outbox.edit(ANN, 5, Screen("old")))
    await until(lambda: wire.came)
    second = start(outbox.edit(ANN, 5, Screen("new")))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, second)
    assert wire.texts == ["old", "new"]


async def test_a_429_of_one_chat_leaves_the_others_alone() -> None:
    """Limits are a chat's, until two chats are held at once: then it is the bot's."""
    wire = Wire()
    gate = asyncio.Event()

    async def sleep(seconds: float) -> None:
        wire.clock.slept.append(seconds)
        await gate.wait()
        wire.clock.at_s += seconds

    outbox = wire.outbox(sleep=sleep)
    wire.refuse("sendMessage", wait_please(9), httpx.Response(200, json={"ok": True, "result": {"message_id": 1}}))
    held = start(outbox.send(ANN, Screen("held")))
    await until(lambda: wire.clock.slept)
    await outbox.send(BOB, Screen("free"))
    wire.refuse("sendMessage", wait_please(9))
    also_held = start(outbox.send(BOB, Screen("held too")))
    await until(lambda: len(wire.clock.slept) > 1)
    third = start(outbox.send(GROUP, Screen("all wait")))
    await until(lambda: len(wire.clock.slept) > 2)
    assert wire.texts == ["held", "free", "held too"]
    gate.set()
    await asyncio.gather(held, also_held, third)
    assert sorted(wire.texts[3:]) == ["all wait", "held", "held too"]


# trouble


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (httpx.ConnectError("no"), ChatAway),
        (httpx.ReadTimeout("no"), Undelivered),
        (httpx.Response(502, html="<p>sorry</p>"), ChatAway),
        (refused("message is too long"), ChatRefused),
    ],
)
async def test_other_trouble_goes_to_the_caller_and_no_further(wire: Wire, reply: Reply, kind: type[Exception]) -> None:
    """Whoever sent it knows whether it is worth another try; the next in the queue has its own luck."""
    outbox = wire.outbox()
    wire.refuse("sendMessage", reply)
    results = await asyncio.gather(
        outbox.send(ANN, Screen("bad")), outbox.send(ANN, Screen("good")), return_exceptions=True
    )
    assert (type(results[0]), results[1]) == (kind, Sent(2, 0.0))
    assert wire.texts == ["bad", "good"]


async def test_a_caller_who_left_has_nothing_sent_later(wire: Wire) -> None:
    """A cancelled message that still waits is dropped; what is on its way ends."""
    outbox, go = wire.outbox(), wire.hold("sendMessage")
    sends = [start(outbox.send(ANN, Screen(text))) for text in ("going", "dropped", "kept")]
    await until(lambda: wire.came)
    for each in sends[:2]:
        each.cancel()
    go.set()
    await sends[2]
    assert wire.texts == ["going", "kept"]


# pace


@pytest.fixture
def strict() -> Iterator[tuple[RunningBotApi, Clock]]:
    """A Bot API with Telegram's own limits, on a clock that only sleeping moves."""
    clock = Clock()
    with running_botapi(chats=[Chat(ANN), Chat(GROUP, "Small")], rate_scale=1.0, now=clock.now) as api:
        yield api, clock


@pytest.mark.parametrize("chat_id", [ANN, GROUP])
async def test_many_messages_to_one_chat_meet_no_429(strict: tuple[RunningBotApi, Clock], chat_id: int) -> None:
    """3 at once, about 1 a second, and 20 a minute in a group: Telegram never has to say no."""
    api, clock = strict
    async with Bot(api.token, api_base=api.base_url) as bot:
        outbox = Outbox(bot, now=clock.now, sleep=clock.sleep)
        began_s = clock.now()
        for number in range(45):
            await outbox.send(chat_id, Screen(f"message {number}"))
        await outbox.close()
    assert {call.status for call in api.phone.calls("sendMessage")} == {200}
    assert clock.now() - began_s <= (130 if chat_id < 0 else 50)


async def test_many_chats_together_stay_below_30_a_second(wire: Wire) -> None:
    """The limit of the whole bot."""
    outbox = wire.outbox(rate_scale=1.0)
    await asyncio.gather(*(outbox.send(2000 + number, Screen("hello")) for number in range(70)))
    for at_s in wire.at_s:
        assert sum(at_s <= other < at_s + 1 for other in wire.at_s) <= 30
    assert wire.at_s[-1] - wire.at_s[0] == pytest.approx(2)


async def test_a_short_burst_is_not_slowed(wire: Wire) -> None:
    """A question, its final call and an error at once; and a tap right after moves the screen."""
    outbox = wire.outbox(rate_scale=1.0)
    for text in "abc":
        await outbox.send(ANN, Screen(text))
    for number in range(10):
        await outbox.edit(ANN, 5, Screen(str(number)))
    assert wire.clock.slept == []
    await outbox.send(ANN, Screen("d"))
    assert len(wire.clock.slept) == 1


async def test_a_rate_scale_lets_more_through(wire: Wire) -> None:
    """Twice as much for 2."""
    outbox = wire.outbox(rate_scale=2.0)
    for text in "abcdef":
        await outbox.send(ANN, Screen(text))
    assert wire.clock.slept == []


# the end


async def test_closing_lets_the_request_on_its_way_end(wire: Wire) -> None:
    """The message is posted and its id known; what waits is not sent, and its caller told."""
    outbox, go = wire.outbox(), wire.hold("sendMessage")
    going, waiting = (start(outbox.send(ANN, Screen(text))) for text in "ab")
    await until(lambda: wire.came)
    closing = start(outbox.close(grace_s=10))
    await asyncio.sleep(0)
    go.set()
    await closing
    assert (await going).message_id == 1
    with pytest.raises(ChatAway, match="stopping"):
        await waiting
    assert wire.texts == ["a"]


async def test_closing_does_not_wait_for_ever(wire: Wire) -> None:
    """What does not end in time may have arrived, or not."""
    outbox = wire.outbox()
    wire.hold("sendMessage")
    wire.hold("answerCallbackQuery")
    going = start(outbox.send(ANN, Screen("a")))
    await until(lambda: wire.came)
    answer = outbox.answer("tap-1")
    await until(lambda: len(wire.came) == 2)
    await asyncio.wait_for(outbox.close(grace_s=0.05), 60)
    with pytest.raises(Undelivered):
        await going
    assert answer.cancelled()


async def test_closing_ends_a_wait_for_telegram_at_once(wire: Wire) -> None:
    """A 429 of an hour does not keep Hermes from stopping."""
    asleep = asyncio.Event()

    async def for_ever(_: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    outbox = wire.outbox(sleep=for_ever)
    wire.refuse("sendMessage", wait_please(3600))
    held = start(outbox.send(ANN, Screen("a")))
    await asyncio.wait_for(asleep.wait(), 60)
    await asyncio.wait_for(outbox.close(grace_s=600), 60)
    with pytest.raises(ChatAway, match="stopping"):
        await held


async def test_after_the_end_nothing_is_sent(wire: Wire) -> None:
    """Not even an acknowledgement; closing twice is the same as once."""
    outbox = wire.outbox()
    await outbox.close()
    await outbox.close()
    for call in (
        outbox.send(ANN, Screen("a")),
        outbox.edit(ANN, 5, Screen("a")),
        outbox.delete(ANN, 5),
        outbox.answer("tap-1"),
    ):
        with pytest.raises(ChatAway, match="stopping"):
            await call
    assert wire.came == []

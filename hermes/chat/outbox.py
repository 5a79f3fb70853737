"""The outbox: it sends all requests to Telegram in order and within Telegram's rate limits.

Each chat has one queue. An edit replaces an edit of the same message that still waits, and both callers get the same
result. After a 429 the request returns to the head of the queue and waits as long as Telegram says. Every other error
goes to the caller, which decides whether to retry.

The acknowledgement of a tap bypasses the queue, and requests that are queued after it wait until it is done, so that
the person sees the toast before the screen changes.
"""

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hermes.chat.bot import Bot, Sent
from hermes.chat.failures import is_without_files, vanished
from hermes.chat.screens.files import NOT_ALLOWED
from hermes.chat.screens.screen import Screen
from hermes.errors import ChatAway, ChatError, ChatRefused, Undelivered

log = logging.getLogger(__name__)

CLOSING_S = 0.5
UPLOAD_S = 120.0
"""How long Telegram may take to answer after it has received a file."""

# Below the resolution of a clock: a shorter wait would never be over.
_CRUMB = 1e-6

_Kind = Literal["send", "edit", "delete", "topic"]
TOPIC_PATIENCE_S = 10.0
"""A new topic that must wait longer than this after a 429 is not waited for: the messages behind it matter more."""


# The rate limits, each as (requests, seconds). Telegram documents 1 message/s in a chat with short bursts, 20/min in a
# group, and 30/s in all. It documents no limits for edits and deletions; they are counted separately, so that a tap
# changes the screen even right after a burst of messages. The time spans are a little longer than Telegram's, because a
# request takes time to arrive.
_CHAT, _CHAT_EDITS = (3.0, 3.1), (20.0, 10.0)
_GROUP, _GROUP_EDITS = (20.0, 60.5), (30.0, 60.5)
_OVERALL = (28.0, 1.0)


class Window:
    """A rate limit of `most` requests within any `span_s` seconds; `spend` does not enforce it, callers wait first.

    It is a strict sliding window. A token bucket would let twice as many requests through at its start.
    """

    def __init__(self, most: float, span_s: float, *, now: Callable[[], float]) -> None:
        self._most, self._span_s, self._now = max(1, int(most)), span_s, now
        self._spent: deque[float] = deque()

    def delay_s(self) -> float:
        """Return the seconds until one more request fits."""
        at_s = self._now()
        while self._spent and at_s - self._spent[0] > self._span_s - _CRUMB:
            self._spent.popleft()
        over = len(self._spent) - self._most
        return self._spent[over] + self._span_s - at_s if over >= 0 else 0.0

    def spend(self) -> None:
        """Count one request."""
        self._spent.append(self._now())


@dataclass(slots=True)
class _Job:
    """A request in the queue. A newer edit replaces `call`; `ends` are the futures of all callers.

    `message_id` is the message to edit or delete. `after` holds the acknowledgements that must be done first.
    """

    kind: _Kind
    message_id: int | None
    call: Callable[[], Awaitable[Sent | None]]
    after: set[asyncio.Task[None]]
    ends: list[asyncio.Future[Sent | None]] = field(default_factory=list)

    @property
    def abandoned(self) -> bool:
        return all(end.done() for end in self.ends)

    def done(self, result: Sent | None) -> None:
        for end in self.ends:
            if not end.done():
                end.set_result(result)

    def failed(self, error: Exception) -> None:
        for end in self.ends:
            if not end.done():
                end.set_exception(error)


@dataclass(slots=True)
class _Lane:
    """The queue of one chat. `until_s`: Telegram told it to wait until then; `busy`: a request is in progress."""

    windows: Mapping[_Kind, tuple[Window, ...]]
    jobs: deque[_Job] = field(default_factory=deque)
    until_s: float = 0.0
    busy: bool = False
    worker: asyncio.Task[None] | None = None


class Outbox:
    """Send for all chats of one bot. Methods raise the errors of Bot, but wait and retry after a 429.

    `rate_scale` multiplies all rates. `now` returns monotonic seconds. After `close` every call raises ChatAway.
    """

    def __init__(
        self,
        bot: Bot,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rate_scale: float = 1.0,
    ) -> None:
        self._bot, self._now, self._sleep = bot, now, sleep
        self._scale = rate_scale
        self._overall = self._window(_OVERALL)
        self._lanes: dict[int, _Lane] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._until_s = 0.0
        self._closed = False

    async def send(
        self, chat_id: int, screen: Screen, *, reply_to: int | None = None, silent: bool = False, thread_id: int = 0
    ) -> Sent:
        """Post a new message."""
        post = functools.partial(self._bot.send, chat_id, screen, reply_to=reply_to, silent=silent, thread_id=thread_id)
        return await self._posted(chat_id, post)

    async def document(
        self, chat_id: int, screen: Screen, file: tuple[str, str], *, reply_to: int | None = None, silent: bool = False
    ) -> Sent:
        """Post a file (name, content) with the text of the screen as its caption; or a word that it may not be sent."""
        post = functools.partial(self._bot.document, chat_id, screen, *file, reply_to=reply_to, silent=silent)
        try:
            return await self._posted(chat_id, post)
        except ChatRefused as error:
            if not is_without_files(error):
                raise
            return await self.send(chat_id, NOT_ALLOWED, reply_to=reply_to, silent=silent)

    async def _posted(self, chat_id: int, post: Callable[[], Awaitable[Sent]]) -> Sent:
        result = await self._queued(chat_id, "send", None, post)
        if result is None:
            raise Undelivered("Telegram named no message")
        return result

    async def upload(self, chat_id: int, screen: Screen, file: tuple[str, bytes], *, reply_to: int) -> Sent:
        """Post a file that may be large beside the queue: nothing waits for it. After a 429 it is not tried again."""
        if self._closed:
            raise _stopping()
        for window in self._lane(chat_id).windows["send"]:
            window.spend()
        return await self._bot.document(chat_id, screen, *file, reply_to=reply_to, timeout_s=UPLOAD_S)

    async def edit(self, chat_id: int, message_id: int, screen: Screen) -> bool:
        """Make a message show this screen, or a newer one if that is queued before this one is sent.

        Return False if the message is gone, or cannot be edited any more.
        """
        try:
            await self._queued(chat_id, "edit", message_id, lambda: self._bot.edit(chat_id, message_id, screen))
        except ChatRefused as error:
            if not vanished(error):
                raise
            return False
        return True

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message after all requests that were queued before."""
        await self._queued(chat_id, "delete", message_id, lambda: self._bot.delete(chat_id, message_id))

    async def make_topic(self, chat_id: int, name: str) -> int:
        """Make a topic in a chat, and return its id. A 429 of more than `TOPIC_PATIENCE_S` is raised as ChatAway."""
        made: list[int] = []

        async def make() -> None:
            made.append(await self._bot.make_topic(chat_id, name))

        await self._queued(chat_id, "topic", None, make)
        return made[0]

    async def rename_topic(self, chat_id: int, thread_id: int, name: str) -> None:
        """Give a topic another name, which nothing depends on: an error is only logged."""
        try:
            await self._queued(chat_id, "topic", None, lambda: self._bot.rename_topic(chat_id, thread_id, name))
        except ChatError as error:
            log.info("topic %d keeps its name: %s", thread_id, error)

    async def discard(self, chat_id: int, message_id: int) -> None:
        """Delete a message that nothing depends on: an error is only logged."""
        try:
            await self.delete(chat_id, message_id)
        except ChatError as error:
            log.warning("message %d could not be deleted: %s", message_id, error)

    def answer(self, query_id: str, text: str = "") -> asyncio.Task[None]:
        """Acknowledge a tap at once, and let later requests wait for it. The caller need not await the task."""
        task = asyncio.get_running_loop().create_task(self._answer(query_id, text))
        self._answers.add(task)
        task.add_done_callback(self._answered)
        return task

    async def arrived(self, chat_id: int, longest_s: float) -> None:
        """Return when the queue of this chat is empty and its last request is done, or after `longest_s`."""
        lane = self._lanes.get(chat_id)
        if lane is not None and lane.worker is not None:
            await asyncio.wait({lane.worker}, timeout=longest_s)

    async def close(self, *, grace_s: float = CLOSING_S) -> None:
        """Wait up to `grace_s` for requests in progress; fail all queued requests with ChatAway."""
        self._closed = True
        going = set(self._answers)
        for lane in self._lanes.values():
            while lane.jobs:
                lane.jobs.popleft().failed(_stopping())
            if lane.worker and lane.busy:
                going.add(lane.worker)
            elif lane.worker:
                lane.worker.cancel()
        if going:
            _, late = await asyncio.wait(going, timeout=grace_s)
            for task in late:
                task.cancel()
        workers = [lane.worker for lane in self._lanes.values() if lane.worker]
        await asyncio.gather(*workers, *going, return_exceptions=True)

    # acknowledgements

    async def _answer(self, query_id: str, text: str) -> None:
        if self._closed:
            raise _stopping()
        self._overall.spend()
        while True:
            try:
                return await self._bot.answer(query_id, text)
            except ChatAway as error:
                if error.retry_after_s is None:
                    raise
                # An acknowledgement names no chat, so this wait is for the whole bot.
                self._until_s = max(self._until_s, self._now() + error.retry_after_s)
                await self._sleep(error.retry_after_s)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.info("a tap was not acknowledged: %s", error)

    # queues

    async def _queued(
        self, chat_id: int, kind: _Kind, message_id: int | None, call: Callable[[], Awaitable[Sent | None]]
    ) -> Sent | None:
        if self._closed:
            raise _stopping()
        loop = asyncio.get_running_loop()
        end: asyncio.Future[Sent | None] = loop.create_future()
        job = _Job(kind, message_id, call, set(self._answers), [end])
        lane = self._lane(chat_id)
        older = _queued_edit(lane, job)
        if older:
            _renew(older, job)
        else:
            lane.jobs.append(job)
        if lane.worker is None or lane.worker.done():
            lane.worker = loop.create_task(self._work(lane))
        return await end

    def _lane(self, chat_id: int) -> _Lane:
        if chat_id not in self._lanes:
            is_group = chat_id < 0
            posts = [_CHAT, _GROUP] if is_group else [_CHAT]
            edits = [_CHAT_EDITS, _GROUP_EDITS] if is_group else [_CHAT_EDITS]
            posting, editing = ((self._overall, *(self._window(rate) for rate in kind)) for kind in (posts, edits))
            self._lanes[chat_id] = _Lane({"send": posting, "topic": posting, "edit": editing, "delete": editing})
        return self._lanes[chat_id]

    def _window(self, rate: tuple[float, float]) -> Window:
        most, span_s = rate
        return Window(most * self._scale, span_s, now=self._now)

    async def _work(self, lane: _Lane) -> None:
        while lane.jobs:
            await self._turn(lane)

    async def _turn(self, lane: _Lane) -> None:
        """Do one wait or one request for the first job; after a wait, the next turn checks it again."""
        job = lane.jobs[0]
        if job.abandoned:
            lane.jobs.popleft()
        elif delay_s := self._delay_s(lane, job):
            await self._sleep(delay_s)
        elif going := {task for task in job.after if not task.done()}:
            await asyncio.wait(going)
        else:
            await self._request(lane, lane.jobs.popleft())

    def _delay_s(self, lane: _Lane, job: _Job) -> float:
        told_s = max(lane.until_s, self._until_s) - self._now()
        paced_s = max(window.delay_s() for window in lane.windows[job.kind])
        delay_s = max(told_s, paced_s)
        return delay_s if delay_s > _CRUMB else 0.0

    async def _request(self, lane: _Lane, job: _Job) -> None:
        for window in lane.windows[job.kind]:
            window.spend()
        lane.busy = True
        try:
            job.done(await job.call())
        except ChatAway as error:
            wait_s = error.retry_after_s
            if wait_s is None or self._closed or (job.kind == "topic" and wait_s > TOPIC_PATIENCE_S):
                job.failed(error)
            else:
                self._hold(lane, job, wait_s)
        except asyncio.CancelledError:
            job.failed(Undelivered("Hermes stopped before Telegram answered"))
            raise
        except Exception as error:  # noqa: BLE001 - it is raised in the caller of the request
            job.failed(error)
        finally:
            lane.busy = False

    def _hold(self, lane: _Lane, job: _Job, wait_s: float) -> None:
        """Queue the request again after a 429; this chat waits, and all chats wait if another one waits already."""
        at_s = self._now()
        if any(other.until_s > at_s for other in self._lanes.values() if other is not lane):
            self._until_s = max(self._until_s, at_s + wait_s)
        lane.until_s = max(lane.until_s, at_s + wait_s)
        log.info("Telegram asks to wait %g s", wait_s)
        newer = _queued_edit(lane, job)
        if newer:
            lane.jobs.remove(newer)
            _renew(job, newer)
        lane.jobs.appendleft(job)


def _queued_edit(lane: _Lane, edit: _Job) -> _Job | None:
    """Return the queued edit of the same message, or None without one, or if a deletion of it is queued later."""
    if edit.kind != "edit":
        return None
    about = (job for job in reversed(lane.jobs) if job.message_id == edit.message_id)
    last = next(about, None)
    return last if last and last.kind == "edit" else None


def _renew(older: _Job, newer: _Job) -> None:
    """Put the newer edit in the place of the older one."""
    older.call = newer.call
    older.ends += newer.ends
    older.after |= newer.after


def _stopping() -> ChatAway:
    return ChatAway("Hermes is stopping")

"""Posts messages about a session into its topic, which is made when it is first needed.

Nothing depends on topics: if there is none, the message goes to the main list of the chat, and the person reads once
why. If Hermes stops between making a topic and noting it, an empty topic stays, and the next message makes another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

from hermes.chat.bot import Sent
from hermes.chat.failures import is_without_topic
from hermes.chat.outbox import Outbox
from hermes.chat.screens import topics as screens
from hermes.chat.screens.screen import Screen
from hermes.core import prompt_routing, topics
from hermes.core.prompt_routing import Sessions
from hermes.core.topics import TopicMode
from hermes.errors import ChatAway, ChatRefused, StoreError
from hermes.listener.background import Background
from hermes.listener.phone.chat_memory import Memory
from hermes.listener.phone.messenger import Messenger
from hermes.model.ask import Source
from hermes.model.chat_memory import Topic
from hermes.model.events import Text
from hermes.model.prompt import Target

log = logging.getLogger(__name__)

PAUSE_S: Final = 60.0
"""After a refusal, Hermes does not try to make a topic for so long."""
SWITCHED_OFF: Final = "not a forum"
"""A part of Telegram's sentence about a group whose topics are off."""
TRIES: Final = 3
"""After so many failures of the connection one after the other, a message does not wait for its topic any more."""


class Topics:
    """The topics of one chat. Its `post` takes the place of `Outbox.send` for messages about a session."""

    def __init__(
        self,
        memory: Memory,
        outbox: Outbox,
        messenger: Messenger,
        background: Background,
        mode: TopicMode,
        *,
        monotonic: Callable[[], float],
    ) -> None:
        self._memory = memory
        self._outbox = outbox
        self._messenger = messenger
        self._background = background
        self._mode: TopicMode = mode
        self._monotonic = monotonic
        self._making = asyncio.Lock()
        self._paused = (0, 0.0)  # no topic is made in this chat until then (monotonic)
        self._failures = 0

    async def post(
        self,
        chat_id: int,
        screen: Screen,
        source: Source,
        agent_name: str,
        *,
        thread_id: int | None = None,
        reply_to: int | None = None,
        silent: bool = False,
    ) -> Sent:
        """Post a message about a session of the agent with this name; return it with its real topic. Raises ChatError.

        `thread_id` is the topic in which it must stand while that exists, 0 the main list, None the session's own one.
        """
        send = partial(self._outbox.send, chat_id, screen, reply_to=reply_to, silent=silent)
        place = await self._thread(chat_id, source, agent_name) if thread_id is None else thread_id
        sent = await self._sent(send, chat_id, place)
        if sent is None:
            place = await self._thread(chat_id, source, agent_name)
            sent = await self._sent(send, chat_id, place)
        return await send() if sent is None else sent

    async def _sent(self, send: Callable[..., Awaitable[Sent]], chat_id: int, thread_id: int) -> Sent | None:
        """Send a message into a topic; None if the topic does not exist any more, and is forgotten."""
        try:
            sent = await send(thread_id=thread_id)
        except ChatRefused as error:
            if not thread_id or not is_without_topic(error):
                raise
            await self._lost(chat_id, thread_id, error.reason)
            return None
        if thread_id and sent.thread_id != thread_id:
            # A group whose topics are off ignores them. They are there again if somebody switches them on.
            await self._refused(chat_id, SWITCHED_OFF, PAUSE_S)
        elif thread_id and self._memory.at.no_topic == screens.why_no_topic(SWITCHED_OFF):
            await self._save(no_topic="")  # they are on again
        return sent

    def is_apart(self, source: Source) -> bool:
        """Tell whether the messages about a session stand in a topic, as far as is known."""
        return self._about(source) is not None and not self._memory.at.no_topic

    def at(self, chat_id: int, thread_id: int) -> Topic | None:
        """Return the topic of ours with this id, None if it is not one, or topics are off."""
        return None if self._mode == "off" else topics.at(self._memory.at.topics, chat_id, thread_id)

    def seen(self, text: Text) -> Text:
        """Return a text as Hermes sees it: one in a topic that is not ours stands in the chat itself."""
        return text if self.at(text.chat_id, text.thread_id) is not None else replace(text, thread_id=0)

    def target(self, text: Text, known: Sessions) -> Target | None:
        """Return the session that a text is for because of the topic in which it stands, None if there is none."""
        topic = self.at(text.chat_id, text.thread_id)
        if topic is None:
            return None
        armed = prompt_routing.armed_card(known.cards, text.user.id, text.at_s)
        return prompt_routing.in_topic(topic, known, armed)

    async def _thread(self, chat_id: int, source: Source, agent_name: str) -> int:
        """Return the topic to post to, 0 for the main list."""
        wanted = self._about(source)
        if wanted is None:
            return 0
        known = topics.find(self._memory.at.topics, chat_id, wanted)
        if known is not None:
            self._used(known, wanted)
            return known.thread_id
        async with self._making:
            known = topics.find(self._memory.at.topics, chat_id, wanted)
            if known is not None:
                return known.thread_id
            return await self._made(chat_id, wanted, agent_name)

    def _about(self, source: Source) -> Source | None:
        """As `topics.about`; None if topics are off."""
        return None if self._mode == "off" else topics.about(source, self._mode)

    def _used(self, known: Topic, wanted: Source) -> None:
        """Note the use of a topic; give it another name if its session has another title."""
        title = wanted.session_title
        if title and title != known.about.session_title:
            name = screens.topic_name(wanted, self._names(known.chat_id, but=known.thread_id))
            known = replace(known, name=name, about=replace(known.about, session_title=title))
            self._background.spawn(self._outbox.rename_topic(known.chat_id, known.thread_id, name))
        self._memory.note(topics=topics.kept(self._memory.at.topics, known))

    async def _made(self, chat_id: int, wanted: Source, agent_name: str) -> int:
        if self._paused[0] == chat_id and self._monotonic() < self._paused[1]:
            return 0
        name = screens.topic_name(wanted, self._names(chat_id))
        try:
            thread_id = await self._outbox.make_topic(chat_id, name)
        except ChatAway as error:
            await self._away(chat_id, error)
            return 0
        except ChatRefused as error:
            if error.moved_to is not None or error.blocked:
                raise
            await self._refused(chat_id, str(error), PAUSE_S)
            return 0
        self._failures = 0
        log.info("topic %d is made", thread_id)
        made = Topic(chat_id, thread_id, name, wanted, agent_name)
        await self._save(topics=topics.kept(self._memory.at.topics, made), no_topic="")
        return thread_id

    async def _away(self, chat_id: int, error: ChatAway) -> None:
        """Let the message go to the main list if the wait is long. Raises ChatAway: it is worth another try."""
        if error.retry_after_s is not None:
            await self._refused(chat_id, str(error), error.retry_after_s)
            return
        self._failures = (self._failures + 1) % TRIES
        if self._failures:
            raise error
        log.warning("a message goes without a topic: %s", error)

    async def _refused(self, chat_id: int, reason: str, pause_s: float) -> None:
        """Make no topic for a while, and tell the person why, unless they have read just that before."""
        log.warning("no topic could be made: %s", reason)
        self._paused = (chat_id, self._monotonic() + pause_s)
        why = screens.why_no_topic(reason)
        if why != self._memory.at.no_topic:
            self._messenger.say(screens.no_topic(why, self._messenger.machine))
            await self._save(no_topic=why)

    async def _lost(self, chat_id: int, thread_id: int, why: str) -> None:
        """Forget a topic that is gone, so that the next message makes it again."""
        log.info("topic %d cannot be used: %s", thread_id, why)
        left = (one for one in self._memory.at.topics if (one.chat_id, one.thread_id) != (chat_id, thread_id))
        await self._save(topics=tuple(left))

    async def _save(self, **changes: object) -> None:
        """Save this. What cannot be saved now is kept in memory, and saved with the next change."""
        try:
            await self._memory.save(**changes)
        except StoreError as error:
            log.error("a topic was not noted: %s", error)  # noqa: TRY400 (a full disk, not a defect)

    def _names(self, chat_id: int, but: int = 0) -> set[str]:
        return {one.name for one in self._memory.at.topics if one.chat_id == chat_id and one.thread_id != but}

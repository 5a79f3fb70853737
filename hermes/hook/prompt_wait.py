"""`hermes hook AGENT --prompts`: wait in a session for prompts from the phone, and hand each over to the agent.

The hook leaves a receipt in the inbox before it hands a prompt over, so a prompt is handed over at most once: the
listener lays one ready again only if no hook has taken it.

It waits as long as its agent runs, prompts are on, and the session lasts. One hook waits in a session: a second one
exits at once. None starts a listener.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time

from hermes.hook import prompt_files, spool
from hermes.hook.wait import LOOK_EVERY_S, has_reader, is_stopped, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.hook.shape import Hands, PromptPlace

TAKEN = "prompt.taken"
"""The type of a receipt."""


class PromptHook:
    """A hook that waits for prompts: its store, its agent, its parent process, and its session on this machine.

    `keep` keeps a line of news that the agent's plugin hands over, and `log` writes one line to the log.
    """

    def __init__(
        self,
        store: str,
        agent: str,
        parent: int,
        place: PromptPlace,
        machine: str,
        keep: Callable[[bytes], object],
        log: Callable[[str], object],
    ) -> None:
        self.store = store
        self.agent = agent
        self.parent = parent
        self.place = place
        self.machine = machine
        self.name = prompt_files.name_of(agent, machine, place.session_id)
        self.keep = keep
        self.log = log


def wait(
    hook: PromptHook, hands: Hands, released: int, *, rest: bytes = b"", look_every_s: float = LOOK_EVERY_S
) -> int:
    """Wait, hand prompts over, and return the exit status. Raises OSError.

    `released` becomes readable at SIGTERM; `rest` are the bytes that came after the first line.
    """
    if not spool.takes_prompts(hook.store):
        return 0
    place = hook.place
    said = {"agent": hook.agent, "machine": hook.machine, "session": place.session_id, "since": str(time.time())}
    said |= {"directory": place.directory, "title": place.title, "record": place.record}
    said |= {"resumed": "yes"} if place.resumed else {}
    if place.begins:
        prompt_files.begin_session(hook.store, hook.name)
    held = prompt_files.take_place(hook.store, hook.name, said)
    if held is None:
        return 0
    try:
        prompt_files.confirm_taken(hook.store, hook.name)  # of a hook that died: it left no receipt, or a whole one
        with contextlib.closing(prompt_files.bell(hook.store, hook.name)) as bell:
            return _Watch(hook, hands, held, rest, look_every_s).until_over(bell.fileno(), released)
    finally:
        prompt_files.leave_place(hook.store, hook.name, held)


class _Watch:
    def __init__(self, hook: PromptHook, hands: Hands, held: int, rest: bytes, look_every_s: float) -> None:
        self._hook = hook
        self._hands = hands
        self._held = held
        self._news = rest
        self._look_every_s = look_every_s
        self._said_full = False

    def until_over(self, bell: int, released: int) -> int:
        hook, stays = self._hook, self._hands == "lines"
        looking = select.poll()
        for descriptor in (bell, released, *((0,) if stays else ())):
            looking.register(descriptor, select.POLLIN)
        self._keep_news(b"")
        if stays:
            write(1, b'{"waits": true}\n')  # from now on the plugin hands its news to this hook
        while self._is_wanted():
            text = None if is_stopped(hook.parent) else prompt_files.take(hook.store, hook.name)
            if text is not None and self._hand_over(text) and not stays:
                return 2
            for descriptor, _ in looking.poll(self._look_every_s * 1000):
                data = b"" if descriptor == released else os.read(descriptor, 65536)
                if not data:
                    return 0
                if descriptor == 0:
                    self._keep_news(data)
        return 0

    def _keep_news(self, data: bytes) -> None:
        *lines, self._news = (self._news + data).split(b"\n")
        for line in lines:
            self._hook.keep(line)
        if lines:
            spool.nudge(self._hook.store)

    def _is_wanted(self) -> bool:
        """Tell whether the agent, the session and the store are there, and prompts are on."""
        hook = self._hook
        is_read = self._hands != "lines" or has_reader()
        is_there = os.getppid() == hook.parent and prompt_files.has_place(hook.store, hook.name, self._held)
        is_over = prompt_files.has_ended(hook.store, hook.name)
        return is_there and is_read and not is_over and spool.takes_prompts(hook.store)

    def _hand_over(self, text: str) -> bool:
        """Leave the receipt and hand the prompt over; tell whether the agent has it. Raises OSError."""
        hook = self._hook
        given = _read(text)
        if given is None or time.time() > given["until"]:
            prompt_files.confirm_taken(hook.store, hook.name)
            return False
        if given["id"]:
            try:
                receipt = {"type": TAKEN, "session": hook.place.session_id, "prompt": given["id"]}
                spool.drop(hook.store, spool.record(hook.agent, receipt))
            except OSError as error:
                prompt_files.put_back(hook.store, hook.name)
                if not self._said_full:
                    self._said_full = True
                    hook.log(f"a prompt waits: its receipt could not be written: {error.strerror}")
                return False
        prompt_files.confirm_taken(hook.store, hook.name)
        spool.nudge(hook.store)
        # The session may have ended meanwhile, and the agent would give the text to the one after it.
        if prompt_files.has_ended(hook.store, hook.name) or os.getppid() != hook.parent:
            return False
        if self._hands == "lines":
            return write(1, json.dumps(given | {"session": hook.place.session_id}).encode() + b"\n")
        return write(2, given["text"].encode("utf-8", "replace"))


def _read(text: str) -> dict[str, Any] | None:
    """Return the prompt that lay ready, None if another program damaged it."""
    with contextlib.suppress(ValueError):
        given = json.loads(text)
        if isinstance(given, dict) and isinstance(given.get("until"), int | float):
            return given | {"id": str(given.get("id", "")), "text": str(given.get("text", ""))}
    return None

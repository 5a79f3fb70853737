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

    from hermes.hook.shape import PromptPlace

TAKEN = "prompt.taken"
"""The type of a receipt."""


class PromptHook:
    """A hook that waits for prompts: its store, its agent, its parent process, and its session on this machine.

    `stays`: it hands each prompt over in a line, and goes on waiting. `keep` keeps a line of news that the agent's
    plugin hands over, and `log` writes one line to the log.
    """

    def __init__(
        self,
        store: str,
        agent: str,
        parent: int,
        place: PromptPlace,
        *,
        stays: bool,
        keep: Callable[[bytes], object],
        log: Callable[[str], object],
    ) -> None:
        self._store = store
        self._agent = agent
        self._parent = parent
        self._place = place
        self._stays = stays
        self._keep = keep
        self._log = log
        self._machine = spool.machine(store)
        self._name = prompt_files.name_of(agent, self._machine, place.session_id)
        self._news = b""
        self._said_full = False

    def wait(self, released: int, rest: bytes) -> int:
        """Wait, hand prompts over, and return the exit status. Raises OSError.

        `released` becomes readable at SIGTERM; `rest` are the bytes that came after the first line.
        """
        store, name, place = self._store, self._name, self._place
        if not spool.takes_prompts(store):
            return 0
        said = {"agent": self._agent, "machine": self._machine, "session": place.session_id, "since": str(time.time())}
        said |= {"directory": place.directory, "title": place.title, "record": place.record}
        said |= {"resumed": "yes"} if place.resumed else {}
        # A turn that begins shows that the session is open here, although it may have been closed in another terminal.
        has_ended = prompt_files.has_ended(store, name)
        if place.begins or (has_ended and not prompt_files.has_ended_in(store, name, self._parent)):
            prompt_files.begin_session(store, name)
        held = prompt_files.take_place(store, name, said)
        if held is None:
            return 0
        try:
            prompt_files.confirm_taken(store, name)  # of a hook that died: it left no receipt, or a whole one
            self._keep_news(rest)
            with contextlib.closing(prompt_files.bell(store, name)) as bell:
                return self._until_over(bell.fileno(), released, held)
        finally:
            prompt_files.leave_place(store, name, held)

    def _until_over(self, bell: int, released: int, held: int) -> int:
        stays = self._stays
        looking = select.poll()
        for descriptor in (bell, released, *((0,) if stays else ())):
            looking.register(descriptor, select.POLLIN)
        if stays:
            write(1, b'{"waits": true}\n')  # from now on the plugin hands its news to this hook
        while self._is_wanted(held):
            text = None if is_stopped(self._parent) else prompt_files.take(self._store, self._name)
            if text is not None and self._hand_over(text) and not stays:
                return 2
            for descriptor, _ in looking.poll(LOOK_EVERY_S * 1000):
                data = b"" if descriptor == released else os.read(descriptor, 65536)
                if not data:
                    return 0
                if descriptor == 0:
                    self._keep_news(data)
        return 0

    def _keep_news(self, data: bytes) -> None:
        *lines, self._news = (self._news + data).split(b"\n")
        for line in lines:
            self._keep(line)
        if lines:
            spool.nudge(self._store)

    def _is_wanted(self, held: int) -> bool:
        """Tell whether the agent, the session and the store are there, and prompts are on."""
        is_read = not self._stays or has_reader()
        is_there = os.getppid() == self._parent and prompt_files.has_place(self._store, self._name, held)
        is_over = prompt_files.has_ended(self._store, self._name)
        return is_there and is_read and not is_over and spool.takes_prompts(self._store)

    def _hand_over(self, text: str) -> bool:
        """Leave the receipt and hand the prompt over; tell whether the agent has it. Raises OSError."""
        store, name = self._store, self._name
        given = prompt_files.read(text)
        if given is None or time.time() > given["until"]:
            prompt_files.confirm_taken(store, name)
            return False
        if given["id"]:
            try:
                receipt = {"type": TAKEN, "session": self._place.session_id, "prompt": given["id"]}
                spool.drop(store, spool.record(self._agent, receipt))
            except OSError as error:
                prompt_files.put_back(store, name)
                if not self._said_full:
                    self._said_full = True
                    self._log(f"a prompt waits: its receipt could not be written: {error.strerror}")
                return False
        prompt_files.confirm_taken(store, name)
        spool.nudge(store)
        # The session may have ended meanwhile, and the agent would give the text to the one after it.
        if prompt_files.has_ended(store, name) or os.getppid() != self._parent:
            return False
        if self._stays:
            return write(1, json.dumps(given | {"session": self._place.session_id}).encode() + b"\n")
        return write(2, given["text"].encode("utf-8", "replace"))

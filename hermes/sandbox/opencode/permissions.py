"""The permissions that the scripted agent asks for, as OpenCode 1.1.53 and 1.18.33 do. No HTTP here.

Seen in both versions: a call asks for one permission after the other; a reject rejects all pending permissions of the
session; an "always" also allows the pending permissions of the session that it covers, and later requests that it
covers in the whole directory are not asked, until a restart or a disposal.

A late "once" to a deleted session runs the command. After an abort the command does not run, but 1.1.53 starts it and
ends it at once, and its part shows that.
"""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

from hermes.sandbox.opencode.events import Effect, Json, Manner, Session
from hermes.sandbox.opencode.prompts import Prompts
from hermes.sandbox.opencode.turns import open_parts

Reply = Literal["once", "always", "reject"]

REJECTED: Final[dict[Manner, str]] = {
    "old": "Error: The user rejected permission to use this specific tool call.",
    "new": "The user rejected permission to use this specific tool call.",
}
_TWO_WORDS: Final = frozenset({"git", "npm"})
_WHY: Final = "What the model says of it"


class Permissions(Prompts):
    """The pending permissions, and the rules that `always` replies made."""

    def __init__(self, *world: Any, **seams: Any) -> None:
        super().__init__(*world, **seams)
        self.permissions: dict[str, Json] = {}
        self._asked: dict[str, Json] = {}
        self._following: dict[str, Json] = {}
        self._always: set[tuple[str, str, str]] = set()
        self._allowed: dict[str, str] = {}

    # --- actions of the agent -------------------------------------------------------------------------------------

    def ask_permission(
        self,
        kind: str,
        patterns: Sequence[str],
        *,
        metadata: Json | None = None,
        always: Sequence[str] | None = None,
        session: str | None = None,
        directory: str | None = None,
        beside: str | None = None,
    ) -> str:
        """Let the agent ask for a permission, in an existing or a new session, and return the request id.

        If an `always` covers the request, its call ends without a request, and the id is "". In a session that waits
        for an answer, another call of the same step asks. `beside` is a request whose call this one shares: a call asks
        for one permission after the other, so this one is asked (and listed) once that one is allowed, and never if it
        is rejected. Without `metadata` or `always`, they are as OpenCode makes them from such patterns.
        """
        with self.lock:
            shared = None if beside is None else self._sharing(beside)
            asking = self.sessions[shared["sessionID"] if shared else session or self.session(directory=directory)]
            request: Json = {
                "id": self.new_id("per"),
                "sessionID": asking.id,
                "permission": kind,
                "patterns": list(patterns),
                "metadata": _metadata(self.manner, asking, kind, patterns) if metadata is None else dict(metadata),
                "always": _always(kind, patterns) if always is None else list(always),
            }
            if shared is None:
                return self._begin(asking, request)
            return self._follow(request, shared)

    # --- actions of a person at the desk --------------------------------------------------------------------------

    def permit(self, request_id: str, reply: Reply, message: str = "") -> None:
        """Reply to a permission at the desk; `message` tells the model the reason of a reject."""
        if reply not in get_args(Reply):
            raise ValueError(f"nobody says {reply!r} to a permission")
        if request_id not in self.permissions:
            raise LookupError(f"nothing is asked by {request_id}")
        self.reply_permission(request_id, reply, message)

    def allowed_by(self, request_id: str) -> str | None:
        """Return the reply that let the call of this permission go on, also if the call never ended; None without."""
        with self.lock:
            return self._allowed.get(request_id)

    # --- called by the HTTP routes --------------------------------------------------------------------------------

    def listed_permissions(self, directory: str) -> list[Json]:
        """Return the pending permissions of a directory in creation order, also of stopped or deleted sessions."""
        with self.lock:
            return [one for one in self.permissions.values() if self._place(one) == directory]

    def reply_permission(self, request_id: str, reply: Reply, message: str = "") -> None:
        """Reply to a permission, and settle others of its session with it; send events for stopped sessions too."""
        with self.lock:
            request = self.permissions.pop(request_id)
            if reply == "always":
                self._always |= {(self._place(request), request["permission"], each) for each in request["always"]}
            swept = self._swept(request, reply)
            for one in (request, *swept):
                told = {"sessionID": one["sessionID"], "requestID": one["id"], "reply": reply}
                self.emit("permission.replied", told, self._place(one))
            self._come(request, (reply, message) if reply == "reject" and message else (reply,))
            for one in swept:
                self._come(one, (reply,))

    # --- below here: the caller holds the lock ----------------------------------------------------------------------

    def _place(self, request: Json) -> str:
        return self.sessions[request["sessionID"]].directory

    def _forget_permissions(self) -> None:
        for forgotten in (self.permissions, self._following, self._always):
            forgotten.clear()

    def _dispose_permissions(self, place: str) -> None:
        self.permissions = {one: asked for one, asked in self.permissions.items() if self._place(asked) != place}
        self._following = {one: asked for one, asked in self._following.items() if self._place(asked) != place}
        self._always = {rule for rule in self._always if rule[0] != place}

    def _sharing(self, request_id: str) -> Json:
        """Return the request whose call will ask again; raise LookupError if that call has ended."""
        shared = self._asked[request_id]
        session = self.sessions[shared["sessionID"]]
        if not self._works_on(session, shared) or not _open_part(session, shared):
            raise LookupError(f"the call of {request_id} has ended")
        return shared

    def _begin(self, session: Session, request: Json) -> str:
        call_id = f"call_{secrets.token_hex(8)}"
        begun = self._call(_tool(request), call_id, _input(request))
        message = self._turn(session, [begun], same_step=self._is_waiting(session))
        request["tool"] = {"messageID": message["info"]["id"], "callID": call_id}
        if self._is_covered(request):
            self._tell_parts(session, message)
            self._let_go(session, request, lambda: self._end_call(session, request))
            return ""
        self._pend(request)
        self._tell_asked("permission.asked", session, request, message)
        return str(request["id"])

    def _follow(self, request: Json, shared: Json) -> str:
        request["tool"] = shared["tool"]
        self._asked[request["id"]] = request
        self._following[shared["id"]] = request
        return str(request["id"])

    def _pend(self, request: Json) -> None:
        self.permissions[request["id"]] = self._asked[request["id"]] = request

    def _is_covered(self, request: Json) -> bool:
        rules = [
            each for place, kind, each in self._always if (place, kind) == (self._place(request), request["permission"])
        ]
        return all(any(_matches(pattern, rule) for rule in rules) for pattern in request["patterns"])

    def _swept(self, request: Json, reply: Reply) -> list[Json]:
        """Remove and return the pending permissions of the same session that this reply also answers."""
        same = [one for one in self.permissions.values() if one["sessionID"] == request["sessionID"]]
        swept = [one for one in same if reply == "reject" or (reply == "always" and self._is_covered(one))]
        for one in swept:
            del self.permissions[one["id"]]
        return swept

    def _let_go(self, session: Session, request: Json, end: Callable[[], None]) -> None:
        self._end_tool(lambda: self._works_on(session, request), end)

    def _come(self, request: Json, said: tuple[str, ...]) -> None:
        """Apply the reply to the call that asked, or let 1.1.53 start the command of a stopped turn."""
        session = self.sessions[request["sessionID"]]
        if self._works_on(session, request):
            if said[0] != "reject":
                self._allowed[request["id"]] = said[0]
            self._let_go(session, request, lambda: self._settled(session, request, said))
        elif self.manner == "old" and said[0] != "reject" and not session.deleted:
            self._start_late(session, request)

    def _settled(self, session: Session, request: Json, said: tuple[str, ...]) -> None:
        self.effects.append(Effect(request["id"], (said,)))
        following = self._following.pop(request["id"], None)
        if said[0] == "reject":
            self._ended(session, request, {"status": "error", "error": self._rejection(*said[1:])})
            self._step_over(session, request, "")
        elif following is None or not self._ask_next(session, following):
            self._end_call(session, request)

    def _ask_next(self, session: Session, request: Json | None) -> bool:
        """Ask the call's next permission that no `always` covers; return False if there is none."""
        while request and self._is_covered(request):
            request = self._following.pop(request["id"], None)
        if request:
            self._pend(request)
            self.emit("permission.asked", request, session.directory)
        return request is not None

    def _end_call(self, session: Session, request: Json) -> None:
        self._ended(session, request, self._done(request))
        self._step_over(session, request, "")

    def _done(self, request: Json) -> Json:
        told = f"Done: {', '.join(request['patterns'])}\n"
        ran = {"output": told, "exit": 0} if _tool(request) == "bash" else {}
        said = {"description": _WHY} if ran and self.manner == "old" else {}
        return {
            "status": "completed",
            "output": told,
            "title": _WHY if said else " && ".join(request["patterns"]),
            "metadata": {**ran, **said, "truncated": False},
        }

    def _rejection(self, message: str = "") -> str:
        plain = REJECTED[self.manner]
        return f"{plain.removesuffix('.')} with the following feedback: {message}" if message else plain

    def _start_late(self, session: Session, request: Json) -> None:
        """Let 1.1.53 start a stopped turn's command and end it before it does anything; its part stays open."""
        for part in _open_part(session, request) if _tool(request) == "bash" else ():
            part["state"] |= {"metadata": {"output": "", "description": _WHY}, "time": {"start": self.now_ms()}}
            self.emit("message.part.updated", {"part": part, "sessionID": session.id}, session.directory)


def _open_part(session: Session, request: Json) -> list[Json]:
    return [part for part in open_parts(session) if part["callID"] == request["tool"]["callID"]]


def _tool(request: Json) -> str:
    """Return the tool that asks for this; a command can also ask for a directory, but then names no file."""
    if request["permission"] == "external_directory":
        return "read" if "filepath" in request["metadata"] else "bash"
    return str(request["permission"])


def _input(request: Json) -> Json:
    """Return the tool input from the model."""
    metadata, line = request["metadata"], " && ".join(request["patterns"])
    given: dict[str, Json] = {
        "bash": {"command": metadata.get("command", line), "description": _WHY},
        "edit": {"filePath": metadata.get("filepath", line), "oldString": "one", "newString": "two"},
        "read": {"filePath": metadata.get("filepath", line)},
        "webfetch": {key: metadata[key] for key in ("url", "format", "timeout") if key in metadata},
    }
    return given.get(_tool(request), {})


def _metadata(manner: Manner, session: Session, kind: str, patterns: Sequence[str]) -> Json:
    """Return the metadata that OpenCode gives such a request."""
    first = patterns[0] if patterns else ""
    file, folder = posixpath.join(session.directory, first), posixpath.dirname(first)
    diff = f"Index: {file}\n{'=' * 67}\n--- {file}\n+++ {file}\n@@ -1,1 +1,1 @@\n-one\n+two\n"
    told: dict[str, Json] = {
        "bash": {"command": " && ".join(patterns)} if manner == "new" else {},
        "edit": {"filepath": file, "diff": diff},
        "webfetch": {"url": first, "format": "text"},
        "external_directory": {"filepath": posixpath.join(folder, "file"), "parentDir": folder},
    }
    return told.get(kind, {})


def _always(kind: str, patterns: Sequence[str]) -> list[str]:
    """Return the patterns that an `always` would allow: a command's first words, a folder, or everything."""
    if kind == "external_directory":
        return list(patterns)
    if kind != "bash":
        return ["*"]
    commands = [pattern.split() for pattern in patterns]
    heads = [" ".join(words[: 2 if words[0] in _TWO_WORDS else 1]) for words in commands if words]
    return [f"{head} *" for head in dict.fromkeys(heads)]


def _matches(text: str, pattern: str) -> bool:
    """Tell whether a rule's pattern fits; "git status *" also fits "git status"."""
    wanted = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    if wanted.endswith(r"\ .*"):
        wanted = wanted.removesuffix(r"\ .*") + r"(\ .*)?"
    return re.fullmatch(wanted, text, re.DOTALL) is not None

"""The stand-in answers as OpenCode 2 was seen to answer: same request, same status, same content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2

Json = dict[str, Any]
PAYLOADS = Path(__file__).parents[2] / "payloads" / "opencode2"
RECORDINGS = sorted(path.stem for path in PAYLOADS.glob("*.json") if not path.stem.endswith("events"))
ID = re.compile(r"\b(?:ses|frm|per|msg|call)_[A-Za-z0-9]+")
# What the stand-in does not have: the routes that Hermes never calls.
ABSENT = re.compile(
    r"GET /api/(server|location|agent|command|model|provider|skill|project|question/request|config|plugin|mcp)$"
    r"|\w+ /api/permission/saved"
    r"|\w+ /api/session/\w+/(synthetic|shell|command|wait|rename|model|agent|compact|context)\b"
    r"|DELETE /api/debug/location$"
)
# These depend on what was there before the recording: on earlier sessions, or on a header that it leaves out.
VOLATILE = re.compile(r"/api/session/active|/api/session\?|/api/debug/location|/api/form/request$")
NOT_REPLAYED = {0: "nobody answered", 500: "a folder is not there, and the stand-in looks at no folders"}
QUESTION = {"header": "Database", "question": "Which?", "options": []}
Step = Callable[["Replay"], object]


def _nothing(_: Replay) -> None:
    pass


def _without_password(play: Replay) -> None:
    play.has_password = False


def _asks(at: int) -> Step:
    return lambda play: play.form(at)


def _child_asks(at: int) -> Step:
    def asks(play: Replay) -> None:
        child, _ = play.names(at)
        parent = [one for one in play.ids.values() if one.startswith("ses_")][-1]
        play.ids[child] = play.agent.session("do it", parent=parent)
        play.form(at)

    return asks


def _answers(at: int, label: str) -> Step:
    return lambda play: play.agent.answer(play.form(at), [[label]])


def _dismisses(at: int) -> Step:
    return lambda play: play.agent.dismiss(play.form(at))


def _forgets(at: int) -> Step:
    return lambda play: play.agent.forget(play.form(at))


def _evicts(directory: str) -> Step:
    return lambda play: play.agent.evict(directory)


def _stops(play: Replay) -> None:
    """Restart; the model then answers the prompts that waited, instead of asking again."""
    for session in {play.agent.forms[form].record["sessionID"] for form in play.agent.restart().values()}:
        play.agent.abort(session)
        while play.agent.inbox(session):
            play.agent.deliver(session)
            play.agent.say(session, "Hello from the fake model.")


def _is_killed(play: Replay) -> None:
    play.agent.restart(killed=True)


def _holds(play: Replay) -> None:
    """The directory is still being loaded when the prompts come."""
    play.agent.holds_prompts = True


def _takes(at: int) -> Step:
    """The turn takes what waits."""

    def takes(play: Replay) -> None:
        play.agent.holds_prompts = False
        play.agent.deliver(play.ids[play.names(at)[0]])

    return takes


def _works(at: int) -> Step:
    return lambda play: play.agent.use_tool(play.ids[play.names(at)[0]], "shell")


def _says(at: int, times: int = 1) -> Step:
    def says(play: Replay) -> None:
        for _ in range(times):
            play.agent.say(play.ids[play.names(at)[0]], "Hello from the fake model.")

    return says


def _goes_on(play: Replay) -> None:
    (session,) = play.agent.sessions
    play.agent.go_on(session)


# What happened beside the requests of a recording: before which of them, and what. A step finds the names of session
# and form in the path of the request that it is given.
BESIDE: dict[str, dict[int, Step]] = {
    "01-info-auth-lists": dict.fromkeys((2, 3, 7, 8, 9), _without_password),
    "13-prompt-admission": {0: _holds, 8: _takes(8), 18: _says(18, 2), 26: _holds, 28: _takes(28)},
    "21-subagent-cancel": {2: _child_asks(2)},
    "22-subagent-parent-gone": {2: _child_asks(3), 7: _child_asks(8)},
    "31-location-ttl-20s-nosse": {13: _forgets(13)},
    "31-location-ttl-20s-sse": {12: _forgets(12)},
    "32-location-evicted-nosse": {4: _evicts("/home/dev/oc2/proj5")},
    "32-location-evicted-sse": {4: _evicts("/home/dev/oc2/proj5")},
    "33-tui": {8: _answers(8, "SQLite"), 12: _dismisses(12)},
    "34-server-stop": {11: _stops},
    "35-server-kill9": {4: _is_killed, 9: _goes_on},
    "36-run": {0: _dismisses(0)},
    "37-hold-main": {0: _asks(1)},
    "37-hold-quiet": {0: _asks(1)},
    "41-frozen": {9: _answers(9, "Redis")},
    "46-steer-queue": {5: _works(5), 12: _says(12, 3)},
    "43-websearch-form": {2: _asks(2)},
}


class Replay:
    """One recording against one stand-in of the recorded build; ids are mapped from the recorded to ours."""

    def __init__(self, agent: OpenCode2Agent, recording: list[Json], beside: dict[int, Step]) -> None:
        self.agent = agent
        self.recording = recording
        self.beside = beside
        self.ids: dict[str, str] = {}
        self.count = 0
        self.calls: set[str] = set()
        self.prompts: set[str] = set()
        self.has_password = True
        self.http = httpx.Client(base_url=agent.url, trust_env=False)

    def names(self, at: int) -> list[str]:
        """Return the recorded names of session and form in the path of a request."""
        return ID.findall(self.recording[at]["request"]["path"])

    def form(self, at: int) -> str:
        """Return our id of the form in the path of a request; if no answer before it shows the form, ask."""
        session, form = self.names(at)
        if session not in self.ids:
            self._make(session)
        if form not in self.ids:
            self.ids[form] = self.agent.ask([QUESTION], session=self.ids[session])
        return self.ids[form]

    def run(self) -> None:
        """Send all that the stand-in knows, and compare."""
        for place, one in enumerate(self.recording):
            request, response = one["request"], one["response"]
            self.has_password = True
            self.beside.get(place, _nothing)(self)
            route = f"{request['method']} {request['path'].partition('?')[0]}"
            if route == "POST /api/session" and response["body"]["data"]["id"] not in self.ids:
                told = response["body"]["data"]
                self._send(request, response)
                title = [record.get("title", "") for record in self._records(told["id"])][-1]  # the model gives one
                self.agent.sessions[self.ids[told["id"]]].title = title
            elif (
                not ABSENT.match(route)
                and not VOLATILE.match(request["path"])
                and response["status"] not in NOT_REPLAYED
                and "files" not in (request["body"] or ())  # Hermes sends none
            ):
                self._prepare(request, response)
                self._send(request, response)

    def _prepare(self, request: Json, response: Json) -> None:
        """Let the agent have asked what this answer shows for the first time."""
        if request["path"].endswith("/form") and request["method"] == "POST":
            return
        named = ID.findall(request["path"]) + ID.findall(json.dumps(response["body"]))
        if response["status"] == 404:
            is_there = response["body"] and response["body"]["_tag"] != "SessionNotFoundError"
            named = [name for name in named if is_there and name.startswith("ses_")]
        for name in dict.fromkeys(named):
            if name not in self.ids and name.startswith(("ses_", "frm_", "per_")):
                self._make(name)

    def _make(self, name: str) -> None:
        record = next(self._records(name), None)
        if name.startswith("ses_"):
            told = record or {"title": "t"}
            place = told.get("location", {}).get("directory", "/home/dev/project")
            self.ids[name] = self.agent.session(
                told["title"], directory=place, parent=self.ids.get(told.get("parentID", ""))
            )
            return
        if record is None:
            return
        if record["sessionID"] not in self.ids and record["sessionID"] != "global":
            self._make(record["sessionID"])
        session = self.ids.get(record["sessionID"], "global")
        if name.startswith("per_"):
            save, call, beside = record["save"], record["source"], self._beside(record["source"]["messageID"], "per_")
            given = {"command": record["resources"][0]} if record["action"] == "shell" else {}
            made = self.agent.ask_permission(
                record["action"], record["resources"], given=given, save=save, session=session, beside=beside
            )
            ours = self.agent.permissions[made]["source"]
        elif record.get("metadata", {}).get("kind") == "question":
            call, beside = record["metadata"]["tool"], self._beside(record["metadata"]["tool"]["messageID"], "frm_")
            made = self.agent.ask([_question(field) for field in record["fields"]], session=session, beside=beside)
            ours = self.agent.forms[made].record["metadata"]["tool"]
        else:
            place = "/home/dev/project2" if session == "global" else None
            made = self.agent.form(
                record["fields"],
                session=session,
                directory=place,
                title=record["title"],
                metadata=record.get("metadata"),
            )
            call = ours = {"messageID": "", "id": ""}
        self.calls.add(ours["id"])
        self.ids |= {name: made, call["messageID"]: ours["messageID"], call["id"]: ours["id"]}

    def _beside(self, message_id: str, prefix: str) -> str | None:
        """Return our ask of the same step, if there is one."""
        for name, ours in self.ids.items():
            found = next(self._records(name), None) if name.startswith(prefix) else None
            call = (found.get("source") or found.get("metadata", {}).get("tool", {})) if found else {}
            if call.get("messageID") == message_id:
                return ours
        return None

    def _records(self, name: str) -> Iterator[Json]:
        for one in self.recording:
            data = one["response"]["body"].get("data") if isinstance(one["response"]["body"], dict) else None
            for record in data if isinstance(data, list) else [data]:
                if isinstance(record, dict) and record.get("id") == name:
                    yield record

    def _send(self, request: Json, response: Json) -> None:
        path = self._ours(request["path"]).replace("+", " ")
        body, kind = request["body"], response.get("content_type")
        more: Json = {"json": body}
        if isinstance(body, str):
            wrong = re.search(r"content-type: (\S+)", str(response["body"]))
            more = {"content": body, "headers": {"content-type": wrong[1] if wrong else "application/json"}}
        elif body is None:
            more = {}
        if self.has_password:
            more["auth"] = ("opencode", self.agent.password)
        told = self.http.request(request["method"], path, **more)
        where = f"{request['method']} {request['path']} {body}"
        assert told.status_code == response["status"], f"{where}: {told.text}"
        assert told.headers.get("content-type", "").partition(";")[0] == (kind or ""), where
        if (
            request["method"] == "POST"
            and request["path"].endswith(("/form", "/prompt", "/session"))
            and told.is_success
        ):
            self.ids[response["body"]["data"]["id"]] = told.json()["data"]["id"]
        if request["path"].endswith("/prompt") and told.is_success:
            self.prompts.add(told.json()["data"]["id"])
        if kind == "application/json":
            wanted, got = json.loads(self._ours(json.dumps(response["body"]))), told.json()
            assert self._plain(got) == self._plain(wanted), where
        self.count += 1

    def _ours(self, text: str) -> str:
        return ID.sub(lambda match: self.ids.get(match[0], match[0]), text)

    def _plain(self, body: Any) -> Any:
        """What is compared.

        Forms, permissions, states, refusals and, but for their times, prompts whole; of messages, who spoke, what the
        person wrote, and how the known calls ended.
        """
        if isinstance(body, dict) and "_tag" in body:
            return {key: str(value).partition(": JSON Parse")[0] for key, value in body.items()}
        data = body.get("data") if isinstance(body, dict) else body
        if isinstance(data, list) and any("delivery" in one for one in data):
            return [_prompt(one) for one in data]
        if isinstance(data, dict) and "delivery" in data:
            return _prompt(data)
        if isinstance(data, list) and any(isinstance(one, dict) and "type" in one for one in data):
            texts = [one["text"] for one in data if one["id"] in self.prompts]
            parts = [part for one in data for part in one.get("content", ()) if part["type"] == "tool"]
            return [*texts, *sorted((_tool(part) for part in parts if part["id"] in self.calls), key=str)]
        if isinstance(data, dict) and "pid" in data:
            return {**data, "pid": 0}
        if isinstance(data, dict) and "location" in data:
            return {"title": data.get("title", ""), "location": data["location"], "parent": "parentID" in data}
        return data


def _question(field: Json) -> Json:
    options = [{"label": one["label"], "description": one["description"]} for one in field["options"]]
    asked = {"question": field["description"], "header": field["title"], "options": options}
    return {**asked, "multiple": True} if field["type"] == "multiselect" else asked


def _prompt(record: Json) -> Json:
    return {key: value for key, value in record.items() if key not in {"timeCreated", "time"}}


def _tool(part: Json) -> Json:
    state = part.get("state", {})
    answers = (state.get("metadata") or {}).get("answers")
    return {"id": part.get("id"), "status": state.get("status"), "error": state.get("error"), "answers": answers}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_stand_in_answers_as_it_was_recorded(name: str) -> None:
    """Every request of the recording that Hermes' own routes and those around them take."""
    with running_opencode2(shape="august", directory="/home/dev") as agent:
        replay = Replay(agent, json.loads((PAYLOADS / f"{name}.json").read_text()), BESIDE.get(name, {}))
        with replay.http:
            replay.run()
    assert replay.count > 0

"""The stand-in answers as OpenCode 2 was seen to answer: same request, same status, same content."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hermes.sandbox.opencode2.server import OpenCode2Agent, running_opencode2

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
PAYLOADS = Path(__file__).parents[2] / "payloads" / "opencode2"
RECORDINGS = sorted(path.stem for path in PAYLOADS.glob("*.json") if not path.stem.endswith("events"))
ID = re.compile(r"\b(?:ses|frm|per|msg|call)_[A-Za-z0-9]+")
# What the stand-in does not have: the routes of prompts, and those that Hermes never calls.
ABSENT = re.compile(r"/(prompt|pending|saved|synthetic|shell|command|wait|mcp)\b|^/api/(permission/saved|mcp)")
# These hold only in a world that was older than the recording: they depend on earlier sessions.
VOLATILE = ("/api/session/active", "/api/session?")


class Replay:
    """One recording against one stand-in of the recorded build; ids are mapped from the recorded to ours."""

    def __init__(self, agent: OpenCode2Agent, recording: list[Json]) -> None:
        self.agent = agent
        self.recording = recording
        self.ids: dict[str, str] = {}
        self.count = 0
        auth = base64.b64encode(f"opencode:{agent.password}".encode()).decode()
        self.calls: set[str] = set()
        self.http = httpx.Client(base_url=agent.url, headers={"authorization": f"Basic {auth}"}, trust_env=False)

    def run(self) -> None:
        """Send all that the stand-in knows, and compare."""
        for one in self.recording:
            request, response = one["request"], one["response"]
            if request["method"] == "POST" and request["path"] == "/api/session":
                made = self.agent.session(request["body"]["title"], directory=request["body"]["location"]["directory"])
                self.ids[response["body"]["data"]["id"]] = made
            elif not ABSENT.search(request["path"]) and not request["path"].startswith(VOLATILE) and response["status"]:
                self._prepare(request, response)
                self._send(request, response)

    def _prepare(self, request: Json, response: Json) -> None:
        """Let the agent have asked what this answer shows for the first time."""
        if response["status"] == 404 or (request["path"].endswith("/form") and request["method"] == "POST"):
            return
        named = ID.findall(request["path"]) + ID.findall(json.dumps(response["body"]))
        for name in dict.fromkeys(named):
            if name not in self.ids and name.startswith(("ses_", "frm_", "per_")):
                self._make(name)

    def _make(self, name: str) -> None:
        if name.startswith("ses_"):
            self.ids[name] = self.agent.session("t")
            return
        record = next(self._records(name), None)
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
        told = self.http.request(request["method"], path, **more)
        where = f"{request['method']} {request['path']} {body}"
        assert told.status_code == response["status"], f"{where}: {told.text}"
        assert told.headers.get("content-type", "").partition(";")[0] == (kind or ""), where
        if request["method"] == "POST" and request["path"].endswith("/form"):
            self.ids[response["body"]["data"]["id"]] = told.json()["data"]["id"]
        if kind == "application/json":
            wanted, got = json.loads(self._ours(json.dumps(response["body"]))), told.json()
            assert self._plain(got) == self._plain(wanted), where
        self.count += 1

    def _ours(self, text: str) -> str:
        return ID.sub(lambda match: self.ids.get(match[0], match[0]), text)

    def _plain(self, body: Any) -> Any:
        """What is compared: forms, permissions, states and refusals whole; of messages, how the known calls ended."""
        if isinstance(body, dict) and "_tag" in body:
            return {key: str(value).partition(": JSON Parse")[0] for key, value in body.items()}
        data = body.get("data") if isinstance(body, dict) else body
        if isinstance(data, list) and any(isinstance(one, dict) and "type" in one for one in data):
            parts = [part for one in data for part in one.get("content", ()) if part["type"] == "tool"]
            return sorted((_tool(part) for part in parts if part["id"] in self.calls), key=str)
        if isinstance(data, dict) and "location" in data:
            return {"title": data["title"], "location": data["location"], "parent": "parentID" in data}
        return data


def _question(field: Json) -> Json:
    options = [{"label": one["label"], "description": one["description"]} for one in field["options"]]
    asked = {"question": field["description"], "header": field["title"], "options": options}
    return {**asked, "multiple": True} if field["type"] == "multiselect" else asked


def _tool(part: Json) -> Json:
    state = part.get("state", {})
    answers = (state.get("metadata") or {}).get("answers")
    return {"id": part.get("id"), "status": state.get("status"), "error": state.get("error"), "answers": answers}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_stand_in_answers_as_it_was_recorded(name: str) -> None:
    """Every request of the recording that Hermes' own routes and those around them take."""
    with running_opencode2(shape="august") as agent:
        replay = Replay(agent, json.loads((PAYLOADS / f"{name}.json").read_text()))
        with replay.http:
            replay.run()
    assert replay.count > 0

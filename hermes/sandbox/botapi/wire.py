"""The Bot API's wire format: parameters of requests, and answers and refusals.

Parameters come as a query, a form, JSON or multipart, with the same meaning in each; in a form field, a list or an
object is JSON. Descriptions are worded as by the real server (tdlib/telegram-bot-api 10.0, Client.cpp).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse

PREFIXES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}


class ApiError(Exception):
    """A refusal as a bot sees it: HTTP status, description, and `retry_after` or `migrate_to_chat_id`."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


def refused(message: str, status: int = 400) -> ApiError:
    """Return a refusal with the prefix of its status; a sentence begins in lower case, a CODE stays as it is."""
    if len(message) > 1 and not (message[1] == "_" or message[1].isupper()):
        message = message[0].lower() + message[1:]
    return ApiError(status, f"{PREFIXES[status]}: {message}")


def too_many(retry_after_s: int) -> ApiError:
    """Return a 429 refusal with its `retry_after` in seconds."""
    return ApiError(429, f"Too Many Requests: retry after {retry_after_s}", retry_after=retry_after_s)


@dataclass(frozen=True, slots=True)
class Described:
    """A result, and the description that the real server adds to it."""

    result: Any
    description: str


def success(result: Any) -> JSONResponse:
    """Return a 200 response with {"ok": true, "result": …}."""
    if isinstance(result, Described):
        return JSONResponse({"ok": True, "result": result.result, "description": result.description})
    return JSONResponse({"ok": True, "result": result})


def failure(error: ApiError) -> JSONResponse:
    """Return {"ok": false, "error_code", "description", "parameters"}; the HTTP status equals the error code."""
    body: dict[str, Any] = {"ok": False, "error_code": error.status, "description": error.description}
    headers: dict[str, str] = {}
    if error.parameters:
        body["parameters"] = error.parameters
    if "retry_after" in error.parameters:
        headers["Retry-After"] = str(error.parameters["retry_after"])
    return JSONResponse(body, status_code=error.status, headers=headers)


@dataclass(frozen=True, slots=True)
class SentFile:
    """An uploaded file; its bytes are counted, not kept."""

    name: str
    content_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of one request, read as the real server reads them."""

    values: Mapping[str, Any]
    files: Mapping[str, SentFile] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the value as the text it would be in a form; "" if absent."""
        value = self.values.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else json.dumps(value)

    def integer(self, name: str, default: int = 0) -> int:
        """Return a number: `default` if the field is absent or empty, 0 if it is no number, as in td::to_integer."""
        value = self.text(name)
        if not value:
            return default
        digits = re.match(r"-?\d+", value.strip())
        return int(digits[0]) if digits else 0

    def clamped(self, name: str, default: int, low: int, high: int) -> int:
        """Return a number, limited to the range from low to high."""
        return min(max(self.integer(name, default), low), high)

    def flag(self, name: str) -> bool:
        """Return True for "true", "yes" and "1"."""
        return self.text(name).strip().lower() in {"true", "yes", "1"}

    def structure(self, name: str, error: str) -> Any:
        """Return a field's JSON value, None if absent or empty; raise ApiError 400 with `error` if it is not JSON."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError:
            raise refused(error) from None

    def loggable(self) -> dict[str, Any]:
        """Return the values for the call log ("?" for half a character), and name and size of each file."""
        kept = {
            name: value.encode(errors="replace").decode() if isinstance(value, str) else value
            for name, value in self.values.items()
        }
        return kept | {name: f"{sent.name} ({sent.size} bytes)" for name, sent in self.files.items()}


async def read_params(request: Request) -> Params:
    """Return the parameters of query and body; raise ApiError 400 if a JSON body is invalid or not an object."""
    values: dict[str, Any] = dict(request.query_params)
    files: dict[str, SentFile] = {}
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        values |= _json_object(await request.body())
    elif kind in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        async with request.form() as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    files[name] = await _counted(value)
                else:
                    values[name] = value
    return Params(values, files)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        raise refused("Can't parse JSON object") from None
    if not isinstance(value, dict):
        raise refused("JSON object expected")
    return value


async def _counted(upload: UploadFile) -> SentFile:
    size = len(await upload.read())
    return SentFile(upload.filename or "file", upload.content_type or "application/octet-stream", size)

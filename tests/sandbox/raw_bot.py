"""A bot without any library: it sends what it is told to and reads the bare answer."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from hermes.sandbox.botapi import RunningBotApi


class Refused(Exception):
    """The Bot API said no."""

    def __init__(self, response: httpx.Response) -> None:
        self.body: dict[str, Any] = response.json()
        self.status = response.status_code
        self.retry_after = response.headers.get("retry-after")
        self.description = str(self.body["description"])
        assert self.body["ok"] is False
        assert self.body["error_code"] == self.status
        super().__init__(self.description)


@dataclass(frozen=True)
class RawBot:
    """Calls methods with JSON bodies; `refused` is for what must be refused, and returns the sentence."""

    http: httpx.Client

    def __call__(self, method: str, **params: Any) -> Any:
        response = self.http.post(method, json=params)
        if response.status_code != 200:
            raise Refused(response)
        assert response.json()["ok"] is True
        return response.json()["result"]

    def refused(self, method: str, status: int = 400, /, **params: Any) -> str:
        """The sentence with which this call is refused, under this status."""
        with pytest.raises(Refused) as refusal:
            self(method, **params)
        assert refusal.value.status == status
        return refusal.value.description

    def send(self, text: str = "Which one?", *labels: str, **params: Any) -> dict[str, Any]:
        """A message to the first user with a row of buttons whose data are their labels."""
        message: dict[str, Any] = self(
            "sendMessage",
            **{"chat_id": 1001, "text": text, "reply_markup": keyboard(labels), **params},
        )
        return message


def keyboard(*rows: tuple[str, ...]) -> dict[str, Any]:
    """A reply_markup whose data are its labels."""
    return {"inline_keyboard": [[{"text": label, "callback_data": label} for label in row] for row in rows]}


@contextmanager
def raw_bot(api: RunningBotApi) -> Iterator[RawBot]:
    """A raw bot of this server."""
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loads no certificates
    with httpx.Client(base_url=f"{api.base_url}/bot{api.token}/", trust_env=False, verify=plain, timeout=60) as http:
        yield RawBot(http)


class Background(threading.Thread):
    """One call in a thread; `answer` waits for its result or raises its error."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.result: Any = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.work()
        except (Refused, httpx.HTTPError) as error:
            self.error = error

    def answer(self) -> Any:
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def texts(updates: list[dict[str, Any]]) -> list[str]:
    """What the messages among them say."""
    return [update["message"]["text"] for update in updates]

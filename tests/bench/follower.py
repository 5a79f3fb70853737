"""Follows the events of an OpenCode server and notes when those about questions and permissions arrived.

`python follower.py URL FILE [KIND …]` adds one line an event to FILE: monotonic seconds, a tab, the event; URL is that
of the stream. A process of its own on the bare standard library, so that nothing that the benchmark does delays its
clock. The environment may hold the password.
"""

from __future__ import annotations

import base64
import http.client
import os
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

KINDS = ("question.asked", "question.replied", "permission.asked", "permission.replied", "form.created", "form.replied")
PASSWORD = "FOLLOWER_PASSWORD"  # its name, not its value
FOLLOWING = b"following\n"


def main(url: str, file: str, *more: str) -> None:
    """Follow until the stream ends; `more` are further kinds of events to note."""
    wanted = tuple(f'"{kind}"'.encode() for kind in (*KINDS, *more))
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    credentials = base64.b64encode(f"opencode:{os.environ.get(PASSWORD, '')}".encode()).decode()
    headers = {"accept": "text/event-stream", "authorization": f"Basic {credentials}"}
    connection.request("GET", place.path, headers=headers)
    response = connection.getresponse()
    rest, told = b"", FOLLOWING
    with Path(file).open("ab", buffering=0) as notes:
        while chunk := response.read1(65536):
            at_s = time.monotonic()
            *lines, rest = (rest + chunk).split(b"\n")
            told += b"".join(_note(at_s, line, wanted) for line in lines)
            if told:
                notes.write(told)
            told = b""


def _note(at_s: float, line: bytes, wanted: tuple[bytes, ...]) -> bytes:
    if not line.startswith(b"data:") or not any(kind in line for kind in wanted):
        return b""
    return b"%.6f\t%b\n" % (at_s, line.removeprefix(b"data:").strip())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Processes, conditions and connections under a test's control, and nothing left of them afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.harness.home import ROOT
from tests.harness.processes import CuttableProxy, Proc, state_of, until


def test_until_shows_the_last_value() -> None:
    """A condition that never holds fails with what it was at the end."""
    with pytest.raises(AssertionError, match=r"waited 0 s for three; last value: 0"):
        until(lambda: 0, 0, "three")


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Proc]:
    """A process that counts aloud and has a child in its group."""
    count = (
        "import itertools, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('child', child.pid, flush=True)\n"
        "for n in itertools.count():\n"
        "    print('tick', n, flush=True)\n"
        "    time.sleep(0.01)\n"
    )
    with Proc([sys.executable, "-c", count], cwd=tmp_path, environ=os.environ, log_dir=tmp_path, name="ticker") as proc:
        yield proc


def test_a_process_freezes_and_thaws(ticker: Proc) -> None:
    """Frozen, it is alive and silent; thawed, it goes on."""
    ticker.wait_line("tick 3")
    ticker.freeze()
    until(lambda: state_of(ticker.pid) == "T", what="the stop")
    frozen = ticker.output()
    assert ticker.alive()
    with pytest.raises(AssertionError, match="no line with"):
        ticker.wait_line("tick 1000000", 0.3)
    assert ticker.output() == frozen
    ticker.thaw()
    until(lambda: ticker.output() != frozen, what="another tick")


def test_nothing_of_a_process_is_left_when_it_closes(ticker: Proc) -> None:
    """The leader dies alone by `kill -9`; `close()` takes its children too."""
    child = int(ticker.wait_line("child").split()[1])
    assert ticker.sigkill() == -signal.SIGKILL
    assert state_of(child)
    ticker.close()
    until(lambda: not state_of(child), what="the child's end")


def test_a_crash_of_the_tests_leaves_nothing(tmp_path: Path) -> None:
    """When the test process itself is killed, everything it started is killed too."""
    crashing = (
        "import os, pathlib, signal, sys\n"
        "from tests.harness.processes import Proc\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "proc = Proc(['sleep', '600'], cwd=here, environ=os.environ, log_dir=here, name='left')\n"
        "print(proc.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", crashing, tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    until(lambda: not state_of(int(ended.stdout)), what="the end of what was left")


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the path."""
        body = json.dumps(self.path).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def proxy() -> Iterator[CuttableProxy]:
    """A proxy before a small server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        with CuttableProxy(server.server_address[1]) as running:
            yield running
        server.shutdown()
        thread.join()


def test_a_connection_can_be_cut_and_restored(proxy: CuttableProxy) -> None:
    """Cut: open connections are reset and new ones refused; restored on the same port."""
    with socket.create_connection(("127.0.0.1", proxy.port), 5) as kept:
        kept.sendall(b"GET /one HTTP/1.1\r\nhost: x\r\n\r\n")
        until(lambda: b"/one" in kept.recv(4096), what="the first answer")
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            kept.recv(1)
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", proxy.port), 5)
    proxy.restore()
    assert httpx.get(f"{proxy.url}/three", trust_env=False).json() == "/three"


def test_a_silent_network_holds_bytes_back(proxy: CuttableProxy) -> None:
    """Stalled: nothing comes and nobody is told; restored, the next request is answered."""
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=60) as client:
        assert client.get("/one").json() == "/one"
        proxy.stall()
        with pytest.raises(httpx.ReadTimeout):
            client.get("/two", timeout=0.3)
        proxy.restore()
        assert client.get("/three").json() == "/three"

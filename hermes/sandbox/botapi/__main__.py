"""The local Bot API as a process, for `spawn_botapi`.

It reads one line of standard input, `Settings` as JSON, prints one line with its URLs as JSON, and serves until a
signal comes or standard input ends.
"""

import json
import sys
import threading

from pydantic import TypeAdapter

from hermes import clock
from hermes.sandbox.botapi.serving import BotApiServer
from hermes.sandbox.botapi.world import Settings, World


def main() -> None:
    """Read the settings, print the URLs, and serve."""
    settings = TypeAdapter(Settings).validate_json(sys.stdin.readline())
    world = World(settings, pace=clock.bent(settings.test_clock).pace)
    server = BotApiServer(world)
    print(json.dumps({"base_url": server.base_url, "control_url": server.control_url}), flush=True)  # noqa: T201
    threading.Thread(target=_stop_at_end_of_input, args=(server,), daemon=True).start()
    server.serve_forever()


def _stop_at_end_of_input(server: BotApiServer) -> None:
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()

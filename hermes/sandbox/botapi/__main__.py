"""`python -m hermes.sandbox.botapi`: the local Bot API as a process; prints one JSON line with its URLs."""

import argparse
import json
import os
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes import clock
from hermes.sandbox.botapi.rates import UNLIMITED
from hermes.sandbox.botapi.serving import SECRET_VARIABLE, TOKEN_VARIABLE, BotApiServer
from hermes.sandbox.botapi.world import DEMO_TOKEN, Chat, User, World


def main(arguments: Sequence[str] | None = None, *, environ: Mapping[str, str] = os.environ) -> None:
    """Serve until a signal comes or, with `--end-with-stdin`, standard input ends."""
    given = _parser().parse_args(arguments)
    world = World(
        token=given.token or environ.get(TOKEN_VARIABLE) or DEMO_TOKEN,
        users=given.user or [User(1001)],
        chats=given.chat,
        rate_scale=given.rate_scale,
        privacy_mode=not given.no_privacy_mode,
        pace=clock.bent(given.test_clock).pace,
    )
    world.topics_mode = given.topics_mode
    secret = given.control_secret or environ.get(SECRET_VARIABLE) or secrets.token_urlsafe(12)
    server = BotApiServer(world, control_secret=secret, port=given.port)
    print(json.dumps({"base_url": server.base_url, "control_url": server.control_url}), flush=True)  # noqa: T201
    if given.end_with_stdin:
        threading.Thread(target=_stop_at_end_of_input, args=(server,), daemon=True).start()
    server.serve_forever()


def _stop_at_end_of_input(server: BotApiServer) -> None:
    sys.stdin.read()
    server.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hermes.sandbox.botapi", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--token", help=f"the bot's token; better in ${TOKEN_VARIABLE}")
    parser.add_argument("--control-secret", help=f"part of the control URL; better in ${SECRET_VARIABLE}")
    parser.add_argument("--user", type=parse_user, action="append", default=[], metavar="ID[=NAME]")
    parser.add_argument(
        "--chat", type=parse_chat, action="append", default=[], metavar="ID[=TITLE[#TOPIC…]]",
        help="above 0 private, below -10^12 a supergroup; without any, each user has a private chat",
    )  # fmt: skip
    parser.add_argument("--rate-scale", type=float, default=UNLIMITED, help="1 is as strict as Telegram")
    parser.add_argument("--no-privacy-mode", action="store_true", help="the bot sees all that is said in groups")
    parser.add_argument("--topics-mode", action="store_true", help="topics are on in the private chats of the bot")
    parser.add_argument("--test-clock", type=Path, metavar="FILE", help="a clock that a test bends")
    parser.add_argument("--end-with-stdin", action="store_true", help="stop when standard input ends")
    return parser


def parse_user(text: str) -> User:
    """Read `1001=Ann`, id and name; a name that begins with @ makes the user a bot."""
    number, _, name = text.partition("=")
    return User(int(number), name or f"Person {number}", is_bot=name.startswith("@"))


def parse_chat(text: str) -> Chat:
    """Read `-1001234=Team#7#8`: id, title, topics."""
    number, _, rest = text.partition("=")
    title, *topics = rest.split("#")
    return Chat(int(number), title, tuple(map(int, topics)))


if __name__ == "__main__":
    main()

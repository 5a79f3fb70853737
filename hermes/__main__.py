"""`python -m hermes`: start `hermes.hook.run` directly for the command `hook`, else the command line."""

import atexit
import gc
import os
import sys

# Optional imports of libraries that work without them. They are hidden because a listener would keep them in memory:
# the command line of httpx (4 MB), and the package with which python-telegram-bot decrypts passports (7 MB).
UNUSED = ("httpx._main", "cryptography")
YOUNG = 20_000
"""So many new objects make Python look for garbage. A start makes many more than the usual 700, and drops few."""


def main() -> None:
    """Run the command that the arguments name. `hook` loads only its own modules, because an agent waits for it.

    `hook generic` without `--store` is slower: the command line first reads the store's path from the configuration.
    """
    if sys.argv[1:2] == ["hook"] and (sys.argv[2:3] != ["generic"] or "--store" in sys.argv):
        from hermes.hook import run

        sys.exit(run.main(sys.argv[2:]))
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)  # a process that ends need not look for garbage: that takes up to a tenth of a second
    for name in [name for name in os.environ if _is_foreign(name)]:
        del os.environ[name]
    if sys.argv[1:2] != ["mcp"]:  # its library cannot do without
        sys.modules.update(dict.fromkeys(UNUSED))  # type: ignore[arg-type]
    from hermes.commands import cli

    cli.main()


def _is_foreign(name: str) -> bool:
    """Tell whether a library would read this variable, and nobody meant it for Hermes.

    libpq reads PG*: see `hermes.storage.postgres.address`. If `_HERMES_COMPLETE` is set, Typer prints completions, and
    runs no command: `hermes ask --yes-no` would have the status of a yes. The shell that asks for them gives no words.
    Python writes the keys of TLS connections, and so the bot's token, where SSLKEYLOGFILE says.
    """
    return name.startswith("PG") or name == "SSLKEYLOGFILE" or (name.endswith("_COMPLETE") and bool(sys.argv[1:]))


if __name__ == "__main__":
    main()

"""`python -m hermes`: the word `hook` goes straight to hook.py, all others to the command line."""

import sys

# What libraries load where they find it, and do without where they don't; a listener would keep it for ever:
# httpx's own command line (4 MB), and what python-telegram-bot decrypts passports with (7 MB).
UNUSED = ("httpx._main", "cryptography")


def main() -> None:
    """Run the command that the arguments name; `hook` loads nothing but itself, for an agent waits for it.

    Without a store it has to look into the configuration first, which takes longer.
    """
    if sys.argv[1:2] == ["hook"] and (sys.argv[2:3] != ["generic"] or "--store" in sys.argv):
        from hermes.hook import run

        sys.exit(run.main(sys.argv[2:]))
    hidden = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    from hermes.commands import cli

    for name in hidden:
        del sys.modules[name]  # `hermes mcp` signs with it
    cli.main()


if __name__ == "__main__":
    main()

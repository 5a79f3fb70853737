"""`python -m hermes`: the word `hook` goes straight to hook.py, all others to the command line."""

import sys


def main() -> None:
    """Run the command that the arguments name; `hook` loads nothing but itself, for an agent waits for it.

    Without a store it has to look into the configuration first, which takes longer.
    """
    if sys.argv[1:2] == ["hook"] and (sys.argv[2:3] != ["generic"] or "--store" in sys.argv):
        from hermes import hook

        sys.exit(hook.main(sys.argv[2:]))
    # httpx brings a command line of its own along (4 MB, for ever), and does without it where there is none.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    from hermes import cli

    cli.main()


if __name__ == "__main__":
    main()

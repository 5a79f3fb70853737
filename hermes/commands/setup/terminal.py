"""The terminal that the setup talks to: plain words, yes or no, a hidden word, a spinner, a QR code.

What comes from outside (names of people, titles of groups, versions) is printed as it is, never as markup, and
nothing in it moves the cursor.
"""

import getpass
import io
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import segno
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

from hermes.commands.status.table import printable
from hermes.errors import ConfigError

_INDENT = "  "
_QUIET_ZONE = 2
# Fixed colours, black and white in every theme: a terminal's own may be the wrong way round for a camera.
_QR_STYLE = "color(231) on color(16)"


class Terminal:
    """Says and asks. `interactive` is whether somebody sits there; `yes` takes every default without asking.

    Where nobody can be asked, a question raises ConfigError, whose sentence names the option that answers it.
    Ctrl-C and Ctrl-D both come out as KeyboardInterrupt.
    """

    def __init__(
        self,
        console: Console,
        *,
        interactive: bool,
        yes: bool = False,
        read: Callable[[str], str] = input,
        read_hidden: Callable[[str], str] = getpass.getpass,
    ) -> None:
        self.interactive = interactive
        self._console = console
        self._yes = yes
        self._read, self._read_hidden = read, read_hidden

    # --- saying ---------------------------------------------------------------------------------------------

    def title(self, words: str) -> None:
        """Begin a step."""
        self._console.print()
        self._console.print(Text(words, style="bold"))

    def say(self, words: str, style: str = "") -> None:
        """Say something, wrapped at the terminal's width."""
        self._console.print(Padding.indent(Text(printable(words), style=style), len(_INDENT)))

    def done(self, words: str) -> None:
        """Say that something is well."""
        self._marked("✓", words, "green")

    def warn(self, words: str) -> None:
        """Say that something is not as it should be."""
        self._marked("!", words, "yellow")

    def copyable(self, *lines: str) -> None:
        """Print lines that somebody may want to copy: nothing before them, and the terminal alone breaks them."""
        for line in lines:
            self._console.print(Text(printable(line), style="bold"), soft_wrap=True)

    def _marked(self, mark: str, words: str, style: str) -> None:
        row = Table.grid(padding=(0, 1))
        row.add_column()
        row.add_column(overflow="fold")
        row.add_row(Text(mark, style=f"bold {style}"), Text(printable(words)))
        self._console.print(Padding.indent(row, len(_INDENT)))

    def qr(self, link: str) -> None:
        """Draw the link for a camera, where the terminal has room and the signs for it."""
        drawn = io.StringIO()
        segno.make(link, micro=False).terminal(drawn, border=_QUIET_ZONE, compact=True)
        lines = drawn.getvalue().splitlines()
        if not self._console.encoding.startswith("utf") or len(lines[0]) > self._console.width - 2:
            return
        self._console.print()
        for line in lines:
            self._console.print(Text.assemble(_INDENT, (line, _QR_STYLE)))

    @contextmanager
    def waiting(self, words: str) -> Iterator[Callable[[str], None]]:
        """Turn a spinner beside these words, which what is yielded changes."""
        with Status(words, console=self._console) as status:
            yield lambda changed: status.update(Text(printable(changed)))

    # --- asking ---------------------------------------------------------------------------------------------

    def ask(self, question: str, *, default: bool, option: str) -> bool:
        """Ask yes or no; Enter, and `--yes`, take the default. Raises ConfigError."""
        if self._yes:
            return default
        return self._yes_or_no(question, "[Y/n]" if default else "[y/N]", default, f"{option}, or --yes")

    def again(self) -> bool:
        """Ask whether to try once more; where nobody is asked, the answer is no."""
        asked = self.interactive and not self._yes
        return asked and self._yes_or_no("Try again?", "[Y/n]", default=True, option="")

    def approve(self, question: str, *, option: str) -> bool:
        """Ask for a yes that nothing but the person can give, who has read the question. Raises ConfigError."""
        with suppress(termios.error, OSError):  # what was typed ahead is no answer to it
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return self._yes_or_no(question, "[y/N]", default=False, option=option)

    def hidden(self, question: str, *, option: str) -> str:
        """Ask for a secret, which is not shown while it is typed or pasted. Raises ConfigError."""
        self.need(question, option)
        with _ctrl_d_is_ctrl_c(self._console):
            return self._read_hidden(f"{_INDENT}{question} ").strip()

    def _yes_or_no(self, question: str, choices: str, default: bool, option: str) -> bool:
        self.need(question, option)
        *lines, last = textwrap.wrap(f"{printable(question)} {choices}", self._console.width - 2 * len(_INDENT))
        while True:
            for line in lines:
                self.say(line)
            with _ctrl_d_is_ctrl_c(self._console):
                said = self._read(f"{_INDENT}{last} ").strip().lower()
            if said in {"", "y", "yes", "n", "no"}:
                return default if said == "" else said.startswith("y")
            self.say("Please type y or n.")

    def need(self, question: str, option: str) -> None:
        """Make sure that somebody sits here. Raises ConfigError: the option answers it as well."""
        if not self.interactive:
            what = question.rstrip(":?. ")
            raise ConfigError(f"nobody can be asked here ({what}): run it in a terminal, or give {option}.")


@contextmanager
def _ctrl_d_is_ctrl_c(console: Console) -> Iterator[None]:
    try:
        yield
    except EOFError:
        console.print()
        raise KeyboardInterrupt from None


def of_this_process(*, yes: bool) -> Terminal:
    """Return the terminal that this process runs in."""
    console = Console(highlight=False)
    return Terminal(console, interactive=sys.stdin.isatty() and console.is_terminal, yes=yes)

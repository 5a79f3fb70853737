"""The terminal of the setup: plain text, yes-or-no questions, hidden input, a spinner, a QR code.

Text from outside (names of people, titles of groups, versions) is never read as markup, and its characters that cannot
be printed become blanks, so that it cannot move the cursor.
"""

import copy
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
# White and black in every theme: the colours of the terminal may be inverted, so that a camera cannot read them.
_QR_STYLE = "color(231) on color(16)"


class Terminal:
    """Prints and asks. `interactive`: a person is at the terminal; `yes`: `ask` takes each default, and asks nothing.

    If no person can be asked, a question raises ConfigError, whose sentence names the option that answers it.
    Ctrl-C and Ctrl-D both raise KeyboardInterrupt.
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

    def with_defaults(self) -> "Terminal":
        """Return the same terminal, whose `ask` takes each default without asking."""
        made = copy.copy(self)
        made._yes = True  # noqa: SLF001 (of the same class)
        return made

    # --- saying ---------------------------------------------------------------------------------------------

    def title(self, words: str) -> None:
        """Print the title of a step."""
        self._console.print()
        self._console.print(Text(words, style="bold"))

    def say(self, words: str, style: str = "") -> None:
        """Print text, wrapped at the width of the terminal."""
        self._console.print(Padding.indent(Text(printable(words), style=style), len(_INDENT)))

    def done(self, words: str) -> None:
        """Print that something succeeded."""
        self._marked("✓", words, "green")

    def warn(self, words: str) -> None:
        """Print that something is not as it should be."""
        self._marked("!", words, "yellow")

    def copyable(self, *lines: str) -> None:
        """Print lines for a person to copy: they are not indented, and only the terminal wraps them."""
        for line in lines:
            self._console.print(Text(printable(line), style="bold"), soft_wrap=True)

    def _marked(self, mark: str, words: str, style: str) -> None:
        row = Table.grid(padding=(0, 1))
        row.add_column()
        row.add_column(overflow="fold")
        row.add_row(Text(mark, style=f"bold {style}"), Text(printable(words)))
        self._console.print(Padding.indent(row, len(_INDENT)))

    def qr(self, link: str) -> None:
        """Draw the link as a QR code, if the terminal is wide enough and its encoding is UTF."""
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
        """Show a spinner beside these words, in one line; yield a function that changes the words."""

        def one_line(text: str) -> Text:
            return Text(printable(text), no_wrap=True, overflow="ellipsis")

        with Status(one_line(words), console=self._console) as status:
            yield lambda changed: status.update(one_line(changed))

    # --- asking ---------------------------------------------------------------------------------------------

    def ask(self, question: str, *, default: bool, option: str) -> bool:
        """Ask yes or no; Enter and `--yes` take the default. Raises ConfigError."""
        if self._yes:
            return default
        return self._yes_or_no(question, "[Y/n]" if default else "[y/N]", default, f"{option}, or --yes")

    def again(self, trouble: str = "") -> bool:
        """Print the trouble, if it is given, and ask whether to try again.

        Print nothing and return False if no person can be asked, or with `--yes`: the error that follows says it.
        """
        asked = self.interactive and not self._yes
        if asked and trouble:
            self.warn(trouble)
        return asked and self._yes_or_no("Try again?", "[Y/n]", default=True, option="")

    def approve(self, question: str, *, option: str) -> bool:
        """Ask for a yes that only the person can give, after reading the question: no `--yes`. Raises ConfigError."""
        with suppress(termios.error, OSError):  # input typed before the question does not count
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return self._yes_or_no(question, "[y/N]", default=False, option=option)

    def line(self, question: str, *, option: str, hidden: bool = False) -> str:
        """Ask for a text; a hidden one, such as a secret, is not shown while it is typed. Raises ConfigError."""
        self.need(question, option)
        with _ctrl_d_is_ctrl_c(self._console):
            return (self._read_hidden if hidden else self._read)(f"{_INDENT}{question} ").strip()

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
        """Check that a person is at the terminal. Raises ConfigError, which names the option to give instead."""
        if not self.interactive:
            what = question.rstrip(":?. ")
            raise ConfigError(f"nobody can be asked here ({what}): run it in a terminal, or give {option}.")


def capital(sentence: str) -> str:
    """Return the sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


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

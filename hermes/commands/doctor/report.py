"""Print findings: as lines for people, as JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hermes.commands.doctor.finding import Finding, Verdict
from hermes.commands.status.table import plain

_SIGNS: dict[Verdict, tuple[str, str]] = {
    "good": ("✔", "green"),
    "warning": ("!", "yellow"),
    "broken": ("✘", "bold red"),
}

_INDENT = 3


def to_json(findings: Iterable[Finding]) -> str:
    """Return a JSON list of objects: area, check, verdict, seen, mend, and `fixable`: `--fix` repairs it."""
    keys = ("area", "check", "verdict", "seen", "mend")
    told = [{key: getattr(one, key) for key in keys} | {"fixable": one.fix is not None} for one in findings]
    return json.dumps(told, indent=2)


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print the findings by area, one line for each, and a last line with their number.

    On a terminal a long text is folded. The command that repairs it is below, unfolded, so that it can be copied.
    """
    width = max(len(one.check) for one in findings)
    tell = _folded if console.is_terminal else _line
    for area, group in groupby(findings, key=lambda one: one.area):
        console.print(plain(area, "bold"))
        for one in group:
            tell(one, width, console)
    console.print()
    console.print(summary(findings), soft_wrap=True)


def _line(one: Finding, width: int, console: Console) -> None:
    mend = f" → {one.mend}" if one.mend else ""
    console.print(plain(f"  {_SIGNS[one.verdict][0]} {one.check:<{width}}  {one.seen}{mend}"), soft_wrap=True)


def _folded(one: Finding, width: int, console: Console) -> None:
    sign, style = _SIGNS[one.verdict]
    row = Table.grid(padding=(0, 1))
    row.add_column(width=_INDENT, justify="right")
    row.add_column(width=width)
    row.add_column(overflow="fold")
    row.add_row(Text(sign, style), plain(one.check), plain(one.seen, "" if one.verdict == "good" else style))
    console.print(row)
    if one.mend:
        console.print(plain(f"{' ' * (_INDENT + width + 2)}→ {one.mend}", "cyan"), soft_wrap=True)


def summary(findings: Iterable[Finding]) -> Text:
    """Return the last line: the number of problems and warnings, and how many of them `--fix` repairs."""
    found = list(findings)
    counted = Counter(one.verdict for one in found)
    parts = [_count(counted["broken"], "problem"), _count(counted["warning"], "warning")]
    said = ", ".join(part for part in parts if part)
    fixable = sum(one.fix is not None for one in found)
    if not said:
        return Text("All is well.", "green")
    return Text(said + (f"; `hermes doctor --fix` fixes {fixable}." if fixable else "."), "bold")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}" if number else ""

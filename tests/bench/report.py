"""The table and the JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.figures import Figure


def table(figures: Sequence[Figure], title: str) -> Table:
    """Return the figures as a table."""
    made = Table(title=title, title_justify="left", show_lines=False)
    made.add_column("figure", ratio=5)
    for name in ("median", "p95", "n", "must reach"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("", no_wrap=True)
    made.add_column("made of", ratio=4)
    for figure in figures:
        made.add_row(*_row(figure))
    return made


def _row(figure: Figure) -> tuple[str, ...]:
    sign = {True: "✔", False: "✘", None: " "}[figure.reached]
    most = f"≤ {figure.most:g} {figure.unit}" if figure.most is not None else "–"
    if figure.missing:
        return figure.name, "–", "–", "0", most, "?", f"not measured: {figure.missing}"
    values = (_number(figure.median, figure.unit), _number(figure.p95, figure.unit))
    return figure.name, *values, str(len(figure.values)), most, sign, figure.note


def _number(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


def record(figures: Sequence[Figure], **about: Any) -> dict[str, Any]:
    """Return all that was measured, and on what, as JSON keeps it."""
    return {**about, "figures": [_figure(figure) for figure in figures]}


def _figure(figure: Figure) -> dict[str, Any]:
    told = {"name": figure.name, "unit": figure.unit, "must_reach_at_most": figure.most, "reached": figure.reached}
    measured = {"median": figure.median, "p95": figure.p95, "n": len(figure.values), "values": list(figure.values)}
    return {**told, **measured, "note": figure.note, "missing": figure.missing}


def write(file: Path, kept: dict[str, Any]) -> None:
    """Write the JSON."""
    file.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def show(figures: Sequence[Figure], kept: dict[str, Any], console: Console) -> None:
    """Print the table, with date, machine and command below."""
    console.print(table(figures, f"Hermes, measured {kept['date']}"))
    console.print(", ".join(f"{name} {value}" for name, value in kept["machine"].items()), highlight=False)
    loads = "; ".join(f"{name} {load}" for name, load in kept["load_before_each"].items())
    console.print(f"load averages before each group: {loads}", highlight=False)
    console.print(kept["effort"], highlight=False)
    console.print(f"Again: {kept['command']}", highlight=False)

"""What may come from outside: any JSON, recorded payloads with something wrong in them, and any bytes at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings, strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Bytes = st.SearchStrategy[bytes]
Anything = st.SearchStrategy[Any]

LEVELS = (*range(900, 1001, 3), 2000, 100_000)
"""Depths of nesting at which one thing that walks through JSON gives up and the next one does not."""


def unhurried(examples: int) -> settings:
    """So many examples a run, as long as they take; a failing one is printed with what repeats it."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(deadline=None, max_examples=examples, suppress_health_check=checks, print_blob=True)


def nested(levels: int, of: str = "[]") -> bytes:
    """JSON of this many lists (or objects) in each other."""
    opened, closed = ("[", "]") if of == "[]" else ('{"a":', "}")
    return (opened * levels + "0" + closed * levels).encode()


def deep(levels: int) -> list[Any]:
    """So many lists in each other."""
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


_TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.sampled_from(["", "\0", "\ud83d", "a\udc00b", "\ufeff", "..", "x" * 5000, "9" * 5000, "é" * 300, "\n", "true"]),
)
_NUMBERS = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30, 10**400, -(10**18)]),
    st.floats(),
    st.sampled_from([1e18, -1e15, 1e308]),
)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)
_KEYS = st.one_of(
    st.sampled_from(["id", "type", "properties", "v", "update_id", "message", "directory", "tool", "data"]), _TEXTS
)

any_json: Anything = st.recursive(
    _SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_KEYS, below, max_size=3),
    max_leaves=8,
)


def _places(value: object) -> list[tuple[Any, Any]]:
    """Every place in this JSON, as what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value) if isinstance(value, list) else ())
    )
    for key, below in pairs:
        found += [(value, key), *_places(below)]
    return found


@st.composite
def mutated(draw: st.DrawFn, samples: Sequence[object]) -> Any:
    """One of the samples, with up to three things dropped, replaced, doubled or renamed."""
    value = [json.loads(json.dumps(draw(st.sampled_from(samples))))]
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(_places(value)))
        match draw(st.sampled_from(["drop", "replace", "replace", "replace", "wrap", "double", "rename"])):
            case "drop" if holder is not value:
                del holder[key]
            case "replace":
                holder[key] = draw(any_json)
            case "wrap":
                holder[key] = [holder[key]]
            case "double" if isinstance(holder, list) and holder is not value:
                holder.append(holder[key])
            case "rename" if isinstance(holder, dict):
                holder[draw(_KEYS)] = holder.pop(key)
            case _:
                pass
    return value[0]


_DOUBLES = ('{"type":0,"type":"', '{"v":1,', '{"v":2,"id":7,')
_WRITERS: Sequence[Callable[[str, st.DrawFn], bytes]] = (
    lambda plain, _: b"\xef\xbb\xbf" + plain.encode(),
    lambda plain, _: plain.encode("utf-16"),
    lambda plain, _: plain.encode() + b"\0" * 7,
    lambda plain, draw: plain.encode()[: draw(st.integers(0, len(plain)))],
    lambda plain, draw: _spoilt(plain.encode(), draw(st.integers(0, len(plain))), draw(st.binary(max_size=4))),
    lambda plain, draw: plain.replace("{", draw(st.sampled_from(_DOUBLES)), 1).encode(),
    lambda plain, draw: plain.replace("0", "9" * draw(st.sampled_from([400, 4300, 5000])), 1).encode(),
    lambda _, draw: nested(draw(st.sampled_from([900, 3000, 100_000])), draw(st.sampled_from(["[]", "{}"]))),
    *([lambda plain, _: plain.encode()] * 5),
)


def _spoilt(data: bytes, at: int, by: bytes) -> bytes:
    return data[:at] + by + data[at:]


@st.composite
def written(draw: st.DrawFn, values: Anything) -> bytes:
    """The JSON of such a value, as a careless or damaged sender may put it down."""
    value = draw(values)
    if draw(st.integers(0, 9)) == 0:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return draw(st.sampled_from(_WRITERS))(json.dumps(value), draw)


def bytes_of(samples: Sequence[object]) -> Bytes:
    """Any bytes: of a sample with something wrong in it most often, of any JSON, or of nothing known."""
    return st.one_of(
        written(mutated(samples)), written(mutated(samples)), written(mutated(samples)), written(any_json), st.binary()
    )

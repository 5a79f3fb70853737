"""Decode JSON that an agent's server sent, into shapes that are limited to the fields that Hermes reads."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from hermes.agents.fields import sound

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _sound(value: object) -> object:
    return sound(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_sound)]


class Wire(BaseModel):
    """A shape; other fields are ignored."""

    # A start builds none of the shapes: that would be a twentieth of its time, and few processes read all.
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, defer_build=True)


class Data(Wire, Generic[T_co]):
    """An answer that holds what was asked for in `data`."""

    data: T_co


@cache
def _reader(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def decode(kind: type[T], text: str | bytes) -> T:
    """Read JSON of this shape.

    Raises:
        ValueError: it is not JSON, or has another shape; the message names the place, and contains no value.
    """
    try:
        # Not pydantic's JSON parser, because it refuses the lone surrogate halves that JSON can carry.
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("not JSON") from None
    return shaped(kind, value)


def shaped(kind: type[T], value: object) -> T:
    """Read decoded JSON of this shape; see `decode`."""
    try:
        read: T = _reader(cast("Hashable", kind)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        fault = "is missing" if first["type"] == "missing" else "has a shape that Hermes does not know"
        raise ValueError(f"{sound(place[:80])} {fault}") from None
    return read

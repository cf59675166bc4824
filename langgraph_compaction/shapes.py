"""Whether a dict that was read from somewhere has the shape of a TypedDict, to the last value."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, NamedTuple, NotRequired, Union, get_args, get_origin

# pydantic refuses typing.TypedDict before Python 3.12.
from typing_extensions import get_type_hints, is_typeddict

from langgraph_compaction.errors import RecordError

LARGEST = 2**53 - 1
"""The largest whole number that every reader of JSON holds exactly. Checkpoints hold none of more
than 64 bits."""

REMEDY = (
    "Nothing was changed: write a correct record with a greater epoch by graph.update_state. "
    '{"epoch": n}, with a greater n, is one; with it the digest starts anew.'
)
"""Ends what is said of a record that cannot be read."""


class _Values(NamedTuple):
    """What the values of a field may be.

    Attributes:
        kinds: their types. Exactly these: True is no int.
        choices: all that there are, where that is known.
        items: type of the items of a list.
        least: the smallest number, here and in a list.
    """

    kinds: tuple[type, ...]
    choices: tuple[str, ...]
    items: type | None
    least: int

    @classmethod
    def of(cls, name: str, hint: Any) -> _Values:
        """The values of a field, from its name and annotation."""
        items = get_args(hint)[0] if get_origin(hint) is list else None
        return cls(
            kinds=_kinds(hint),
            choices=get_args(hint) if get_origin(hint) is Literal else (),
            items=items if items in {str, int} else None,
            # A position may say that there is none.
            least=-1 if name.endswith(("index", "indexes")) else 0,
        )

    def have(self, value: Any) -> bool:
        """Whether a value is one of them."""
        if type(value) not in self.kinds or (self.choices and value not in self.choices):
            return False
        if type(value) is int:
            return self.least <= value <= LARGEST
        if self.items is None:
            return True
        if self.items is int:
            return all(type(one) is int and self.least <= one <= LARGEST for one in value)
        return all(type(one) is self.items for one in value)

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        return " or ".join(map(self._named, self.kinds))

    def _named(self, kind: type) -> str:
        if kind is list and self.items is not None:
            return f"a list of {self._named(self.items)}"
        if kind is int:
            return f"int from {self.least} to {LARGEST}"
        return "None" if kind is type(None) else kind.__name__


class Shape:
    """The fields of a TypedDict: which have to be there, and what each may be.

    Args:
        kind: the TypedDict.
        where: what its values are called in errors.
    """

    def __init__(self, kind: type, where: str) -> None:
        hints = get_type_hints(kind)
        # __required_keys__ does not see NotRequired in annotations that are strings.
        marked: dict[str, Any] = get_type_hints(kind, include_extras=True)
        optional = {name for name, hint in marked.items() if get_origin(hint) is NotRequired}
        self.where = where
        self.required = set(hints) - optional if getattr(kind, "__total__", True) else set()
        self.values = {name: _Values.of(name, hint) for name, hint in hints.items()}

    def check(self, value: Mapping[str, Any], number: int | None = None) -> None:
        """Check the fields that are known; others are left alone.

        Args:
            value: what was read.
            number: which of several it is, for errors.

        Raises:
            RecordError: a required field is missing, or a value cannot be one of its field.
        """
        where = self.where if number is None else f"{self.where} {number}"
        missing = sorted(self.required - value.keys())
        if missing:
            raise RecordError(f"The {where} has no {missing[0]!r}. {REMEDY}")
        for name, values in self.values.items():
            if name in value and not values.have(value[name]):
                raise RecordError(
                    f"Field {name!r} of the {where} is {_shown(value[name])}; it has to be "
                    f"{values}. {REMEDY}"
                )


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001  # a number of more digits than Python writes
        return f"a {type(value).__name__}"


def _kinds(hint: Any) -> tuple[type, ...]:
    origin = get_origin(hint)
    if origin is Literal:
        return tuple({type(choice) for choice in get_args(hint)})
    if origin in {UnionType, Union}:
        return tuple(kind for choice in get_args(hint) for kind in _kinds(choice))
    if origin is list:
        return (list,)
    return (dict,) if is_typeddict(hint) else (hint,)

"""The values that one thing had, in order: the newest stands last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

MOST_VALUES = 100
"""Values of one thing that are remembered: a log may count to a million."""


class Series:
    """Values by what they are the values of."""

    def __init__(self, before: Mapping[str, Iterable[str]] | None = None) -> None:
        """Begin with values that are known already, oldest first."""
        self._names = {key: dict.fromkeys(names) for key, names in (before or {}).items()}

    def add(self, key: str, name: str, *, past: bool = False) -> None:
        """Take in a value. What is said again becomes the newest, unless it is said to be past."""
        names = self._names.setdefault(key, {})
        names.pop(name, None)
        if past and names:
            newest, _ = names.popitem()
            names[name] = names[newest] = None
        else:
            names[name] = None
        if len(names) > MOST_VALUES:
            del names[next(iter(names))]

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def values(self, key: str) -> list[str]:
        """All values of one thing, the newest last."""
        return list(self._names.get(key, ()))

    def newest(self, key: str) -> str:
        """The newest value of one thing."""
        return next(reversed(self._names[key]))

    def passed(self, key: str, name: str) -> bool:
        """Whether one thing has a newer value than this."""
        return key in self._names and self.newest(key) != name

    def all_passed(self) -> set[str]:
        """The values that have passed, and are the newest of nothing."""
        every = {name for names in self._names.values() for name in names}
        return every - {self.newest(key) for key in self._names}

"""What an object holds in memory: everything that it leads to."""

import gc
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType

_SHARED = (type, ModuleType, BuiltinFunctionType)


def held_by(root: object) -> list[object]:
    """Everything that an object leads to, but for what the whole program shares."""
    found: dict[int, object] = {id(root): root}
    pending = [root]
    while pending:
        one = pending.pop()
        leads_to: Iterable[object] = gc.get_referents(one)
        if isinstance(one, FunctionType):  # not its module's globals
            leads_to = (one.__closure__, one.__defaults__, one.__kwdefaults__)
        for other in leads_to:
            if other is not None and id(other) not in found and not isinstance(other, _SHARED):
                found[id(other)] = other
                pending.append(other)
    return list(found.values())


def size_of(found: Iterable[object]) -> int:
    """Bytes of objects, without what they lead to."""
    return sum(map(sys.getsizeof, found))

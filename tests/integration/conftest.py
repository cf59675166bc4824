"""Fixtures of the tests in this folder."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.gated import Gate
from tests.integration.recalling import from_archive, from_state


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A summariser that answers when it is let."""
    found = Gate()
    yield found
    found.open.set()  # whatever a test left waiting


@pytest.fixture(params=[from_state, from_archive], ids=["state", "archive"])
def ask(request: pytest.FixtureRequest) -> Any:
    """Gives the recall tool's answer to its arguments, from each of the places it looks at."""
    return request.param

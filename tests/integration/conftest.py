"""Fixtures of the tests in this folder."""

from collections.abc import Iterator

import pytest

from tests.integration.gated import Gate


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A summariser that answers when it is let."""
    found = Gate()
    yield found
    found.open.set()  # whatever a test left waiting

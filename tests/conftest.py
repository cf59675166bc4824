"""What every test runs under: Hypothesis profiles, and no service but those on this machine.

A test that reaches for a provider's API or for a vocabulary on the network would pass or fail by
the weather, and could spend a developer's money. So keys and tracing are taken out of the
environment before anything is imported that reads them, and a connection to any address but
loopback fails at once, as it does on a machine without a network.
"""

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
    os.environ.pop(variable, None)
os.environ["LANGSMITH_TRACING_V2"] = "false"  # the spelling that is looked at first

# No deadlines: two busy cores make any of them flaky. `fast` draws the same examples every time, so
# that `make test` fails for what a change did; `thorough` (`make test-all`) looks for new ones.
settings.register_profile("fast", max_examples=50, deadline=None, derandomize=True)
settings.register_profile(
    "thorough",
    max_examples=1_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fast")


def is_local(host: Any) -> bool:
    """Whether a host name or address, as given to the socket module, means this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", "0.0.0.0", "::"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Let look-ups and connections of any host but this one fail at once."""
    with pytest.MonkeyPatch.context() as patch:
        connect, look_up = socket.socket.connect, socket.getaddrinfo

        def connect_locally(self: socket.socket, address: Any) -> None:
            if isinstance(address, tuple) and not is_local(address[0]):
                raise ConnectionRefusedError(f"the tests use no network, not even {address[0]}")
            connect(self, address)

        def look_up_locally(host: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_local(host):
                raise socket.gaierror(socket.EAI_NONAME, f"the tests use no network ({host})")
            return look_up(host, *args, **kwargs)

        patch.setattr(socket.socket, "connect", connect_locally)
        patch.setattr(socket, "getaddrinfo", look_up_locally)
        yield


@pytest.fixture(scope="module")
def _running_server() -> Iterator[Any]:
    from tests.support.openai_server import OpenAIServer

    with OpenAIServer() as running:
        yield running


@pytest.fixture
def server(_running_server: Any) -> Iterator[Any]:
    """An `OpenAIServer`, one a module: at a new address ChatOpenAI takes a tenth of a second."""
    _running_server.requests.clear()
    yield _running_server
    _running_server.release()


@pytest.fixture(scope="session")
def _running_postgres() -> Iterator[str]:
    from tests.support.postgres import running_postgres

    with running_postgres() as uri:
        yield uri


@pytest.fixture
def postgres(_running_postgres: str) -> str:
    """The address of an empty PostgreSQL database; one server a session and worker."""
    from tests.support.postgres import new_database

    return new_database(_running_postgres)

"""A PostgreSQL server of the tests' own, from a wheel: nothing has to be installed or running."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

_NUMBERS = count(1)


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server in a folder of its own, give its address, and stop and delete it in the end.

    It listens on a socket in that folder alone, so that several may run at once. PostgreSQL refuses
    to run as root: started by root it runs as the user "pgserver", which is made if need be. Skips
    the test where there is no wheel for this Python.
    """
    pgserver = pytest.importorskip("pgserver")
    # Not pytest's folders: their paths are too long for a socket, and root's are closed to the
    # user that the server runs as when root starts it.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        with pgserver.get_server(folder, cleanup_mode="stop") as server:
            uri = server.get_uri()
            with psycopg.connect(uri, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # nothing here outlives a crash
                connection.execute("SELECT pg_reload_conf()")
            yield uri
            # At once: an orderly stop writes out what is deleted next.
            stop = ["-m", "immediate", "-w", "stop"]
            pgserver.pg_ctl(stop, pgdata=folder, user=server.system_user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(uri: str) -> str:
    """The address of a new, empty database of the server at ``uri``."""
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return uri.replace("/postgres?", f"/{name}?")

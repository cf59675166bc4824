"""Processes that are killed in the middle of everything: each thread goes on, whole.

Several work on one database at the same time. Some kills hit a chosen place (in the summary call,
before and after the archive or the checkpoint was written), some any.
"""

from pathlib import Path

import pytest

from tests.load.crew import MODES
from tests.load.killing import killed_often, places_for, with_tables

FEW, MANY = 10, 50
"""Kills of one test: with all modes the many are 200 for each database."""


def check(database: str, folder: Path, mode: str, kills: int) -> None:
    report = killed_often(with_tables(database), folder, mode, kills)
    assert report.faults == []
    assert report.kills.total() == kills
    assert report.resumed > kills / 2
    assert report.folds > kills / 2
    assert bool(report.archived) == ("prune" in mode)
    if kills == MANY:
        assert set(report.kills) == set(places_for(mode))


@pytest.mark.parametrize(
    ("mode", "kills"),
    [
        ("background, prune", FEW),
        pytest.param("plain", FEW, marks=pytest.mark.slow),
        *(pytest.param(mode, MANY, marks=pytest.mark.slow) for mode in MODES),
    ],
)
def test_with_a_sqlite_file(mode: str, kills: int, tmp_path: Path) -> None:
    check(str(tmp_path / "threads.sqlite"), tmp_path, mode, kills)


@pytest.mark.parametrize(
    ("mode", "kills"),
    [
        ("prune", FEW),
        pytest.param("background", FEW, marks=pytest.mark.slow),
        *(pytest.param(mode, MANY, marks=pytest.mark.slow) for mode in MODES),
    ],
)
def test_with_postgres(mode: str, kills: int, tmp_path: Path, postgres: str) -> None:
    check(postgres, tmp_path, mode, kills)

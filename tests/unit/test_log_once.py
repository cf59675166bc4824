"""Warnings of one node: each is logged once, and not without end."""

import logging

import pytest

from langgraph_compaction.run.telling import MOST_WARNINGS, LogOnce


def test_of_each_subject_the_first_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    node = LogOnce()
    with caplog.at_level(logging.WARNING, "langgraph_compaction"):
        node.warn("tools", [])
        assert not node.has("tools")
        node.warn("tools", ["One.", "Two."])
        node.warn("tools", ["In other words."])
        node.warn("window", ["Three."])
    assert node.has("tools")
    assert caplog.messages == ["One.", "Two.", "Three."]
    assert not LogOnce().has("tools")


def test_the_number_of_subjects_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    node = LogOnce()
    with caplog.at_level(logging.WARNING, "langgraph_compaction"):
        for number in range(2 * MOST_WARNINGS):
            node.warn(str(number), [f"Warning {number}."])
    assert caplog.messages == [f"Warning {number}." for number in range(MOST_WARNINGS)]

"""What was logged."""

import logging

import pytest


def warnings_in(caplog: pytest.LogCaptureFixture, about: str = "") -> list[str]:
    """The texts of all warnings so far that have this in them."""
    texts = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    return [text for text in texts if about in text]

"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest

_PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def kit() -> Path:
    """The reference kit: real inputs, and what the original programs made of them."""
    place = Path(os.environ.get("BERTDATA_REFERENCE_KIT", _PROJECT.parent / "shared" / "reference"))
    if not place.is_dir():
        pytest.skip(f"the reference kit is not at {place}; set BERTDATA_REFERENCE_KIT")
    return place

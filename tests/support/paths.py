"""Directories of the checkout that tests read."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "golden"
DUMP = next((GOLDEN / "dump").glob("*.xml"))
EXTRACTED = GOLDEN / "dump" / "extracted"
"""The articles that wikiextractor makes of the golden dump."""
STAND_INS = Path(__file__).resolve().parent / "stand_ins"


def find_kit() -> Path | None:
    """Return the directory of the reference kit, or None if there is none."""
    place = Path(os.environ.get("BERTDATA_REFERENCE_KIT", ROOT.parent / "shared" / "reference"))
    return place if (place / "expected.json").is_file() else None

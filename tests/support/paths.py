"""Places in the checkout that tests read from."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "golden"
STAND_INS = Path(__file__).resolve().parent / "stand_ins"


def find_kit() -> Path | None:
    """The reference kit, if it is at hand."""
    place = Path(os.environ.get("BERTDATA_REFERENCE_KIT", ROOT.parent / "shared" / "reference"))
    return place if (place / "expected.json").is_file() else None

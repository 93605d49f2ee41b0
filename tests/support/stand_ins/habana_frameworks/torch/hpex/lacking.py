"""Names that the stand-in lacks on request of the test. This module is not part of the vendor's interface."""

import os


def lacks(name: str) -> bool:
    return name in os.environ.get("BERTDATA_STAND_IN_LACKS", "").split(",")

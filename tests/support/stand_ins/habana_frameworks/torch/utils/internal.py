"""The bridge's mode, read once from the environment."""

import os
from functools import cache


@cache
def is_lazy() -> bool:
    return os.getenv("PT_HPU_LAZY_MODE", "0") != "0"

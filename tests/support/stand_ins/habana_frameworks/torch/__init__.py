"""Importing this module registers the device "hpu" with torch, in the mode that PT_HPU_LAZY_MODE selects."""

import os

from recording import record

record(f"import habana_frameworks.torch  with PT_HPU_LAZY_MODE={os.environ.get('PT_HPU_LAZY_MODE', 'unset')}")

from habana_frameworks.torch import core, hpu  # noqa: E402
from habana_frameworks.torch.distributed import hccl  # noqa: E402
from habana_frameworks.torch.utils.internal import is_lazy  # noqa: E402
from habana_frameworks.torch.version import __version__  # noqa: E402

__all__ = ["__version__", "core", "hccl", "hpu"]

is_lazy()  # from now on the environment counts no more

"""Stand-in for gradient clipping in one kernel."""

from collections.abc import Iterable
from typing import Any

import torch
from recording import record

from habana_frameworks.torch.hpex.lacking import lacks

if not lacks("FusedClipNorm"):

    class FusedClipNorm:
        """``torch.nn.utils.clip_grad_norm_`` in the form of Habana's class."""

        def __init__(self, parameters: Iterable[torch.nn.Parameter], max_norm: float) -> None:
            record(f"FusedClipNorm({len(list(parameters))} parameters, {max_norm:.6g})")
            self._max_norm = max_norm

        def clip_norm(self, parameters: Any) -> torch.Tensor:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            record(f"FusedClipNorm.clip_norm({len(parameters)} parameters)")
            return torch.nn.utils.clip_grad_norm_(parameters, self._max_norm).reshape(1)

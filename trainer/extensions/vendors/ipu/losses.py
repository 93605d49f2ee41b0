"""The classification loss in operations that PopART can differentiate."""

from torch import Tensor
from torch.nn import functional as F

_LEAST_LOGIT = -1e4


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """For each row its loss in fp32, and 1.0 where the label has the largest logit, else 0.0.

    Logits are clamped: the minus infinity of the padded vocabulary would give 0 * inf.
    """
    logits = logits.float().clamp(min=_LEAST_LOGIT)
    losses = F.cross_entropy(logits, ids, reduction="none")
    return losses, (logits.detach().argmax(dim=1) == ids).float()

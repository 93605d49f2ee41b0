"""Computes how many positions of an example are masked. Pure-Python twin of the kernels' masks_wanted."""

from bertdata.examples.masking.settings import MaskingSettings


def compute_masks_wanted(settings: MaskingSettings, length: int, rate: float | None = None) -> int:
    """Return the number of positions to mask in an example with ``length`` ids.

    This is a share of the ids, at least 1 and at most max_predictions_per_seq (Devlin et al. 2018). Settings
    for Graphcore also limit how many ids may stay unmasked. Longer examples then get additional masks.

    rate: share of the ids to mask. None means masked_lm_prob.
    """
    share = round(length * (settings.masked_lm_prob if rate is None else rate))
    wanted = min(settings.max_predictions_per_seq, max(1, share))
    if settings.most_unmasked is not None:
        wanted = max(wanted, length - settings.most_unmasked)
    return wanted

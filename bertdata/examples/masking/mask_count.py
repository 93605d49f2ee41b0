"""Number of masked positions of an example. Pure-Python twin of the kernels' masks_wanted."""

from bertdata.examples.masking.settings import MaskingSettings


def compute_masks_wanted(settings: MaskingSettings, length: int, rate: float | None = None) -> int:
    """Return the number of positions to mask in an example with ``length`` ids.

    This is a share of the ids, at least 1, at most max_predictions_per_seq (Devlin et al. 2018). For
    Graphcore, the settings also limit the number of ids that stay unmasked. Long examples then get as many
    more masks as this limit requires.
    rate: share to mask, instead of masked_lm_prob.
    """
    share = round(length * (settings.masked_lm_prob if rate is None else rate))
    wanted = min(settings.max_predictions_per_seq, max(1, share))
    if settings.most_unmasked is not None:
        wanted = max(wanted, length - settings.most_unmasked)
    return wanted

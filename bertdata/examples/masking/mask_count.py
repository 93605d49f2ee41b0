"""Number of masked positions of an example: the readable twin of the kernels' masks_wanted."""

from bertdata.examples.masking.settings import MaskingSettings


def masks_wanted(settings: MaskingSettings, length: int, rate: float | None = None) -> int:
    """Return the number of positions to mask in an example of so many ids.

    A share of the ids, at least 1, at most max_predictions_per_seq (Devlin et al. 2018). Where settings limit
    the ids that stay unmasked, as Graphcore's do, as many more as that asks for. rate: in place of
    masked_lm_prob.
    """
    share = round(length * (settings.masked_lm_prob if rate is None else rate))
    wanted = min(settings.max_predictions_per_seq, max(1, share))
    if settings.most_unmasked is not None:
        wanted = max(wanted, length - settings.most_unmasked)
    return wanted

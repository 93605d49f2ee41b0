"""Conversion of settings to flags of ``bertdata create`` and of the original program."""

from bertdata.examples.bert.settings import BertSettings


def create_flags(settings: BertSettings) -> list[str]:
    return [
        f"--dialect={settings.dialect}",
        f"--max-seq-length={settings.max_seq_length}",
        f"--max-predictions-per-seq={settings.max_predictions_per_seq}",
        f"--dupe-factor={settings.dupe_factor}",
        f"--random-seed={settings.random_seed}",
        f"--masked-lm-prob={settings.masked_lm_prob}",
        f"--short-seq-prob={settings.short_seq_prob}",
        f"--format={settings.format}",
        "--lower-case" if settings.lower_case else "--no-lower-case",
        f"--mask-share={settings.mask_share}",
        f"--random-share={settings.random_share}",
        f"--kept-share={settings.kept_share}",
        *["--whole-word-mask"] * settings.whole_word_mask,
        *["--remask"] * settings.remask,
        *["--no-masks"] * (not settings.masks),
    ]


def script_flags(settings: BertSettings) -> list[str]:
    return [
        f"--dialect={settings.dialect}",
        f"--max_seq_length={settings.max_seq_length}",
        f"--max_predictions_per_seq={settings.max_predictions_per_seq}",
        f"--dupe_factor={settings.dupe_factor}",
        f"--random_seed={settings.random_seed}",
        f"--masked_lm_prob={settings.masked_lm_prob}",
        f"--short_seq_prob={settings.short_seq_prob}",
        f"--do_lower_case={settings.lower_case}",
        f"--do_whole_word_mask={settings.whole_word_mask}",
        f"--remask={settings.remask}",
    ]

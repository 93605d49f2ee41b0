"""Warnings about a run of the text stage as a whole: what it could not keep apart from the evaluation set."""

from bertdata.text.settings import SegmentCounts


def count_warnings(directory: str, counts: SegmentCounts) -> list[str]:
    """Return the warnings about a finished directory of parts. counts: of the run that made it."""
    found = []
    if counts.withheld_in_training:
        found.append(
            f"{directory}: withheld texts in training: {counts.withheld_in_training}: the input has them "
            "twice, and the recipe withholds by place; to withhold by text, give --dedup exact "
            "--eval-share 1% in the place of the recipe's settings"
        )
    if counts.unprotected:
        found.append(
            f"{directory}: {counts.unprotected} texts of the sets to exclude have fewer words than an "
            "n-gram, so no document was left out for them; look for fewer words: --exclude-ngram N"
        )
    return found

"""Warnings about numbers of runs that are easily misread."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from trainer.logs.recorded_run import RecordedRun
from trainer.report.run_data import iterate_datasets

_FEW_EXAMPLES = 400
"""Number of evaluated examples below which there is a warning. An accuracy of 400 examples is known to 5
points.
"""
_NORMAL_95 = 1.96
"""Number of standard deviations on each side of the mean that hold 95 % of a normal distribution."""
_SHARES_OF_EXAMPLES = ("label_accuracy", "acc", "exact_match")
"""Columns of results that are a share of right examples."""
_OF_WORDS = ("mlm_loss", "masked_lm_loss")
"""Columns that show that a run predicts tokens of its vocabulary."""


def find_cautions(runs: Sequence[RecordedRun]) -> list[str]:
    """Return sentences about numbers that should be read with care. The list is empty if there are none."""
    found = list(_warn_of_vocabularies(runs))
    if not found:
        found += _warn_of_evaluation_data(runs)
    for run in runs:
        found += _warn_of_few_examples(run)
    return found


def _warn_of_vocabularies(runs: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield a warning if runs that predict tokens have different vocabularies."""
    predicting = [run for run in runs if _predicts_tokens(run)]
    if any(_have_different_vocabularies(one, other) for one, other in combinations(predicting, 2)):
        sizes = ", ".join(f"{run.name}: {_find_vocabulary_size(run)}" for run in predicting)
        yield (
            f"The runs have different vocabularies ({sizes}). They predict different tokens, so their losses "
            "and accuracies cannot be compared with each other. Compare each run with its own guess."
        )


def _predicts_tokens(run: RecordedRun) -> bool:
    """Return True if a table of the run has the loss of masked words."""
    rows = (row for phase in run.phases for row in (*phase.training, *phase.evaluations))
    return any(name in row for row in rows for name in _OF_WORDS)


def _have_different_vocabularies(one: RecordedRun, other: RecordedRun) -> bool:
    """Return True if two runs are known to have different vocabularies.

    Their md5s are compared. If the data of a run no longer exist, the models' numbers of tokens are compared.
    """
    for find in (_find_vocabulary_md5, _find_model_tokens):
        found, of_other = find(one), find(other)
        if found is not None and of_other is not None:
            return found != of_other
    return False


def _find_vocabulary_md5(run: RecordedRun) -> str | None:
    """Return the md5 of the run's vocabulary in its training data's manifest, or None if it is not known."""
    for found in iterate_datasets(run, "train_data"):
        if found.manifest is not None:
            return str(found.manifest.plan.settings.vocabulary["md5"])
    return None


def _find_model_tokens(run: RecordedRun) -> int | None:
    """Return the number of tokens of the run's model, or None if it is not known."""
    size: int | None = run.state.get("model", {}).get("vocab_size")
    return size


def _find_vocabulary_size(run: RecordedRun) -> str:
    """Return the number of tokens of the run's vocabulary in words."""
    for found in iterate_datasets(run, "train_data"):
        if found.manifest is not None and (tokens := found.manifest.plan.settings.vocabulary.get("tokens")):
            return f"{tokens:,} tokens"
    size = _find_model_tokens(run)
    return "not known" if size is None else f"{size:,} tokens"


def _warn_of_evaluation_data(runs: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield a warning if the runs were evaluated on different texts."""
    texts = {run.name: _find_evaluated_texts(run) for run in runs}
    known = {one for one in texts.values() if one}
    if len(known) > 1:
        names = ", ".join(name for name, one in texts.items() if one)
        yield (
            f"The runs were evaluated on different data ({names}). A difference between their results may "
            "come from the data."
        )


def _find_evaluated_texts(run: RecordedRun) -> frozenset[str]:
    """Return the md5s of the input files of the run's evaluation data. Empty if they are not known."""
    return frozenset(
        entry.md5
        for found in iterate_datasets(run, "eval_data")
        if found.manifest is not None
        for entry in found.manifest.inputs
    )


def _warn_of_few_examples(run: RecordedRun) -> Iterator[str]:
    """Yield a warning if the last evaluation of a run had few examples."""
    if not run.phases[-1].evaluations:
        return
    row = run.phases[-1].evaluations[-1]
    examples = int(row.get("examples", _FEW_EXAMPLES))
    if not 0 < examples < _FEW_EXAMPLES:
        return
    told = f"{run.name} was evaluated on only {examples:,} example{'s' * (examples > 1)}."
    share = next((row[name] for name in _SHARES_OF_EXAMPLES if name in row), None)
    if share is None:
        yield f"{told} A small difference between results may be chance."
        return
    share = share / 100 if "exact_match" in row else share
    low, high = compute_wilson_interval(share, examples)
    yield (
        f"{told} With so few, an accuracy of {share:.1%} means {low:.0%} to {high:.0%} on other texts of the "
        "same kind (interval of 95 %), so a small difference may be chance."
    )


def compute_wilson_interval(share: float, examples: int) -> tuple[float, float]:
    """Return the interval that contains the true share with a confidence of 95 % (Wilson 1927).

    share: share of right examples among the evaluated ones.
    examples: number of evaluated examples.
    """
    squared = _NORMAL_95**2
    middle = share + squared / (2 * examples)
    spread = _NORMAL_95 * (share * (1 - share) / examples + squared / (4 * examples**2)) ** 0.5
    whole = 1 + squared / examples
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)

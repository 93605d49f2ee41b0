"""Charts of runs: losses, accuracies, speeds and other measures, drawn over the updates.

Next to the accuracies a chart shows the score of guessing: a baseline that predicts the most frequent label
for every text without reading it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from bertdata.dataset.label_counts import survey_labels
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.errors import BertDataError
from bertdata.reports.charts.line_chart import Line, LineChart
from trainer.logs.recorded_run import RecordedRun, find_columns

_EVALUATION_SUFFIXES = {"loss": "loss", "acc": "accuracy"}
"""For each ending of a column's name in training.csv, the ending of the name that the same measure has in
evaluation.csv.
"""
_EVALUATION_PREFIXES = {"mlm": "masked_lm", "nsp": "next_sentence"}
"""For each beginning of a column's name in training.csv, the beginning in evaluation.csv. Other beginnings
are the same in both tables.
"""
_NAMES = {"mlm": "masked words", "nsp": "next sentence", "": "all examples"}
_GUESS_COLUMNS = {"masked_lm_accuracy": "most_frequent_accuracy", "label_accuracy": "guess_acc"}
"""For a column of results, the column with the score of guessing (always predicting the most frequent label).
For columns that are not listed, that column's name is ``guess_`` and the name of the column of results.
"""
_LEAST_SPAN = 0.4
"""The axis of a loss covers at least this share of the largest value."""
_BESIDE = ("step", "trained", "examples", "epoch", "loss", "step_loss")
_SQUAD_SCORES = ("exact_match", "f1")
"""Columns with SQuAD's scores. If a table has both, it belongs to SQuAD, and its scores are in per cent."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that runs log, and how a chart shows it.

    in_training: the number's column in training.csv, or "" if it has none.
    evaluated: the number's column in evaluation.csv, or "" if it has none.
    factor: factor that converts the value in training.csv to ``unit``.
    from_zero: True if the chart's axis begins at 0, because the size of the value matters more than its
    change.
    """

    title: str
    unit: str
    in_training: str
    evaluated: str = ""
    factor: float = 1.0
    least_top: float = 0.0
    is_loss: bool = False
    is_noisy: bool = False


OPTIMISER = (
    Measure("Learning rate", "learning rate", "lr"),
    Measure("Gradient norm", "norm before clipping", "gradient_norm", is_noisy=True),
)
SPEED = (
    Measure("Throughput", "tokens per second", "tokens_per_second", is_noisy=True),
    Measure("Sequences", "sequences per second", "samples_per_sec", is_noisy=True),
    Measure("Waiting for data", "share of the time (%)", "data_wait_share", factor=100, least_top=5),
    Measure("Fill", "tokens that are no padding (%)", "fill", factor=100, least_top=100),
    Measure("Time of an update", "seconds", "iter_time", is_noisy=True),
    Measure("Arithmetic", "TFLOP/s per device", "tflops", is_noisy=True),
    Measure("Share of the device's peak", "share of the peak (%)", "peak_share", factor=100, least_top=5),
    Measure("Memory", "GiB, most of a device", "memory_gib"),
)


def make_result_charts(runs: Sequence[RecordedRun]) -> list[LineChart]:
    """Return the charts of what the model has learned: one for each loss and accuracy, then one for each
    score.
    """
    return make_charts([*_find_losses_and_accuracies(runs), *_find_score_measures(runs)], runs)


def make_charts(measures: Sequence[Measure], runs: Sequence[RecordedRun]) -> list[LineChart]:
    """Return a chart for each measure, without the measures for which no run has numbers."""
    lines = {
        measure: (*_make_lines(measure, runs), *_make_baseline_lines(measure, runs)) for measure in measures
    }
    return [
        LineChart(
            title=measure.title,
            description=_describe_chart(measure, found),
            x_label="update",
            y_label=measure.unit,
            lines=found,
            whole_x=True,
            y_range=(_choose_bottom(measure, found), None),
            least_top=measure.least_top,
        )
        for measure, found in lines.items()
        if found
    ]


def _choose_bottom(measure: Measure, lines: Sequence[Line]) -> float | None:
    """Return the first value of a chart's y axis, or None if there are negative values."""
    lowest = min(min(line.ys) for line in lines)
    if lowest < 0:
        return None
    highest = max(max(line.ys) for line in lines)
    return min(lowest, (1 - _LEAST_SPAN) * highest) if measure.is_loss else 0.0


def name_baseline_column(evaluated: str) -> str:
    """Return the column with the score of guessing (always the most frequent label) for a column of results.

    evaluated: name of the column of results in evaluation.csv.
    """
    return _GUESS_COLUMNS.get(evaluated, f"guess_{evaluated}")


def _find_losses_and_accuracies(runs: Sequence[RecordedRun]) -> list[Measure]:
    """Return the measures for the losses and accuracies in training.csv, grouped by task.

    If training.csv has no loss, the loss of the evaluations is included.
    """
    parts = [name.rpartition("_") for name in find_columns(runs, "training") if name != "step_loss"]
    found = [(head, end) for head, _, end in parts if end in _EVALUATION_SUFFIXES]
    if "loss" not in (end for _, end in found) and "loss" in find_columns(runs, "evaluations"):
        found.append(("", "loss"))
    heads = [head for head, _ in found]
    return [_make_measure(*one) for one in sorted(found, key=lambda one: heads.index(one[0]))]


def _make_measure(head: str, end: str) -> Measure:
    """Return the chart's description of a loss or an accuracy: its column, title and axis.

    head: beginning of its column's name, for example "mlm".
    end: end of its column's name, "loss" or "acc".
    """
    name = _EVALUATION_SUFFIXES[end]
    unit = "accuracy (0 to 1)" if end == "acc" else "loss (nats)"
    if head == "score":
        unit = "loss (squared error)"
    title = f"{name.capitalize()}: {_NAMES.get(head, head.replace('_', ' '))}" if head else "Loss"
    in_training, evaluated = f"{head}_{end}", f"{_EVALUATION_PREFIXES.get(head, head)}_{name}"
    columns = in_training.lstrip("_"), evaluated.lstrip("_")
    return Measure(title, unit, *columns, is_loss=end == "loss", is_noisy=True)


def _find_score_measures(runs: Sequence[RecordedRun]) -> list[Measure]:
    """Return the measures for the scores in evaluation.csv, such as F1. Losses, accuracies and the scores of
    guessing are not among them.
    """
    names = find_columns(runs, "evaluations")
    scores = [
        name
        for name in names
        if name not in (*_BESIDE, *_GUESS_COLUMNS.values())
        # a column acc has the same numbers as label_accuracy, which is drawn already
        and not (name == "acc" and "label_accuracy" in names)
        and not name.startswith("guess_")
        and not name.endswith(("_loss", "_accuracy"))
    ]
    per_cent = _SQUAD_SCORES if all(name in scores for name in _SQUAD_SCORES) else ()
    return [
        Measure(
            f"Score: {name.replace('_', ' ')}",
            "per cent" if name in per_cent else "score (at most 1)",
            in_training="",
            evaluated=name,
        )
        for name in scores
    ]


def _make_lines(measure: Measure, runs: Sequence[RecordedRun]) -> list[Line]:
    """Return the lines of the measure's chart: for each phase of a run, a line for its training and a line
    for its evaluations. A line without numbers is left out.
    """
    lines = []
    kind = "training" if measure.evaluated else ""
    for run in runs:
        for phase in run.phases:
            trained = phase.points(phase.training, measure.in_training, measure.factor)
            evaluated = phase.points(phase.evaluations, measure.evaluated)
            other = phase.series + (len(runs) == 1)
            name = phase.label(kind) or run.name
            lines.append(Line(name, *trained, series=phase.series, smoothed=measure.is_noisy))
            lines.append(Line(phase.label("evaluated"), *evaluated, markers=True, series=other))
    return [line for line in lines if line.xs]


def _make_baseline_lines(measure: Measure, runs: Sequence[RecordedRun]) -> list[Line]:
    """Return horizontal lines at the score of always guessing the most frequent label, without reading the
    text.

    If the score is the same for all phases, there is one line, otherwise a line for each phase.
    """
    lines, column = [], name_baseline_column(measure.evaluated)
    for run in runs if measure.evaluated else ():
        is_told = column in find_columns([run], "evaluations")
        data = run.config.get("train_data")
        is_untold = not is_told and isinstance(data, str)
        of_data = find_training_baselines(data).get(measure.in_training) if is_untold else None
        for phase in run.phases:
            found = phase.points(phase.evaluations, column)[1]
            level = found[-1] if found else of_data
            if level is not None and (span := phase.span):
                label = phase.label("guess without reading")
                lines.append(Line(label, span, [level] * len(span), dashed=True, series=phase.series))
    if len({round(line.ys[0], 6) for line in lines}) != 1:
        return lines
    updates = [update for line in lines for update in line.xs]
    ends = [min(updates), max(updates)]
    return [Line("guess without reading", ends, [lines[0].ys[0]] * 2, dashed=True)]


@lru_cache
def find_training_baselines(paths: str) -> Mapping[str, float]:
    """Return the baseline for the training data: what always guessing the most frequent label would reach.

    The result has accuracies and losses by their columns in training.csv. It is {} if the data no longer
    exist. It is cached, because finding it reads all labels and every chart of a page needs it.
    paths: the data as the setting train_data names them.
    """
    found: dict[str, float] = {}
    with suppress(BertDataError):
        survey = survey_labels(open_weighted(paths, split="training"))
        for head, labels in (("mlm", survey.words), ("nsp", survey.pairs), ("boundary", survey.words)):
            if labels and sum(labels.counts):
                found |= {f"{head}_acc": labels.share, f"{head}_loss": labels.loss}
    return found


def _describe_chart(measure: Measure, lines: Sequence[Line]) -> str:
    """Describe a chart in words, for a screen reader.

    The description has the last value of each line. For measures of speed it also has the smallest and
    largest value.
    """
    ends = [f"{line.name} {'at' if line.dashed else 'ends at'} {line.ys[-1]:.4g}" for line in lines]
    if not measure.evaluated:
        ends = [
            f"{line.name} from {min(line.ys):.4g} to {max(line.ys):.4g}, at the end {line.ys[-1]:.4g}"
            for line in lines
        ]
    return f"{measure.title}, {measure.unit}. {'; '.join(ends)}."

"""Charts of the numbers of runs over the updates, each on its own scale beside what a guess reaches."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from bertdata.dataset.label_counts import survey_labels
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.errors import BertDataError
from bertdata.report.charts.line_chart import Line, LineChart
from trainer.logs.recorded_run import RecordedRun, columns_of

_END_NAMES = {"loss": "loss", "acc": "accuracy"}
"""The end of evaluation.csv's columns for that of training.csv's."""
_EVALUATED = {"mlm": "masked_lm", "nsp": "next_sentence"}
"""The beginning of evaluation.csv's columns for that of training.csv's, where they differ."""
_NAMES = {"mlm": "masked words", "nsp": "next sentence", "": "all examples"}
_GUESSES = {"masked_lm_accuracy": "most_frequent_accuracy", "label_accuracy": "guess_acc"}
"""The column of the guess beside a column of results, where it is not ``guess_`` before its name."""
_BESIDE = ("step", "trained", "examples", "epoch", "loss", "step_loss")
_PER_CENT = ("exact_match", "f1")
"""Scores of SQuAD, which are per cent where both are there."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a run. in_training, evaluated: its columns in the two tables, empty where it has none.

    factor: to the unit, from that of training.csv. from_zero: its size matters more than its change.
    """

    title: str
    unit: str
    in_training: str
    evaluated: str = ""
    factor: float = 1.0
    from_zero: bool = False


OPTIMISER = (
    Measure("Learning rate", "learning rate", "lr"),
    Measure("Gradient norm", "norm before clipping", "gradient_norm"),
)
SPEED = (
    Measure("Throughput", "tokens a second, without padding", "tokens_per_second"),
    Measure("Sequences", "sequences a second", "samples_per_sec"),
    Measure("Waiting for data", "share of the time (%)", "data_wait_share", factor=100, from_zero=True),
    Measure("Fill", "tokens that are no padding (%)", "fill", factor=100),
    Measure("Time of an update", "seconds", "iter_time"),
    Measure("Arithmetic", "10^12 operations a second and device", "tflops"),
    Measure("Share of the device's peak", "share of the peak (%)", "peak_share", factor=100),
    Measure("Memory", "GiB, most of a device", "memory_gib", from_zero=True),
)


def learned_charts(runs: Sequence[RecordedRun]) -> list[LineChart]:
    """A chart of each loss and each accuracy, then of each score."""
    return charts_of([*_losses_and_accuracies(runs), *_scores(runs)], runs)


def charts_of(measures: Sequence[Measure], runs: Sequence[RecordedRun]) -> list[LineChart]:
    """A chart of each of the measures that a run has numbers of."""
    lines = {measure: (*_lines(measure, runs), *_guess_lines(measure, runs)) for measure in measures}
    return [
        LineChart(
            title=measure.title,
            description=_described(measure, found),
            x_label="update",
            y_label=measure.unit,
            lines=found,
            whole_x=True,
            y_range=(0, None) if measure.from_zero else (None, None),
        )
        for measure, found in lines.items()
        if found
    ]


def guess_column(evaluated: str) -> str:
    """The column of what a guess reaches beside a column of results."""
    return _GUESSES.get(evaluated, f"guess_{evaluated}")


def _losses_and_accuracies(runs: Sequence[RecordedRun]) -> list[Measure]:
    """The losses and accuracies that training.csv has, each task's together, else the evaluations' loss."""
    parts = [name.rpartition("_") for name in columns_of(runs, "training") if name != "step_loss"]
    found = [(head, end) for head, _, end in parts if end in _END_NAMES]
    if "loss" not in (end for _, end in found) and "loss" in columns_of(runs, "evaluations"):
        found.append(("", "loss"))
    heads = [head for head, _ in found]
    return [_learned(*one) for one in sorted(found, key=lambda one: heads.index(one[0]))]


def _learned(head: str, end: str) -> Measure:
    name = _END_NAMES[end]
    unit = "accuracy (0 to 1)" if end == "acc" else "loss (nats)"
    if head == "score":
        unit = "loss (squared error)"
    title = f"{name.capitalize()}: {_NAMES.get(head, head.replace('_', ' '))}" if head else "Loss"
    in_training, evaluated = f"{head}_{end}", f"{_EVALUATED.get(head, head)}_{name}"
    return Measure(title, unit, in_training.lstrip("_"), evaluated.lstrip("_"))


def _scores(runs: Sequence[RecordedRun]) -> list[Measure]:
    """The results of evaluations that are no loss, no accuracy and no guess."""
    names = columns_of(runs, "evaluations")
    scores = [
        name
        for name in names
        if name not in (*_BESIDE, *_GUESSES.values())
        and not (name == "acc" and "label_accuracy" in names)  # the same number
        and not name.startswith("guess_")
        and not name.endswith(("_loss", "_accuracy"))
    ]
    per_cent = _PER_CENT if all(name in scores for name in _PER_CENT) else ()
    return [
        Measure(
            f"Score: {name.replace('_', ' ')}",
            "per cent" if name in per_cent else "score (at most 1)",
            in_training="",
            evaluated=name,
        )
        for name in scores
    ]


def _lines(measure: Measure, runs: Sequence[RecordedRun]) -> list[Line]:
    """Lines of the training and of the evaluations of each phase, where there are numbers of them."""
    lines = []
    kind = "training" if measure.evaluated else ""
    for run in runs:
        for phase in run.phases:
            trained = phase.points(phase.training, measure.in_training, measure.factor)
            evaluated = phase.points(phase.evaluations, measure.evaluated)
            other = phase.series + (len(runs) == 1)
            lines.append(Line(phase.label(kind) or run.name, *trained, series=phase.series))
            lines.append(Line(phase.label("evaluated"), *evaluated, markers=True, series=other))
    return [line for line in lines if line.xs]


def _guess_lines(measure: Measure, runs: Sequence[RecordedRun]) -> list[Line]:
    """The level of a guess that reads nothing: one line where it is the same for all, else one a phase."""
    lines, column = [], guess_column(measure.evaluated)
    for run in runs if measure.evaluated else ():
        is_told = column in columns_of([run], "evaluations")
        data = run.config.get("train_data")
        is_untold = not is_told and isinstance(data, str)
        of_data = guesses_of_data(data).get(measure.in_training) if is_untold else None
        for phase in run.phases:
            found = phase.points(phase.evaluations, column)[1]
            level = found[-1] if found else of_data
            if level is not None and (span := phase.span):
                label = phase.label("guess without reading")
                lines.append(Line(label, span, [level] * len(span), dashed=True))
    if len({round(line.ys[0], 6) for line in lines}) != 1:
        return lines
    updates = [update for line in lines for update in line.xs]
    ends = [min(updates), max(updates)]
    return [Line("guess without reading", ends, [lines[0].ys[0]] * 2, dashed=True)]


@lru_cache
def guesses_of_data(paths: str) -> Mapping[str, float]:
    """For each column of training.csv what a guess reaches on the training data, where they are at hand.

    All charts of a page ask this, and all labels are read for it.
    """
    found: dict[str, float] = {}
    with suppress(BertDataError):
        survey = survey_labels(open_weighted(paths, split="training"))
        for head, labels in (("mlm", survey.words), ("nsp", survey.pairs), ("boundary", survey.words)):
            if labels and sum(labels.counts):
                found |= {f"{head}_acc": labels.share, f"{head}_loss": labels.loss}
    return found


def _described(measure: Measure, lines: Sequence[Line]) -> str:
    """The values of each line, for a screen reader: the last one, and of speed their range."""
    ends = [f"{line.name} {'at' if line.dashed else 'ends at'} {line.ys[-1]:.4g}" for line in lines]
    if not measure.evaluated:
        ends = [
            f"{line.name} from {min(line.ys):.4g} to {max(line.ys):.4g}, at the end {line.ys[-1]:.4g}"
            for line in lines
        ]
    return f"{measure.title}, {measure.unit}. {'; '.join(ends)}."

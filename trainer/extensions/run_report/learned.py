"""Charts of loss, accuracy and scores over the updates, each on its own scale beside what a guess reaches."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bertdata.dataset.label_counts import survey_labels
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.errors import BertDataError
from bertdata.report.charts.line_chart import Line, LineChart
from trainer.extensions.run_report.recorded_run import RecordedPhase, RecordedRun

UPDATES = "update"
_EVALUATED = {"mlm": "masked_lm", "nsp": "next_sentence"}
"""The beginning of evaluation.csv's columns for that of training.csv's, where they differ."""
_NAMES = {"mlm": "masked words", "nsp": "next sentence", "": "all examples"}
_GUESSES = {"masked_lm_accuracy": "most_frequent_accuracy", "label_accuracy": "guess_acc"}
"""The column of the guess beside a column of results, where it is not ``guess_`` before its name."""
_BESIDE = ("step", "trained", "examples", "epoch", "loss", "step_loss")
_PER_CENT = ("exact_match", "f1")
"""Scores of SQuAD, which are per cent where both are there."""


@dataclass(frozen=True, slots=True)
class LearnedMeasure:
    """A number that shows what is learned. in_training, evaluated: its columns in the two tables."""

    title: str
    unit: str
    in_training: str
    evaluated: str


def guess_column(evaluated: str) -> str:
    """The column of what a guess reaches beside a column of results."""
    return _GUESSES.get(evaluated, f"guess_{evaluated}")


def learned_charts(runs: Sequence[RecordedRun], names: Sequence[str]) -> list[LineChart]:
    """A chart of each loss and each accuracy, then of each score. names: of the runs, as in the legends."""
    measures = _losses_and_accuracies(runs) + _scores(runs)
    charts = [_chart(measure, runs, names) for measure in measures]
    return [chart for chart in charts if any(line.xs for line in chart.lines)]


def run_lines(
    runs: Sequence[RecordedRun], names: Sequence[str], column: str, factor: float = 1.0
) -> list[Line]:
    """A line of a column of training.csv for each run, of a run of several phases one for each phase."""
    lines = []
    for colour, (run, name) in enumerate(zip(runs, names, strict=True)):
        for number, phase in enumerate(run.phases):
            xs, ys = phase.points(phase.training, column, factor)
            series = colour if len(runs) > 1 else 2 * number
            lines += [Line(_label(name, phase, "", len(runs)), xs, ys, series=series)] if xs else []
    return lines


def _losses_and_accuracies(runs: Sequence[RecordedRun]) -> list[LearnedMeasure]:
    """The losses and accuracies that training.csv has, then those that evaluations alone have."""
    training = dict.fromkeys(name for run in runs for name in run.columns("training"))
    found = []
    for name in training:
        head, _, kind = name.rpartition("_")
        if kind in ("loss", "acc") and name != "step_loss":
            end = "loss" if kind == "loss" else "accuracy"
            evaluated = f"{_EVALUATED.get(head, head)}_{end}".lstrip("_")
            found.append(_measure(head, end, name, evaluated))
    has_own_loss = any(measure.unit.startswith("loss") for measure in found)
    if not has_own_loss and ("loss" in training or any("loss" in run.columns("evaluations") for run in runs)):
        found.append(_measure("", "loss", "loss", "loss"))
    return sorted(found, key=lambda measure: _head_of(measure, found))


def _head_of(measure: LearnedMeasure, found: Sequence[LearnedMeasure]) -> int:
    """The place of the measure's loss and accuracy among those of the others, so that both stand together."""
    heads = list(dict.fromkeys(one.in_training.rpartition("_")[0] for one in found))
    return heads.index(measure.in_training.rpartition("_")[0])


def _measure(head: str, end: str, in_training: str, evaluated: str) -> LearnedMeasure:
    what = _NAMES.get(head, head.replace("_", " "))
    unit = "accuracy (0 to 1)" if end == "accuracy" else "loss (nats)"
    if head == "score":
        unit = "loss (squared error)"
    title = f"{'Accuracy' if end == 'accuracy' else 'Loss'}: {what}" if head else "Loss"
    return LearnedMeasure(title, unit, in_training, evaluated)


def _scores(runs: Sequence[RecordedRun]) -> list[LearnedMeasure]:
    """The results of evaluations that are no loss, no accuracy and no guess."""
    names = dict.fromkeys(name for run in runs for name in run.columns("evaluations"))
    scores = [
        name
        for name in names
        if name not in (*_BESIDE, *_GUESSES.values())
        and not (name == "acc" and "label_accuracy" in names)  # the same number
        and not name.startswith("guess_")
        and not name.endswith(("_loss", "_accuracy"))
    ]
    is_per_cent = all(name in scores for name in _PER_CENT)
    return [
        LearnedMeasure(
            f"Score: {name.replace('_', ' ')}",
            "per cent" if is_per_cent and name in _PER_CENT else "score (at most 1)",
            "",
            name,
        )
        for name in scores
    ]


def _chart(measure: LearnedMeasure, runs: Sequence[RecordedRun], names: Sequence[str]) -> LineChart:
    lines: list[Line] = []
    for colour, (run, name) in enumerate(zip(runs, names, strict=True)):
        for number, phase in enumerate(run.phases):
            series = colour if len(runs) > 1 else 2 * number
            trained = phase.points(phase.training, measure.in_training)
            evaluated = phase.points(phase.evaluations, measure.evaluated)
            lines.append(Line(_label(name, phase, "training", len(runs)), *trained, series=series))
            series = colour if len(runs) > 1 else series + 1
            label = _label(name, phase, "evaluated", len(runs))
            lines.append(Line(label, *evaluated, markers=True, series=series))
    lines = [line for line in lines if line.xs]
    lines += _guess_lines(measure, runs, names)
    return LineChart(
        title=measure.title,
        description=_described(measure, lines),
        x_label=UPDATES,
        y_label=measure.unit,
        lines=tuple(lines),
        whole_x=True,
    )


def _label(run: str, phase: RecordedPhase, kind: str, runs: int) -> str:
    parts = [run if runs > 1 else "", phase.name, kind]
    return ", ".join(part for part in parts if part) or run


def _guess_lines(measure: LearnedMeasure, runs: Sequence[RecordedRun], names: Sequence[str]) -> list[Line]:
    """The level of a guess that reads nothing: one line where it is the same for all, else one a phase."""
    lines = []
    for run, name in zip(runs, names, strict=True):
        of_data = None if _has_guess(run, measure) else guesses_of_data(run).get(measure.in_training)
        for phase in run.phases:
            found = phase.points(phase.evaluations, guess_column(measure.evaluated))[1]
            level = found[-1] if found else of_data
            if level is not None and (span := phase.span):
                label = _label(name, phase, "guess without reading", len(runs))
                lines.append(Line(label, span, [level] * len(span), dashed=True))
    if len({round(line.ys[0], 6) for line in lines}) > 1:
        return lines
    span = sorted({update for line in lines for update in (line.xs[0], line.xs[-1])})
    ends = [span[0], span[-1]] if span else []
    return [Line("guess without reading", ends, [line.ys[0]] * 2, dashed=True) for line in lines[:1]]


def _has_guess(run: RecordedRun, measure: LearnedMeasure) -> bool:
    return guess_column(measure.evaluated) in run.columns("evaluations")


def guesses_of_data(run: RecordedRun) -> Mapping[str, float]:
    """For each column of training.csv what a guess reaches on the training data, where they are at hand."""
    path = run.config.get("train_data")
    if not isinstance(path, str):
        return {}
    found: dict[str, float] = {}
    with suppress(BertDataError):
        survey = survey_labels(open_weighted(path, split="training"))
        for head, labels in (("mlm", survey.words), ("nsp", survey.pairs), ("boundary", survey.words)):
            if labels and sum(labels.counts):
                found |= {f"{head}_acc": labels.share, f"{head}_loss": labels.loss}
    return found


def _described(measure: LearnedMeasure, lines: Sequence[Line]) -> str:
    """The last value of each line, for a screen reader."""
    ends = [f"{line.name} {'at' if line.dashed else 'ends at'} {line.ys[-1]:.4g}" for line in lines]
    return f"{measure.title}, {measure.unit}. {'; '.join(ends)}."

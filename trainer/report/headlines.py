"""The headline figures of a run: what it reached, next to a guess, how long it took, and how fast it was."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from bertdata.io.terminal import format_duration
from bertdata.reports.charts.values import format_value
from bertdata.reports.page.blocks import Figure, FiguresBlock
from trainer.logs.charts import name_baseline_column
from trainer.logs.recorded_run import RecordedRun
from trainer.report.facts import describe_end, describe_progress, select_results
from trainer.report.words import describe_measure

_MOST_RESULTS = 4
_OF_SQUAD = ("exact_match", "f1")
_SHARES = ("accuracy", "acc", "acc_and_f1", "f1")
"""Endings of the measures that are shares from 0 to 1, which are shown in per cent."""


def make_headlines(run: RecordedRun) -> FiguresBlock:
    """Return the headline figures of a run."""
    figures = (*_make_results(run), *_make_best(run), *_make_course(run))
    return FiguresBlock(f"Headline figures of {run.name}", figures)


def _make_results(run: RecordedRun) -> Iterator[Figure]:
    """Yield the results of the last evaluation. Without evaluations, yield the means of the last row of
    training.csv.
    """
    last = run.phases[-1]
    if last.evaluations:
        row = last.evaluations[-1]
        names = select_results([row])
        told = f"on {row['examples']:,.0f} examples" if "examples" in row else ""
    elif last.training:
        row = last.training[-1]
        names = [name for name in row if name.endswith(("_loss", "_acc")) or name == "loss"]
        told = "in training, not evaluated"
    else:
        return
    # Scores come before losses, because more readers know what they mean.
    names = sorted(names, key=lambda name: name.endswith("loss"))
    for name in names[:_MOST_RESULTS]:
        guess = row.get(name_baseline_column(name))
        compared = "" if guess is None else f"a guess reaches {_format_result(name, guess, row)}"
        notes = ", ".join(filter(None, (compared, told)))
        yield Figure(describe_measure(name), _format_result(name, row[name], row), notes)


def _make_best(run: RecordedRun) -> Iterator[Figure]:
    """Yield the best result of a run with keep_best, unless its last evaluation is the best.

    Other commands take the checkpoint of the best evaluation, so its result matters more than the last one.
    """
    best, last = run.state.get("best"), run.phases[-1]
    if not best or not last.evaluations:
        return
    row = last.evaluations[-1]
    if best["number"] != int(row["step"]) + last.offset:
        value = _format_result(best["metric"], best["value"], row)
        note = f"after update {best['number']:,}, the checkpoint that is used"
        yield Figure(f"best {describe_measure(best['metric'])}", value, note)


def _format_result(name: str, value: float, row: Mapping[str, float]) -> str:
    """Return a result as text. Shares are in per cent.

    name: the result's column.
    row: the row of the table. If it has both of SQuAD's scores, they are in per cent already.
    """
    if name in _OF_SQUAD and all(score in row for score in _OF_SQUAD):
        return f"{value:.1f}%"
    if name in _SHARES or name.endswith(("_acc", "_accuracy")):
        return f"{100 * value:.1f}%"
    return f"{value:.3f}"


def _make_course(run: RecordedRun) -> Iterator[Figure]:
    """Yield the number of updates, the time, and the speed."""
    yield Figure("updates", describe_progress(run), describe_end(run))
    if run.log.seconds is not None:
        yield Figure("time", format_duration(run.log.seconds), "from the log's first line to its last")
    for column, unit in (("tokens_per_second", "tokens per second"), ("samples_per_sec", "texts per second")):
        if speeds := _find_numbers(run, column):
            yield Figure("speed", format_value(median(speeds)), f"{unit}, median")
            return


def _find_numbers(run: RecordedRun, column: str) -> Sequence[float]:
    """Return the numbers in a column of training.csv, over all phases."""
    return [row[column] for phase in run.phases for row in phase.training if column in row]

"""Results of evaluations: writing eval_results.txt, and reading evaluation.csv."""

from contextlib import suppress
from pathlib import Path

from bertdata.io import storage
from trainer.logs.reporter import Logger, Values
from trainer.logs.table_rows import read_rows_of_update

_TABLE = "evaluation.csv"


class EvaluationResults(Logger):
    """Logger that writes the newest evaluation as ``key = value`` lines to eval_results.txt, as Google's
    trainer does.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "eval_results.txt"

    def evaluation(self, values: Values, text: str, time: float) -> None:
        named = {"global_step" if name == "step" else name: value for name, value in values.items()}
        lines = [f"{name} = {value}\n" for name, value in sorted(named.items()) if name != "trained"]
        with storage.open_output(str(self._path)) as file:
            file.write("".join(lines).encode())


def is_evaluated(output_dir: str, step: int) -> bool:
    """Return True if evaluation.csv exists and has a row for this update."""
    return bool(read_rows_of_update(output_dir, _TABLE, step))


def read_evaluated_value(output_dir: str, step: int, column: str) -> float | None:
    """Return a value of evaluation.csv, or None if there is none.

    step: number of the update. If it was evaluated several times, the newest row counts.
    column: name of the value's column.
    """
    for row in reversed(read_rows_of_update(output_dir, _TABLE, step)):
        with suppress(KeyError, ValueError):
            return float(row[column])
    return None

"""Results of evaluations: writing eval_results.txt, and reading evaluation.csv."""

from contextlib import suppress
from pathlib import Path

from bertdata.io import storage
from trainer.logs.reporter import Logger, Values
from trainer.logs.table_rows import parse_step, read_table


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
    return bool(_read_rows_of_update(output_dir, step))


def read_evaluated_value(output_dir: str, step: int, column: str) -> float | None:
    """Return a value of evaluation.csv, or None if there is none.

    step: number of the update. If it was evaluated several times, the newest row counts.
    column: name of the value's column.
    """
    for row in reversed(_read_rows_of_update(output_dir, step)):
        with suppress(KeyError, ValueError):
            return float(row[column])
    return None


def _read_rows_of_update(output_dir: str, step: int) -> list[dict[str, str]]:
    """Return the rows of evaluation.csv for this update, or [] if the file does not exist."""
    path = Path(output_dir.removeprefix("file://")) / "evaluation.csv"
    if not path.exists():
        return []
    return [row for line, row in read_table(path) if parse_step(row, f"{path}: line {line}") == step]

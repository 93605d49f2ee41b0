"""The results of evaluations in files: eval_results.txt, and the rows of evaluation.csv."""

from contextlib import suppress
from pathlib import Path

from bertdata.io import storage
from trainer.logs.reporter import Logger, Values
from trainer.logs.table_rows import read_table, step_of


class EvaluationResults(Logger):
    """The last evaluation as ``key = value`` lines, in the file that Google's trainer writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "eval_results.txt"

    def evaluation(self, values: Values, text: str, time: float) -> None:
        named = {"global_step" if name == "step" else name: value for name, value in values.items()}
        lines = [f"{name} = {value}\n" for name, value in sorted(named.items()) if name != "trained"]
        with storage.open_output(str(self._path)) as file:
            file.write("".join(lines).encode())


def is_evaluated(output_dir: str, step: int) -> bool:
    """True if the table of evaluations has a row of this update, False without a table."""
    return bool(_rows_of(output_dir, step))


def evaluated_value(output_dir: str, step: int, column: str) -> float | None:
    """The last value in the table of evaluations of this update, None where there is none."""
    for row in reversed(_rows_of(output_dir, step)):
        with suppress(KeyError, ValueError):
            return float(row[column])
    return None


def _rows_of(output_dir: str, step: int) -> list[dict[str, str]]:
    """The rows of an update in the table of evaluations, none without a table."""
    path = Path(output_dir.removeprefix("file://")) / "evaluation.csv"
    if not path.exists():
        return []
    return [row for line, row in read_table(path) if step_of(row, f"{path}: line {line}") == step]

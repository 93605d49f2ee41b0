"""Small made-up files to fine-tune on, and a model to start from."""

import csv
import json
from pathlib import Path

SHORT = (
    "--max-seq-length=40",
    "--batch-size=8",
    "--no-progress-bar",
    "--optimiser=adamw",
    "--max-query-length=16",
)
QUICK = ("--base-learning-rate=0.003", "--warmup=0.1")
PLACES = ("harbour", "market", "library", "garden", "bridge", "tower")
KINDS = ("good", "bad")
AGES = ("new", "old")


def finetune_words(task: str, start: Path, run: Path, *more: object) -> list[str]:
    """Return the arguments of a short fine-tuning run. Later arguments override earlier ones."""
    given = ["finetune", f"--task={task}", f"--start-from-ckpt={start}", f"--output-dir={run}"]
    return [*given, *SHORT, *QUICK, *map(str, more)]


def evaluations(run: Path) -> list[dict[str, float]]:
    """Return the rows of the run's evaluation.csv."""
    with (run / "evaluation.csv").open(encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def squad_file(path: Path, count: int = 24) -> Path:
    """Write questions in SQuAD's format. Each answer is the word after a name in the context."""
    paragraphs = []
    for number in range(count):
        place, other = PLACES[number % 6], PLACES[(number + 2) % 6]
        context = f"Anna went to the {place} . Later Peter saw the {other} ."
        person, answer = (("Anna", place), ("Peter", other))[number % 2]
        start = context.index(answer)
        question = {
            "id": f"question-{number}",
            "question": f"Where was {person} ?",
            "answers": [{"text": answer, "answer_start": start}],
        }
        paragraphs.append({"context": context, "qas": [question]})
    data = {"version": "1.1", "data": [{"title": "Places", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def table(path: Path, count: int = 48, *, labelled: bool = True, score: bool = False) -> Path:
    """Write a table with the columns text and label. The label says which of two words the text contains."""
    rows = ["text\tlabel" if labelled else "text"]
    for number in range(count):
        kind = number * 7 % 5 % 2
        text = f"The {PLACES[number % 6]} is {('old', 'new')[kind]} ."
        label = f"{1.5 * kind - 0.5}" if score else KINDS[kind]
        rows.append(f"{text}\t{label}" if labelled else text)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def mrpc_files(folder: Path) -> Path:
    """Write a directory of files in MRPC's format, with 24 training, 8 evaluation and 5 test pairs."""
    folder.mkdir()
    heading = ("#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [
        (str(number % 2), "1", "2", f"The {PLACES[number % 6]} is old .", f"It is {AGES[number % 2]} .")
        for number in range(24)
    ]
    plain = [(str(number), *row[1:]) for number, row in enumerate(rows[:5])]
    for name, first, found in (
        ("train", "Quality", rows),
        ("dev", "Quality", rows[:8]),
        ("test", "index", plain),
    ):
        lines = ["\t".join(row) for row in [(first, *heading), *found]]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder

"""Every command that writes files, on small inputs, for the rounds of ``tests.soak.campaign``."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertdata.io.storage import is_growing_name
from tests.soak.killed_steps import environment
from tests.support.commands import contents
from tests.support.fork_server import forking_python
from tests.support.paths import EXTRACTED, GOLDEN

LIMIT_SECONDS = 180
VOCABULARY = GOLDEN / "vocab.txt"
_SIZES = ("--max-seq-length=32", "--max-predictions-per-seq=5", "--dupe-factor=1")
_MODEL = (
    "--hidden-size=16",
    "--num-hidden-layers=1",
    "--num-attention-heads=2",
    "--intermediate-size=16",
    "--max-position-embeddings=40",
)
_TRAIN = (
    *_MODEL,
    "--batch-size=4",
    "--steps=9",
    "--warmup=0",
    "--log-every=1",
    "--no-progress-bar",
    "--device=cpu",
)

View = Callable[[Path], Mapping[str, object]]
"""Function that returns what must be equal in the outputs of two runs, by name."""


@dataclass(frozen=True, kw_only=True)
class WritingCommand:
    """A command that writes an output: a file, or a directory.

    words: the module and its arguments, with OUTPUT in the place of the output's path.
    view: what must be equal in the outputs of two runs.
    output: name of the output.
    inputs: files whose contents may change between two runs.
    resumes: False for a command that may refuse its own unfinished output with one line, so that the output
        must be removed before the next run.
    """

    name: str
    words: tuple[str, ...]
    view: View = contents
    output: str = "out"
    inputs: tuple[Path, ...] = field(default=())
    resumes: bool = True

    def make_words(self, place: Path) -> list[str]:
        """Return the module and its arguments for an output in this directory."""
        return [word.replace("OUTPUT", str(place / self.output)) for word in self.words]

    def command(self, place: Path) -> list[str]:
        """Return the command line that writes the output into a directory."""
        return self.command_of(self.python, place)

    def command_of(self, python: str, place: Path) -> list[str]:
        """Return the same with another Python."""
        return [python, "-m", *self.make_words(place)]

    @property
    def python(self) -> str:
        return forking_python("beam" if self.words[0].startswith("beam") else "trainer")

    def run(self, place: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end. The output is written into the directory, which must exist."""
        return subprocess.run(
            self.command(place),
            env={**environment(), "OMP_NUM_THREADS": "1", **variables},
            cwd=place,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )


def view_export(place: Path) -> dict[str, object]:
    """Return the files of an exported model.

    A killed run may leave a folder ``unfinished`` next to the output, which nothing removes.
    """
    return dict(contents(place / "out"))


def view_run(place: Path) -> dict[str, object]:
    """Return the checkpoints of a run and the losses in its tables, without times and names of files.

    A run that was killed before its first checkpoint begins anew, and sets its older tables aside under names
    with a number.
    """
    run, found = place / "out", dict[str, object]()
    for path in sorted(run.glob("checkpoints/*/*.safetensors")):
        found[str(path.relative_to(run))] = path.read_bytes()
    for path in (run / "training.csv", run / "evaluation.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in (rows or [{}])[0] if name == "step" or "loss" in name or "acc" in name]
        found[path.name] = [[row[name] for name in names] for row in rows]
    return found


def make_commands(place: Path) -> list[WritingCommand]:
    """Make the inputs in an empty directory, and return the commands."""
    inputs = _make_inputs(place)
    return [*_text_commands(inputs), *_dataset_commands(inputs), *_trainer_commands(inputs)]


def _make_inputs(place: Path) -> dict[str, Path]:
    """Write the inputs of all commands, and return their paths by name."""
    parts = place / "parts"
    parts.mkdir(parents=True)
    for path in sorted((GOLDEN / "corpus").glob("part-*")):
        (parts / path.name).write_bytes(path.read_bytes()[:9_000].rpartition(b"\n\n")[0] + b"\n")
    records = [
        {"id": str(number), "text": f"Water runs down {number} steps. It is cold."} for number in range(60)
    ]
    lines = place / "a.jsonl"
    lines.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    table = place / "t.tsv"
    rows = [f"the water runs {number}\t{'ab'[number % 2]}" for number in range(12)]
    table.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    dump = place / "wiki-20200101-pages-articles.xml"
    shutil.copy(next((GOLDEN / "dump").glob("*.xml")), dump)
    articles = place / "articles"
    shutil.copytree(EXTRACTED, articles)
    dictionary = place / "dict.txt"
    dictionary.write_text("the 9\nwater 5\nruns 4\n. 1\n", encoding="utf-8")
    inputs = {
        "dictionary": dictionary,
        "parts": parts,
        "lines": lines,
        "table": table,
        "dump": dump,
        "articles": articles,
    }
    texts = [*map(str, sorted(parts.iterdir())), f"--vocab={VOCABULARY}"]
    made = {
        "set": ["bertdata", "create", *texts, *_SIZES, "--workers=1", f"--output={place / 'set'}"],
        "blocks": [
            "bertdata",
            "create",
            *texts,
            "--max-seq-length=32",
            "--workers=1",
            "--objective=mlm",
            "--no-masks",
            f"--output={place / 'blocks'}",
        ],
        "run": [
            "trainer",
            "pretrain",
            *_TRAIN,
            f"--train-data={place / 'set'}",
            f"--output-dir={place / 'run'}",
        ],
    }
    for name, words in made.items():
        done = subprocess.run(
            [sys.executable, "-m", *words], env=environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        inputs[name] = place / name
    return inputs


def _text_commands(inputs: Mapping[str, Path]) -> list[WritingCommand]:
    """Return the commands that make articles and text parts."""
    dump, articles, lines = (str(inputs[name]) for name in ("dump", "articles", "lines"))
    return [
        WritingCommand(
            name="extract",
            words=("bertdata", "extract", dump, "--output=OUTPUT", "--workers=1"),
            inputs=(inputs["dump"],),
        ),
        WritingCommand(
            name="extract, version 2.75",
            words=("bertdata", "extract", dump, "--output=OUTPUT", "--workers=2", "--extractor=2.75"),
        ),
        WritingCommand(
            name="segment, MLPerf",
            words=(
                "bertdata",
                "segment",
                articles,
                "--output=OUTPUT",
                "--workers=1",
                "--eval-articles=3",
                "--block-size=0.12",
            ),
        ),
        WritingCommand(
            name="segment, NVIDIA",
            words=(
                "bertdata",
                "segment",
                articles,
                "--output=OUTPUT",
                "--workers=1",
                "--recipe=nvidia",
                "--training-shards=3",
                "--test-shards=2",
            ),
        ),
        WritingCommand(
            name="segment, records",
            words=(
                "bertdata",
                "segment",
                lines,
                "--output=OUTPUT",
                "--workers=2",
                "--text-field=text",
                "--part-size=0.001",
                "--dedup=exact",
            ),
            inputs=(inputs["lines"],),
        ),
        WritingCommand(
            name="train-vocab",
            words=("bertdata", "train-vocab", lines, "--text-field=text", "--output=OUTPUT", "--size=120"),
            view=view_file,
            output="vocab.txt",
        ),
    ]


def view_file(place: Path) -> dict[str, object]:
    """Return the files of a directory into which a command writes single files.

    A killed run may leave a temporary file there, which nothing removes.
    """
    paths = [path for path in sorted(place.iterdir()) if path.is_file() and not is_growing_name(path.name)]
    return {path.name: path.read_bytes() for path in paths}


def _dataset_commands(inputs: Mapping[str, Path]) -> list[WritingCommand]:
    """Return the commands and pipelines that make datasets."""
    parts = tuple(str(path) for path in sorted(inputs["parts"].iterdir()))
    data, blocks = str(inputs["set"]), str(inputs["blocks"])
    create = ("bertdata", "create", *parts, "--output=OUTPUT", f"--vocab={VOCABULARY}", *_SIZES)
    prepare = (
        "beam_pipelines.prepare",
        "--input",
        *parts,
        "--output=OUTPUT",
        f"--vocab={VOCABULARY}",
        *_SIZES,
    )
    shard = next(iter(sorted(inputs["set"].glob("*.tfrecord"))))
    changing = tuple(map(Path, parts))
    return [
        WritingCommand(name="create", words=(*create, "--workers=1"), inputs=changing),
        WritingCommand(name="create, two workers", words=(*create, "--workers=2"), inputs=changing),
        WritingCommand(name="create, HDF5", words=(*create, "--workers=1", "--format=hdf5")),
        WritingCommand(name="create, Parquet in bins", words=(*create, "--format=parquet", "--bin-size=16")),
        WritingCommand(
            name="create, shuffled",
            words=(*create, "--workers=1", "--shuffle=global", "--num-shards=4"),
            inputs=changing,
        ),
        WritingCommand(
            name="create-pretraining-data",
            words=(
                "bertdata",
                "create-pretraining-data",
                f"--input_file={parts[0]}",
                "--output_file=OUTPUT",
                f"--vocab_file={VOCABULARY}",
                "--max_seq_length=32",
                "--max_predictions_per_seq=5",
                "--dupe_factor=1",
            ),
            view=view_file,
            output="out.tfrecord",
        ),
        WritingCommand(
            name="pack, Habana", words=("bertdata", "pack", data, "--output=OUTPUT", "--workers=1")
        ),
        WritingCommand(
            name="pack, flat",
            words=("bertdata", "pack", data, "--output=OUTPUT", "--layout=flat", "--workers=1"),
        ),
        *(
            WritingCommand(
                name=f"convert to {form}",
                words=("bertdata", "convert", source, "OUTPUT", f"--to={form}", "--workers=1", *more),
            )
            for form, source, more in (
                ("mds", blocks, ()),
                ("arrow", data, ()),
                ("lddl", data, ()),
                ("nvidia-mlperf", data, ("--num-shards=3",)),
            )
        ),
        WritingCommand(
            name="convert to fairseq",
            words=(
                "bertdata",
                "convert",
                parts[0],
                "OUTPUT",
                "--to=fairseq",
                "--workers=1",
                f"--tokenizer={inputs['dictionary']}",
            ),
        ),
        WritingCommand(
            name="convert a shard",
            words=("bertdata", "convert", str(shard), "OUTPUT"),
            view=view_file,
            output="out.parquet",
        ),
        WritingCommand(
            name="pick-eval",
            words=("bertdata", "pick-eval", str(shard), "OUTPUT", "--num-examples=5"),
            view=view_file,
            output="picked",
        ),
        WritingCommand(
            name="report",
            words=("bertdata", "report", data, "--output=OUTPUT"),
            view=view_file,
            output="report.html",
        ),
        WritingCommand(name="Beam", words=prepare, inputs=changing),
        WritingCommand(name="Beam, shuffled", words=(*prepare, "--shuffle=global", "--num-shards=4")),
    ]


def _trainer_commands(inputs: Mapping[str, Path]) -> list[WritingCommand]:
    """Return the commands of the trainer that write."""
    data, run, table = (str(inputs[name]) for name in ("set", "run", "table"))
    pretrain = (
        "trainer",
        "pretrain",
        *_TRAIN,
        f"--train-data={data}",
        f"--eval-data={data}",
        "--eval-every=4",
        "--output-dir=OUTPUT",
        "--checkpoint-every=2",
        "--resume",
    )
    fine_tune = (
        "trainer",
        "finetune",
        "--task=classification",
        f"--start-from-ckpt={run}",
        f"--train-file={table}",
        f"--eval-file={table}",
        "--output-dir=OUTPUT",
        "--max-seq-length=16",
        "--batch-size=4",
        "--num-train-epochs=2",
        "--log-every=3",  # so that checkpoints come between two rows
        "--checkpoint-every=2",
        "--resume",
        "--no-progress-bar",
        "--device=cpu",
    )
    return [
        WritingCommand(name="pretrain", words=pretrain, view=view_run),
        WritingCommand(name="finetune", words=fine_tune, view=view_run),
        *(
            WritingCommand(
                name=f"export to {form}",
                words=("trainer", "convert", run, "OUTPUT", f"--to={form}"),
                view=view_export,
                resumes=False,
            )
            for form in ("huggingface", "tf1", "bertdata")
        ),
        WritingCommand(
            name="features",
            words=(
                "trainer",
                "features",
                "--task=classification",
                table,
                f"--vocab={VOCABULARY}",
                "--output=OUTPUT",
                "--max-seq-length=16",
            ),
            view=view_file,
            output="features.jsonl",
        ),
    ]


def find_commands(names: Sequence[str], commands: Sequence[WritingCommand]) -> list[WritingCommand]:
    """Return the commands with these names, or all if there are no names."""
    return [command for command in commands if not names or command.name in names]


def describe_status(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the exit status and the last line of standard error, for the description of a fault."""
    return f"exit status {done.returncode}: {(done.stderr.splitlines() or [''])[-1][-300:]}"

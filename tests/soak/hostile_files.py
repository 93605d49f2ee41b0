"""Hostile settings, manifests, indexes, logs and tables (``python -m tests.soak.hostile_files``).

A small corpus, dataset, run and model are made, with one file of each form that other people write: JSON,
TOML, CSV and TSV, lines. Each is replaced by variants: values of other types, removed, nested 100,000 deep,
numbers of 5,000 digits, half of a surrogate pair, bytes that are not UTF-8, columns that come twice, cut ends
(``foreign_variants``). The command that reads it must end with its result or with one line of error, in
twenty seconds. Prints a line for each file; exit status 1 where anything is wrong.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertdata.cli.main import main as bertdata
from tests.soak.foreign_variants import Variant, json_variants, lines_variants, table_variants, toml_variants
from tests.soak.hostile_checkpoints import Ending, make_run, ran
from trainer.__main__ import main as trainer

SLOWEST_SECONDS = 20.0
LONGEST_LINE = 4_000
"""Characters of an error. A path or a name of the file's is in it, and neither has more than some hundred."""

_WORDS = [f"w{number}" for number in range(30)]
_SHAPE = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
_SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "the water runs down the hill .",
                    "qas": [
                        {
                            "id": "q1",
                            "question": "what runs ?",
                            "answers": [{"text": "water", "answer_start": 4}],
                        }
                    ],
                }
            ],
        }
    ],
}
_TABLE = "text\tlabel\nwater runs\ta\nthe hill\tb\ndown\ta\n"
_MODEL = tuple(f"--{name.replace('_', '-')}={value}" for name, value in _SHAPE.items())
_TRAIN = (
    "pretrain",
    *_MODEL,
    "--train-data=set",
    "--eval-data=set",
    "--eval-every=1",
    "--output-dir=run",
    "--batch-size=2",
    "--steps=4",
    "--warmup=0",
    "--max-position-embeddings=16",
    "--no-progress-bar",
)
_PLAN = ("split", "--devices=2", "--memory=1", "--batch-size=4", "--strategy=pipelined", "--stages=2")


@dataclass(frozen=True, slots=True)
class Case:
    """A file of the place, the variants of its form, and the command that reads it."""

    file: str
    variants: Callable[[bytes, random.Random], Iterator[Variant]]
    program: Any
    words: Sequence[str]


def make_place(place: Path) -> list[Case]:
    """Make the files in an empty directory, which becomes the current one. Returns the cases."""
    os.chdir(place)
    make_run(place)
    _write_texts()
    shutil.rmtree("run")  # it has no logs
    _expect(trainer, *_TRAIN, "--steps-this-run=2")
    _expect(
        bertdata,
        "create",
        "text",
        "--output=ids",
        "--tokenizer=dict.txt",
        "--objective=mlm",
        "--no-masks",
        "--format=mds",
        "--max-seq-length=16",
        "--workers=1",
    )
    _expect(bertdata, "convert", "set", "arrow", "--to=arrow", "--workers=1")
    _expect(bertdata, "segment", "a.jsonl", "--output=parts", "--text-field=text", "--workers=1")
    _expect(trainer, "convert", "run", "model", "--to=huggingface")
    _expect(trainer, *_PLAN, *_MODEL, "--output=plan.json", "--vocab-size=16")
    return _cases()


def _write_texts() -> None:
    """Write the files that no command makes."""
    texts = {
        "squad.json": json.dumps(_SQUAD),
        "answers.json": json.dumps({"q1": "water"}),
        "odds.json": json.dumps({"q1": 0.5}),
        "t.tsv": _TABLE,
        "t.csv": _TABLE.replace("\t", ","),
        "t.jsonl": '{"text": "water runs", "label": "a"}\n{"text": "hill", "label": "b"}\n',
        "labels.txt": "a\nb\na\n",
        "a.jsonl": '{"text": "The water runs down. It is cold.", "id": 7}\n{"text": "A hill.", "id": 8}\n',
        "a.csv": 'id,text\n1,"The water runs, down."\n2,A hill.\n',
        "a.tsv": "id\ttext\n1\tThe water runs.\n2\tA hill.\n",
        "withheld.json": json.dumps({"texts": ["a hill of eight words that are all held out", "the water"]}),
        "glue.csv": "sentence1,label\nthe water,1\n",
        "glue.json": '{"sentence1": "the water", "label": 1}\n',
        "dict.txt": "the 9\nwater 5\nruns 4\ndown 3 #fairseq:overwrite\nhill -1\n. 0\n",
        "sums.tsv": f"label\tbytes\tmd5\tpaths\ntext\t9\t{'0' * 32}\ttext\n",
        "MD5": f"{'0' * 32}  text\n",
        "own.txt": "Nr.\nca.\n",
        "flags": "--max_seq_length=16\n--max_predictions_per_seq=2\n",
        "graphcore.json": json.dumps(
            {
                "batch_size": 2,
                "train_file": "set",
                "steps": 3,
                "pipeline_depth": 4,
                "weight_decay": 0.01,
                "optimiser": "lamb",
                "lr_schedule": "custom",
                "lr_schedule_by_step": {"0": 0.1},
            }
        ),
        "keys.json": json.dumps({**_SHAPE, "batch_size": 2, "steps": 3, "warmup": 0.1, "train_data": "set"}),
        "set.toml": '[tokenizer]\nvocab = "vocab.txt"\n\n[objective]\nname = "bert"\nmax_seq_length = 16\n'
        "max_predictions_per_seq = 2\n[phase1.objective]\n",
        "trainer_state.json": json.dumps(
            {"log_history": [{"step": 1, "loss": 2.5, "epoch": 0.5}, {"step": 2, "eval_loss": 1.5}]}
        ),
        "modernbert.json": json.dumps(
            {
                "model_type": "modernbert",
                "hidden_size": 8,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 8,
                "vocab_size": 11,
                "layer_types": ["full_attention", "sliding_attention"],
                "rope_parameters": {
                    "full_attention": {"rope_theta": 1e4},
                    "sliding_attention": {"rope_theta": 1e4},
                },
            }
        ),
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")


def _cases() -> list[Case]:
    sizes = ("--max-seq-length=16", "--max-predictions-per-seq=2", "--workers=1")
    segment = ("--output=out", "--text-field=text", "--id-field=id", "--workers=1")
    resume = (*_TRAIN, "--resume")
    shown = ("--", "--print-config")
    return [
        *(
            Case("set/manifest.json", json_variants, bertdata, words)
            for words in (
                ("stats", "set"),
                ("report", "set", "--output=out.html"),
                ("verify-md5", "set"),
                ("show", "set/text.tfrecord"),
                ("convert", "set", "out", "--to=mds"),
                ("pack", "set", "--output=out"),
            )
        ),
        Case("set/manifest.json", json_variants, trainer, ("pretrain", "--train-data=set", "--print-config")),
        Case(
            "parts/manifest.json",
            json_variants,
            bertdata,
            ("create", "parts", "--output=out", "--vocab=vocab.txt", *sizes),
        ),
        Case("parts/manifest.json", json_variants, bertdata, ("verify-md5", "parts", "--chain")),
        *(
            Case("ids/index.json", json_variants, bertdata, words)
            for words in (("stats", "ids"), ("show", "ids/shard.00000.mds"))
        ),
        Case("ids/manifest.json", json_variants, bertdata, ("stats", "ids")),
        *(
            Case(f"arrow/{name}", json_variants, bertdata, ("stats", "arrow"))
            for name in ("state.json", "dataset_info.json", "manifest.json")
        ),
        Case(
            "set.toml",
            toml_variants,
            bertdata,
            ("create", "text", "--output=out", "--config=set.toml", "--workers=1"),
        ),
        Case(
            "dict.txt",
            lines_variants,
            bertdata,
            (
                "create",
                "text",
                "--output=out",
                "--tokenizer=dict.txt",
                "--objective=mlm",
                "--max-seq-length=16",
                "--workers=1",
            ),
        ),
        Case(
            "vocab.txt",
            lines_variants,
            bertdata,
            ("create", "text", "--output=out", "--vocab=vocab.txt", *sizes),
        ),
        Case(
            "flags",
            lines_variants,
            bertdata,
            (
                "create-pretraining-data",
                "--flagfile=flags",
                "--input_file=text",
                "--output_file=out",
                "--vocab_file=vocab.txt",
            ),
        ),
        *(
            Case(name, table_variants, bertdata, ("segment", name, f"--input-kind={name[2:]}", *segment))
            for name in ("a.csv", "a.tsv")
        ),
        Case("a.jsonl", lines_variants, bertdata, ("segment", "a.jsonl", *segment)),
        Case("a.jsonl", lines_variants, bertdata, ("segment", "a.jsonl", "--skip-bad-records", *segment)),
        Case(
            "own.txt", lines_variants, bertdata, ("segment", "a.jsonl", "--abbreviations=own.txt", *segment)
        ),
        *(
            Case(name, variants, bertdata, ("segment", "a.jsonl", f"--exclude={name}", *segment))
            for name, variants in (("withheld.json", json_variants), ("glue.csv", table_variants))
        ),
        Case("sums.tsv", table_variants, bertdata, ("verify-md5", "set", "--table=sums.tsv")),
        Case("MD5", lines_variants, bertdata, ("verify-md5", "MD5")),
        Case("model/config.json", json_variants, trainer, ("convert", "model", "out", "--to=bertdata")),
        Case(
            "model/config.json",
            json_variants,
            trainer,
            (
                "pretrain",
                "--model-config=model/config.json",
                "--train-data=set",
                "--output-dir=out",
                "--steps=1",
                "--batch-size=2",
                "--no-progress-bar",
            ),
        ),
        Case(
            "modernbert.json",
            json_variants,
            trainer,
            ("split", "--model-config=modernbert.json", "--devices=2", "--memory=1"),
        ),
        Case("keys.json", json_variants, trainer, ("pretrain", "--config=keys.json", "--print-config")),
        Case("plan.json", json_variants, trainer, ("split", "--plan=plan.json")),
        Case(
            "plan.json", json_variants, trainer, ("split", "--plan=plan.json", "--picture=out.svg", "--json")
        ),
        *(
            Case(f"run/{name}", variants, trainer, words)
            for words in (("report", "run", "--output=out.html"), resume)
            for name, variants in (("training.csv", table_variants), ("evaluation.csv", table_variants))
        ),
        Case("run/dllogger.json", lines_variants, trainer, ("report", "run", "--output=out.html")),
        Case(
            "run/dllogger.json", lines_variants, trainer, ("report", "run/dllogger.json", "--output=out.html")
        ),
        Case(
            "run/checkpoints/step-00000002/state.json",
            json_variants,
            trainer,
            ("report", "run", "--output=out.html"),
        ),
        Case(
            "trainer_state.json",
            json_variants,
            trainer,
            ("report", "trainer_state.json", "--output=out.html"),
        ),
        Case(
            "squad.json",
            json_variants,
            trainer,
            ("features", "--task=squad", "squad.json", "--training", "--vocab=vocab.txt", "--output=out"),
        ),
        *(
            Case(
                name,
                json_variants,
                trainer,
                ("score", "--task=squad", "squad.json", "answers.json", "--na-prob-file=odds.json"),
            )
            for name in ("squad.json", "answers.json", "odds.json")
        ),
        *(
            Case(
                name,
                variants,
                trainer,
                ("features", "--task=classification", name, "--vocab=vocab.txt", "--output=out"),
            )
            for name, variants in (
                ("t.tsv", table_variants),
                ("t.csv", table_variants),
                ("t.jsonl", lines_variants),
            )
        ),
        Case(
            "labels.txt", lines_variants, trainer, ("score", "--task=classification", "t.tsv", "labels.txt")
        ),
        *(
            Case(
                name,
                variants,
                trainer,
                (
                    "like",
                    "huggingface/run_glue.py",
                    "--train_file",
                    name,
                    "--validation_file",
                    name,
                    "--output_dir",
                    "out",
                    "--do_train",
                    *shown,
                ),
            )
            for name, variants in (("glue.csv", table_variants), ("glue.json", lines_variants))
        ),
        Case(
            "graphcore.json",
            json_variants,
            trainer,
            ("like", "graphcore/run_pretraining.py", "--config", "graphcore.json", *shown),
        ),
    ]


def _expect(program: Any, *words: str) -> None:
    ending = ran(program, *words)
    if ending.status != 0 or ending.fault:
        raise RuntimeError(f"{' '.join(words)}: {ending}")


def try_cases(
    place: Path, cases: Sequence[Case], count: int, seed: int
) -> Iterator[tuple[Case, str, Ending, str]]:
    """Yield (case, variant, ending, what is wrong) of ``count`` variants, dealt among the cases in turn."""
    whole = place.parent / "whole"
    shutil.copytree(place, whole)
    drawn = []
    for number, case in enumerate(random.Random(seed).sample(cases, len(cases))):
        stream = random.Random(f"{seed} {number}")
        found = list(case.variants(Path(case.file).read_bytes(), stream))
        share = -(-(count - number) // len(cases))
        drawn.append([(case, *one) for one in stream.sample(found, max(0, min(share, len(found))))])
    for case, what, data in (one for several in drawn for one in several):
        Path(case.file).write_bytes(data)
        before = time.process_time()
        ending = ran(case.program, *case.words)
        prints_faults = case.words[0] in ("verify-md5", "report")
        yield case, what, ending, wrong(ending, time.process_time() - before, says_nothing=prints_faults)
        _restore(place, whole, case)


def _restore(place: Path, whole: Path, case: Case) -> None:
    """Bring the files back that the command has read and made."""
    for name in ("out", "out.html", "out.svg"):
        made = place / name
        if made.is_dir():
            shutil.rmtree(made)
        made.unlink(missing_ok=True)
    folder = Path(case.file).parts[0]
    if (whole / folder).is_dir():
        shutil.rmtree(place / folder)
        shutil.copytree(whole / folder, place / folder)
    else:
        shutil.copyfile(whole / folder, place / folder)


def wrong(ending: Ending, seconds: float, *, says_nothing: bool = False) -> str:
    """The fault in the ending of a command, or "" for none.

    says_nothing: its faults are on standard output.
    """
    if ending.fault:
        return ending.fault
    if ending.status not in (0, 1, 2):
        return f"ended with {ending.status}"
    if seconds > SLOWEST_SECONDS:
        return f"took {seconds:.0f} s of the processor"
    lines = ending.said.splitlines()
    if any(len(line) > LONGEST_LINE for line in lines):
        return f"a line of {max(map(len, lines)):,} characters: {max(lines, key=len)[:200]}"
    if any(line.startswith("Traceback") for line in lines):
        return "printed a traceback"
    if ending.status and not lines and not says_nothing:
        return f"said nothing, status {ending.status}"
    if any("set_int_max_str_digits" in line for line in lines):
        return f"gives Python's own advice: {lines[0][:200]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", type=int, default=5_000, help="of all files (default: 5,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", default="", help="only the files with this in their name")
    given = parser.parse_args()
    results, faults = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "place"
        place.mkdir()
        cases = [case for case in make_place(place) if given.file in case.file]
        for case, what, ending, fault in try_cases(place, cases, given.variants, given.seed):
            outcome = "wrong" if fault else "refused" if ending.status else "done"
            results[f"{case.file} by {case.words[0]}: {outcome}"] += 1
            if fault:
                faults.append(f"{case.file} by {' '.join(case.words[:2])}: {what}: {fault}")
                print(faults[-1], flush=True)
        os.chdir(place.parent)
    print(*(f"{name}: {count}" for name, count in sorted(results.items())), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Damaged and hostile checkpoints (``python -m tests.soak.hostile_checkpoints``).

A tiny run's ``state.json`` gets values of other types and ranges, one at a time and sealed again as ours
are. Other programs' checkpoints are made to break a reader (``odd_checkpoints``), and sound ones damaged: a
bit flipped, the end lost, a piece lost or repeated, bytes made 255. The commands that read checkpoints must
end in their result or in one line that names the file, and leave nothing half written. Prints a line for
each kind; exit status 1 where anything is wrong.
"""

import argparse
import contextlib
import io
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file

from bertdata.cli.main import main as bertdata
from tests.soak import odd_checkpoints
from tests.soak.retyped_states import retyped
from trainer.__main__ import main as trainer

SLOWEST_SECONDS = 20.0
_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "water", "runs", "down", "hill", "the", ".")
_RUN = (
    *("--hidden-size=8", "--num-hidden-layers=1", "--num-attention-heads=2", "--intermediate-size=8"),
    *(
        "--batch-size=2",
        "--steps=4",
        "--warmup=0",
        "--optimiser=lamb-nvidia",
        "--no-progress-bar",
        "--no-logs",
    ),
    "--max-position-embeddings=16",
)


class Ending(NamedTuple):
    """A command's exit status, what it printed on standard error, and a Python error, if there was one."""

    status: int
    said: str
    fault: str


def ran(main: Any, *words: object, hears_output: bool = False) -> Ending:
    """Run a command in this process.

    hears_output: return what it prints on standard output too.
    """
    error = io.StringIO()
    output = error if hears_output else io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(output):
        try:
            return Ending(main(list(map(str, words))), error.getvalue(), "")
        except SystemExit as stop:
            return Ending(int(stop.code or 0), error.getvalue(), "")
        except Exception as fault:
            frame = traceback.extract_tb(fault.__traceback__)[-1]
            return Ending(-1, error.getvalue(), f"{type(fault).__name__}: {fault} ({frame.name})")


def make_run(place: Path) -> Path:
    """Train two updates out of four on a dataset of a few words, all in the place. Returns the run."""
    (place / "vocab.txt").write_text("".join(f"{word}\n" for word in _WORDS), encoding="utf-8")
    sentence = "the water runs down the hill .\n"
    (place / "text").write_text(
        f"{2 * sentence}\n{3 * sentence}\n{2 * sentence}\n{3 * sentence}", encoding="utf-8"
    )
    sizes = ("--max-seq-length=16", "--max-predictions-per-seq=2", "--workers=1")
    words = ["create", place / "text", f"--output={place / 'set'}", f"--vocab={place / 'vocab.txt'}", *sizes]
    assert ran(bertdata, *words).status == 0
    outcome = ran(trainer, *resuming(place), "--steps-this-run=2")
    assert outcome.status == 0, outcome
    return place / "run"


def resuming(place: Path, run: Path | None = None) -> list[object]:
    """The command that continues the run, or begins one where there is none."""
    data = (f"--train-data={place / 'set'}", f"--output-dir={run or place / 'run'}")
    return ["pretrain", *_RUN, *data, "--resume"]


def commands(place: Path, run: Path, out: Path) -> dict[str, list[object]]:
    """The commands that read the checkpoints of a run. They write into the run, or to ``out``."""
    return {
        "convert": ["convert", run, out],
        "predict": ["predict", run, "the [MASK] runs"],
        "evaluate": ["evaluate", f"--output-dir={run}", f"--eval-data={place / 'set'}"],
        "start": ["pretrain", *_RUN, f"--train-data={place / 'set'}", f"--output-dir={out}", "--steps=1",
                  f"--start-from-ckpt={run}"],
        "resume": resuming(place, run),
    }  # fmt: skip


def try_states(place: Path, count: int, seed: int) -> Iterator[tuple[str, str, Ending, str]]:
    """(command, variant, its ending, what is wrong) of the commands on ``count`` variants drawn at random."""
    run = make_run(place)
    (state,) = run.glob("checkpoints/*/state.json")
    variants = list(retyped(state.read_text(encoding="utf-8")))
    for what, text in random.Random(seed).sample(variants, min(count, len(variants))):
        for command in commands(place, run, place / "out"):
            copy, out = place / "copy", place / "out"
            shutil.copytree(run, copy)
            changed = copy / state.relative_to(run)
            changed.write_text(text, encoding="utf-8")
            before = time.process_time()
            ending = ran(trainer, *commands(place, copy, out)[command])
            yield command, what, ending, wrong(ending, str(place), out, time.process_time() - before)
            for made in (copy, out):
                shutil.rmtree(made, ignore_errors=True)


def try_odd(place: Path) -> Iterator[tuple[str, str, Ending, str]]:
    """The same of ``convert`` to two forms, of all odd checkpoints. Each but the last few must be refused."""
    for name in odd_checkpoints.REFUSED | odd_checkpoints.WITHOUT_MOMENTS:
        path = odd_checkpoints.made(name, place / "source")
        for form in ("bertdata", "huggingface"):
            ending, fault = _converted(path, place / "out", form)
            if not ending.status and name in odd_checkpoints.REFUSED:
                fault = "was converted"
            yield f"odd to {form}", name, ending, fault
        shutil.rmtree(place / "source")


def try_damaged(place: Path, count: int, seed: int) -> Iterator[tuple[str, str, Ending, str]]:
    """The same of sound checkpoints of other programs whose files are damaged at random."""
    kinds = _sound(place / "sound")
    for number in range(count):
        stream = random.Random(f"{seed} {number}")
        kind, files = list(kinds.items())[number % len(kinds)]
        damage = _DAMAGES[number // len(kinds) % len(_DAMAGES)]
        shutil.copytree(place / "sound" / kind, place / "source")
        file = place / "source" / stream.choice(files)
        data = file.read_bytes()
        file.write_bytes(damage(data, stream))
        form = stream.choice(("bertdata", "huggingface"))
        ending, fault = _converted(place / "source", place / "out", form, checked=kind in _CHECKED)
        yield f"damaged {kind}", f"{damage.__name__} {number}", ending, fault
        shutil.rmtree(place / "source")


def _converted(path: Path, out: Path, form: str, *, checked: bool = False) -> tuple[Ending, str]:
    """The ending of the conversion, and what is wrong with it. The output is removed.

    checked: the source has checksums, so that what is converted must be the sound weights.
    """
    before = time.process_time()
    ending = ran(trainer, "convert", path, out, "--to", form)
    fault = wrong(ending, str(path), out, time.process_time() - before)
    if checked and not fault and not ending.status:
        found, sound = load_file(out / "model.safetensors"), odd_checkpoints.weights()
        if any(not torch.equal(tensor, sound[name]) for name, tensor in found.items()):
            fault = "other weights"
    shutil.rmtree(out, ignore_errors=True)
    return ending, fault


def _sound(place: Path) -> dict[str, list[str]]:
    """Write a sound checkpoint of each kind. Returns the names of their files of weights."""
    odd_checkpoints.made("optimiser is a list", place / "first")
    for kind in ("nvidia", "huggingface", "tf1", "tf2"):
        outcome = ran(trainer, "convert", place / "first", place / kind, "--to", kind)
        assert outcome.status == 0, outcome
    shutil.copytree(place / "nvidia", place / "older pt")
    (file,) = (place / "older pt").glob("*.pt")
    torch.save({"model": odd_checkpoints.weights()}, file, _use_new_zipfile_serialization=False)
    save_file(odd_checkpoints.weights(), place / "huggingface" / "model.safetensors")
    kinds = ("nvidia", "older pt", "huggingface", "tf1", "tf2")
    endings = ("*.pt", "*.safetensors", "*.index", "*.data-*")
    return {
        kind: sorted(path.name for ending in endings for path in (place / kind).glob(ending))
        for kind in kinds
    }


def flip(data: bytes, stream: random.Random) -> bytes:
    at = stream.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << stream.randrange(8)]) + data[at + 1 :]


def lose_end(data: bytes, stream: random.Random) -> bytes:
    return data[: stream.randrange(len(data))]


def lose_piece(data: bytes, stream: random.Random) -> bytes:
    at = stream.randrange(len(data))
    return data[:at] + data[at + stream.randint(1, 64) :]


def repeat_piece(data: bytes, stream: random.Random) -> bytes:
    at = stream.randrange(len(data))
    return data[:at] + data[at : at + stream.randint(1, 64)] + data[at:]


def enlarge(data: bytes, stream: random.Random) -> bytes:
    """Bytes made 255, mostly in the first thousand, where numbers and headers stand."""
    at = stream.randrange(len(data) if stream.random() < 0.3 else min(len(data), 1000))
    count = stream.choice((1, 4, 8))
    return data[:at] + b"\xff" * count + data[at + count :]


_CHECKED = ("nvidia", "tf1", "tf2")
"""The kinds of files that have checksums."""

_DAMAGES = (flip, lose_end, lose_piece, repeat_piece, enlarge)


def wrong(ending: Ending, path: str, out: Path, seconds: float) -> str:
    """The fault in the ending of a command that read the path and wrote to ``out``, or "" for none."""
    if ending.fault:
        return ending.fault
    if seconds > SLOWEST_SECONDS:
        return f"took {seconds:.0f} s of the processor"
    if ending.status == 0:
        return ""
    told = [line for line in ending.said.splitlines() if "error: " in line]
    if len(told) != 1 or path not in told[0]:
        return f"said {told}"
    left = sorted(file.name for file in out.rglob("*.safetensors")) if out.exists() else []
    return f"left {left}" if left else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=300, help="variants of state.json (default: 300)")
    parser.add_argument("--files", type=int, default=500, help="damaged checkpoints (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    results, faults = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        tried = (
            try_odd(place / "odd"),
            try_damaged(place / "damaged", given.files, given.seed),
            try_states(place, given.states, given.seed),
        )
        for command, what, ending, fault in chain.from_iterable(tried):
            results[f"{command} {'wrong' if fault else 'refused' if ending.status else 'done'}"] += 1
            faults += [f"{command}: {what}: {fault}"] * bool(fault)
    print(*(f"{name}: {count}" for name, count in sorted(results.items())), sep="\n")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

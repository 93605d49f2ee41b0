"""IPUs against a stand-in for PopTorch: its calls, its arithmetic, and what is refused."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from device_records import compare
from launching import ROOT
from training_runs import Trainer, losses, refuse, tensors

from trainer.__main__ import main
from trainer.devices.ipu import Ipu, engine, options, stages
from trainer.evaluate import Evaluation
from trainer.training import Training

STAND_INS = ROOT / "tests" / "stand_ins"
PACKAGES = ("poptorch", "popdist", "recording")
TINY = ("--config=graphcore_tiny_128_lamb", "--pipeline-depth=2")
LARGE = (
    *("--config=graphcore_large_128", "--optimiser=lamb-poptorch", "--vocab-size=2000", "--hidden-size=32"),
    *("--num-attention-heads=2", "--batch-size=1", "--pipeline-depth=10", "--replicas=2", "--eval-batch-size=5"),
)
SMALL = (  # a moment's model, in numbers that can be compared with another device's
    *("--config=graphcore_tiny_128_lamb", "--precision=fp32", "--hidden-size=32", "--vocab-size=2000"),
    *("--hidden-dropout-prob=0", "--batch-size=2", "--pipeline-depth=2", "--warmup=1", "--steps=20"),
    *("--max-seq-length=64", "--max-predictions-per-seq=10", "--base-learning-rate=0.05"),
)


def forget() -> None:
    """As if the process had ended: the next start imports the stand-ins anew, and finds the IPUs free."""
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def poptorch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(STAND_INS))
    monkeypatch.setattr("trainer.curves.draw_curves", lambda folder: [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    forget()
    yield
    forget()
    torch.set_num_threads(threads)


@pytest.fixture
def trainer(capsys: pytest.CaptureFixture[str]) -> Trainer:
    return Trainer(capsys)


@pytest.fixture(scope="session")
def long_set(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    """The sample corpus in examples as Graphcore's first phase has them."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("long") / "set"
    sizes = ["--max-seq-length=128", "--max-predictions-per-seq=20", "--dupe-factor=1", "--workers=1"]
    words = ["create", *map(str, corpus), "--output", str(place), "--vocab", str(small_vocabulary_file)]
    assert main([*words, *sizes]) == 0
    return place


def words(place: Path, *more: object) -> list[str]:
    """A short run on the IPU; later words win."""
    return ["pretrain", "--device=ipu", f"--output-dir={place}", "--no-progress-bar", *map(str, more)]


def recorded_run(monkeypatch: pytest.MonkeyPatch, place: Path, data: Path, *more: str) -> Path:
    """Two updates, checkpoint, evaluation; then, as if started again, one more; the record of it all."""
    record = place / "record"
    monkeypatch.setenv("BERTDATA_STAND_IN_RECORD", str(record))
    from recording import mark

    def marked(kind: type, name: str, heading: Callable[[Any], str]) -> None:
        plain = getattr(kind, name)

        def method(self: Any, *values: Any, **options: Any) -> Any:
            mark(heading(self))
            return plain(self, *values, **options)

        monkeypatch.setattr(kind, name, method)

    marked(Training, "update", lambda training: f"update {training.state.step + 1}")
    marked(Training, "save", lambda training: "checkpoint")
    marked(Evaluation, "measure", lambda evaluation: "evaluation")
    common = [*more, "--unverified", f"--train-data={data}", "--steps=20", "--warmup=10", "--checkpoint-every=0"]
    evaluated = [f"--eval-data={data}", "--eval-examples=10", "--eval-every=0"]
    mark("init")
    assert main(words(place / "run", *common, *evaluated, "--steps-this-run=2")) == 0
    forget()
    mark("resume")
    assert main(words(place / "run", *common, "--resume", "--steps-this-run=1")) == 0
    return Path(f"{record}.0")


def test_the_calls_of_the_tiny_configuration_are_the_golden_files(monkeypatch, tmp_path, long_set):
    compare("ipu_tiny", recorded_run(monkeypatch, tmp_path, long_set, *TINY))


def test_the_calls_of_the_large_configuration_are_the_golden_files(monkeypatch, tmp_path, long_set):
    compare("ipu_large", recorded_run(monkeypatch, tmp_path, long_set, *LARGE))

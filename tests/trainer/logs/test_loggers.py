"""Logs of other programs: MLPerf's lines, TensorBoard, Weights & Biases."""

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from bertdata.errors import MissingExtraError, SettingsError
from tests.support.paths import ROOT
from tests.support.report_records import (
    COLUMNS,
    Clock,
    Recorder,
    evaluation,
    hide,
    make_reporter,
    record,
    report,
)
from trainer.config.settings import Config
from trainer.logs import choice, further_logs


@pytest.mark.thorough
def test_tensorboard_reads_the_event_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.notf", ModuleType("notf"))  # read without TensorFlow
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reporter = make_reporter(
        Config.of(output_dir=str(tmp_path), tensorboard=True, log_every=1), COLUMNS, rank=0, clock=Clock()
    )
    for step in range(1, 9):
        reporter.update(record(step))
    reporter.evaluation(*evaluation(8))
    reporter.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(item.step, item.value) for item in events.Scalars("train/loss")] == [
        (step, 8.0 - step) for step in range(1, 9)
    ]
    assert [item.step for item in events.Scalars("train/sequences_per_second")] == [7, 8]
    assert [item.value for item in events.Scalars("eval/masked_lm_accuracy")] == [0.25]


@pytest.mark.thorough
def test_tensorboard_has_a_curve_of_each_phase(tmp_path, monkeypatch):
    """Phase 2 counts its updates from 0: in one curve they went back from 8 to 1."""
    monkeypatch.setitem(sys.modules, "tensorboard.compat.notf", ModuleType("notf"))
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    for keys, steps, resume_step in (
        ({}, range(1, 9), None),
        ({"phase2": True}, range(1, 5), None),
        ({"phase2": True}, range(4, 6), 3),
    ):
        config = Config.of(output_dir=str(tmp_path), tensorboard=True, log_every=1, **keys)
        reporter = make_reporter(config, COLUMNS, rank=0, resume_step=resume_step, clock=Clock())
        for step in steps:
            reporter.update(record(step))
        reporter.close()
    runs = EventMultiplexer().AddRunsFromDirectory(str(tmp_path / "tensorboard"))
    runs.Reload()
    curves = {name: [item.step for item in runs.Scalars(name, "train/loss")] for name in runs.Runs()}
    assert curves == {".": [*range(1, 9)], "phase2": [*range(1, 6)]}


@pytest.mark.thorough
def test_tensorboard_imports_no_tensorflow_which_would_print_lines(tmp_path):
    (tmp_path / "tensorflow.py").write_text("import os\nos.write(2, b'a line about the processor')\n")
    script = f"""
from trainer.config.settings import Config
from trainer.logs.choice import make_loggers
from trainer.logs.reporter import Reporter
from trainer.tasks.pretraining import Pretraining

config = Config.of(output_dir={str(tmp_path / "run")!r}, tensorboard=True)
Reporter(make_loggers(config, Pretraining.columns, 0.0)).close()
"""
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    outcome = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "a line about the processor" not in outcome.stderr
    assert list((tmp_path / "run" / "tensorboard").glob("events.out.tfevents.*"))


def test_the_bar_starts_after_the_packages_are_imported(tmp_path, monkeypatch):
    started = []
    places = {
        "TensorBoard": further_logs,
        "WeightsAndBiases": further_logs,
        "Mllog": further_logs,
        "Terminal": choice,
    }
    for name, place in places.items():

        def note(*_, name=name, **__):
            started.append(name)
            return Recorder()

        monkeypatch.setattr(place, name, note)
    config = Config.of(output_dir=str(tmp_path), tensorboard=True, wandb=True, mllog=True)
    make_reporter(config, COLUMNS, rank=0)
    assert started == ["Mllog", "TensorBoard", "WeightsAndBiases", "Terminal"]


@pytest.mark.thorough
def test_wandb_offline_writes_its_directory_without_the_network_and_a_resumed_run_has_its_id(
    tmp_path, monkeypatch
):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    report(tmp_path, range(1, 3), wandb_offline=True)
    (first,) = (tmp_path / "wandb").glob("offline-run-*")
    (log,) = first.glob("run-*.wandb")
    assert log.stat().st_size > 0
    first.rename(first.with_name(f"earlier-{first.name}"))  # a directory is named by second and id
    report(tmp_path, range(3, 5), resume_step=2, wandb_offline=True)
    (second,) = (tmp_path / "wandb").glob("offline-run-*")
    assert [path.name for path in second.glob("run-*.wandb")] == [log.name]


class FakeWandb(ModuleType):
    """Stands in for the package: it notes the arguments of init, and names runs by number."""

    class errors:
        class Error(Exception):
            pass

    def __init__(self) -> None:
        super().__init__("wandb")
        self.inits: list[dict[str, object]] = []

    def Settings(self, **options):
        return options

    def init(self, **options):
        self.inits.append(options)
        number = options["id"] or f"run{len(self.inits)}"
        return SimpleNamespace(id=number, log=lambda *_, **__: None, finish=self.inits[-1].update)


def test_a_resumed_run_of_weights_and_biases_continues_and_a_new_one_is_new(tmp_path, monkeypatch):
    wandb = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    config = Config.of(output_dir=str(tmp_path), wandb=True, no_progress_bar=True)
    # New, stopped; resumed; phase 2 in the same directory; phase 2 resumed and lost.
    for resume_step, status in ((None, "stopped"), (2, "success"), (None, "success"), (1, "aborted")):
        make_reporter(config, COLUMNS, rank=0, resume_step=resume_step).close(status)
    found = [(one["id"], one["resume"], one["exit_code"]) for one in wandb.inits]
    assert found == [(None, None, 0), ("run1", "allow", 0), (None, None, 0), ("run3", "allow", 1)]


@pytest.mark.parametrize(
    ("variable", "keys", "modes"),
    [
        ("offline", {"wandb": True}, ["offline"]),
        ("dryrun", {"wandb": True}, ["offline"]),
        ("online", {"wandb": True}, ["online"]),
        ("online", {"wandb_offline": True}, ["offline"]),  # a flag goes before it
        ("disabled", {"wandb": True}, []),
        ("disabled", {}, []),
    ],
)
def test_wandb_mode_of_the_environment_is_obeyed(tmp_path, monkeypatch, variable, keys, modes):
    wandb = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setenv("WANDB_MODE", variable)
    make_reporter(Config.of(output_dir=str(tmp_path), **keys), COLUMNS, rank=0).close()
    assert [one["mode"] for one in wandb.inits] == modes


def test_an_unknown_wandb_mode_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "sometimes")
    with pytest.raises(SettingsError, match="WANDB_MODE of the environment is 'sometimes', expected online"):
        make_reporter(Config.of(output_dir=str(tmp_path), wandb=True), COLUMNS, rank=0)


@pytest.mark.parametrize(
    ("key", "module", "extra"),
    [
        ("mllog", "mlperf_logging", "mllog"),
        ("tensorboard", "torch.utils", "tensorboard"),
        ("wandb", "wandb", "wandb"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, key, module, extra):
    hide(monkeypatch, module)
    expected = rf"is not installed .*; pip install --editable '.\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=expected):
        make_reporter(Config.of(output_dir=str(tmp_path), **{key: True}), COLUMNS, rank=0)

"""``--device auto``: the accelerator that is there, else the processor, said in the log's first lines."""

import subprocess
import sys

import pytest
import torch

from bertdata.errors import SettingsError
from tests.support.launching import ROOT
from tests.support.training_runs import Trainer, errors, words
from trainer.config.settings import Config
from trainer.devices import choice
from trainer.devices.availability import Availability
from trainer.devices.choice import ACCELERATORS, DEVICES, choose_device
from trainer.devices.opening import find_device
from trainer.run import chosen_device


@pytest.fixture
def trainer(capsys) -> Trainer:
    return Trainer(capsys)


def pretend(monkeypatch, *there: str) -> list[str]:
    """Pretend that all packages, and these accelerators, are there; the names that are looked for."""
    asked = list[str]()

    def examine_for_run(name: str, config: Config) -> Availability:
        asked.append(name)
        return Availability(name, name in there, f"no {name}", "buy one")

    monkeypatch.setattr(choice, "find_spec", lambda package: True)
    monkeypatch.setattr(choice, "examine_for_run", examine_for_run)
    return asked


def test_every_accelerator_may_be_chosen():
    assert {"cpu", *ACCELERATORS} == set(DEVICES)


@pytest.mark.parametrize(
    ("there", "chosen", "looked_for"),
    [
        (("cuda", "hpu"), "cuda", ["cuda"]),
        (("hpu", "xla"), "hpu", ["cuda", "hpu"]),
        (("xla",), "xla", ["cuda", "hpu", "ipu", "xla"]),
    ],
)
def test_the_first_accelerator_that_is_there_is_chosen(monkeypatch, there, chosen, looked_for):
    asked = pretend(monkeypatch, *there)
    assert choose_device(Config.of()) == (chosen, "")
    assert asked == looked_for


def test_without_an_accelerator_the_reasons_are_told(monkeypatch):
    pretend(monkeypatch)
    name, reason = choose_device(Config.of())
    assert name == "cpu"
    assert reason.startswith("no accelerator is there: no cuda (buy one); no hpu (buy one); ")


def test_accelerators_whose_packages_are_missing_are_not_looked_for(monkeypatch):
    asked = pretend(monkeypatch, "hpu")
    monkeypatch.setattr(choice, "find_spec", lambda package: package == "torch" or None)
    assert choose_device(Config.of()).name == "cpu"
    assert asked == ["cuda"]


def test_a_device_asked_for_by_name_is_never_replaced(monkeypatch):
    asked = pretend(monkeypatch, "hpu")
    assert choose_device(Config.of(device="cuda")) == ("cuda", "")
    assert asked == []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SettingsError, match="device 'cuda' is not there"):
        find_device(Config.of(device="cuda"))


def test_gpus_are_counted_and_not_opened(monkeypatch):
    """Eight workers that open the first GPU would each take some of its memory."""

    def opened(*_: object) -> None:
        raise AssertionError("the GPU was opened")

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "get_device_properties", opened)
    monkeypatch.setattr(torch.cuda, "_lazy_init", opened)
    assert choose_device(Config.of()).name == "cuda"


def test_packages_that_fail_hide_no_other_accelerator(monkeypatch):
    def broken(config: Config) -> Availability:
        raise OSError("libfast.so: cannot open\nand more")

    monkeypatch.setattr("trainer.devices.cuda.examine_for_run", broken)
    name, reason = choose_device(Config.of())
    assert (name, reason) == ("cpu", "no accelerator is there: OSError: libfast.so: cannot open")


def test_a_run_and_its_checkpoint_name_the_device_found(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path / "run", "--steps=2", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    said = [line for line in outcome.err.splitlines() if line.startswith("trainer: ")]
    first = next(line for line in said if "importing torch" not in line)
    assert first.startswith("trainer: device auto: cpu, since no accelerator is there: torch ")
    state = next((tmp_path / "run" / "checkpoints").glob("*/state.json")).read_text()
    assert '"device": "cpu"' in state
    again = trainer(*words(training_set, tmp_path / "two", "--steps=2", "--warmup=0", "--device=cpu"))
    assert "device auto" not in again.err
    assert trainer(*words(training_set, tmp_path / "three", "--device=cuda")).status == 2


def test_the_device_of_a_later_phase_is_that_of_the_first(trainer, training_set, tmp_path, monkeypatch):
    calls = list[str]()
    original = choose_device

    def counted(config: Config) -> choice.ChosenDevice:
        calls.append(config.run.device)
        return original(config)

    for module in (choice, chosen_device):
        monkeypatch.setattr(module, "choose_device", counted)
    data = (f"--train-data-phase1={training_set}", f"--train-data-phase2={training_set}")
    outcome = trainer(*words(None, tmp_path / "run", *data, "--steps", 1, 1, "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert calls == ["auto"]
    assert not errors(outcome)


def test_looking_for_accelerators_imports_no_vendor_package_and_takes_no_time():
    code = (
        "import sys, torch, time\n"
        "from trainer.config.settings import Config\n"
        "import trainer.devices.device\n"
        "from trainer.devices.choice import choose_device\n"
        "config, start = Config.of(), time.process_time()\n"
        "choose_device(config)\n"
        "print(time.process_time() - start, torch.cuda.is_initialized())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, initialised = done.stdout.split()
    assert float(seconds) < 0.5
    assert initialised == "False"

"""The report of doctor, on this machine and on pretended ones."""

import json
import re
import shutil
import sys
from importlib import metadata

import pytest
import torch

from bertdata.errors import install_extra
from tests.support.device_protocol import OWN, assert_examined
from tests.support.training_runs import Trainer, assert_torch_is_missing, refuse, run_without_torch
from trainer.commands import doctor
from trainer.devices.availability import Availability
from trainer.devices.choice import DEVICES, ChosenDevice, examine_device
from trainer.workers import examine as launchers
from trainer.workers.examine import examine_launchers


@pytest.fixture
def trainer(capsys, monkeypatch) -> Trainer:
    monkeypatch.setenv("COLUMNS", "80")
    return Trainer(capsys)


def pretend(monkeypatch, **found: Availability) -> None:
    """Replace the known devices by these findings."""
    monkeypatch.setattr(doctor, "DEVICES", dict.fromkeys(found))
    monkeypatch.setattr(doctor, "examine_device", lambda name: found[name])
    best = next((name for name, one in found.items() if one.there and name != "cpu"), "cpu")
    monkeypatch.setattr(doctor, "choose_device", lambda config: ChosenDevice(best))


CPU, GPUS = Availability("cpu", True, "slow"), Availability("cuda", True, "8 x fast", count=8)


def test_the_table_tells_of_devices_launchers_logs_and_machine_in_80_columns(trainer):
    outcome = trainer("doctor")
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in outcome.out
    groups = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert groups == ["device", "launcher", "log", "machine", "Without"]
    rows = {match[1]: match[2] for line in lines if (match := re.match(r"[a-z ]{10}(\w+) +(yes|no)  ", line))}
    assert {*DEVICES, "torchrun", "horovodrun", "poprun", "wandb", "cores", "memory", "kernels"} <= set(rows)
    assert (rows["cpu"], rows["torchrun"], rows["kernels"]) == ("yes",) * 3
    assert lines[-2] == "Without --device a run uses cpu, since no accelerator is there:"
    assert lines[-1].startswith("  python -m trainer pretrain --device ")


def test_json_says_the_same(trainer):
    found = json.loads(trainer("doctor", "--json").out)
    assert [one["name"] for one in found["device"]] == [*DEVICES]
    assert found["device"][0]["there"] is True
    assert (found["default"], found["best"]) == ("auto", "cpu")
    own = [one for one in found["device"] if one["name"] in OWN]
    for one in (*own, *found["launcher"], *found["log"], *found["machine"]):
        assert set(one) == {"name", "there", "found", "missing", "count"}
        assert one["there"] or one["missing"]  # a remedy


def test_the_best_device_is_told_with_what_to_type(trainer, monkeypatch):
    pretend(monkeypatch, cpu=CPU, cuda=GPUS, hpu=Availability("hpu", True, "also"))
    assert trainer("doctor").out.splitlines()[-2:] == [
        "Without --device a run uses cuda, the accelerator that is there:",
        "  python -m trainer pretrain --device cuda --dist --world-size 8 ...",
    ]
    assert trainer("doctor", "--device=hpu").out.splitlines()[-2:] == [
        "A run on hpu:",
        "  python -m trainer pretrain --device hpu ...",
    ]
    pretend(monkeypatch, cpu=CPU, cuda=Availability("cuda", False, "no GPU", "buy one"))
    outcome = trainer("doctor")
    assert outcome.out.splitlines()[-1] == "  python -m trainer pretrain --device cpu ..."
    assert "cuda            no     no GPU; buy one" in outcome.out
    assert outcome.status == 0


def test_one_device_alone(trainer, monkeypatch):
    outcome = trainer("doctor", "--device", "cpu")
    assert outcome.status == 0
    assert "torchrun" not in outcome.out
    assert list(json.loads(trainer("doctor", "--device=cpu", "--json").out)) == [
        "device",
        "default",
        "best",
        "command",
    ]
    pretend(monkeypatch, cpu=CPU, cuda=Availability("cuda", False, "no GPU", "buy one"))
    refuse(trainer("doctor", "--device=cuda"), 2, "device 'cuda' is not there: no GPU; buy one")
    monkeypatch.undo()
    refuse(trainer("doctor", "--device=tpu"), 2, "device 'tpu': no such device; known are cpu, cuda")


@pytest.mark.parametrize("name", OWN)
def test_every_device_can_be_examined(name):
    assert_examined(name)


def test_a_device_whose_packages_are_broken_hides_no_other(monkeypatch):
    def examine() -> Availability:
        raise OSError("libfast.so: cannot open\nand more")

    monkeypatch.setattr("trainer.devices.cuda.examine", examine)
    assert examine_device("cuda") == Availability("cuda", False, "OSError: libfast.so: cannot open")


@pytest.mark.parametrize(
    ("version", "count", "there", "found", "missing"),
    [
        (None, 0, False, "has no CUDA", "install a build of torch that has"),
        ("12.8", 0, False, "for CUDA 12.8 finds no GPU", "nvidia-smi"),
        ("12.8", 2, True, "2 x H200, 139 GiB; torch", ""),
    ],
)
def test_gpus_are_counted_and_named(monkeypatch, version, count, there, found, missing):
    class About:
        name, total_memory = "H200", 139 * 2**30

    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: About)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (8, 0))
    finding = examine_device("cuda")
    assert (finding.name, finding.there) == ("cuda", there)
    assert found in finding.found
    assert missing in finding.missing
    assert finding.count == max(count, 1)


@pytest.mark.parametrize(("capability", "has_fp8"), [((8, 0), False), ((8, 9), True), ((9, 0), True)])
def test_gpus_from_compute_capability_8_9_have_fp8(monkeypatch, capability, has_fp8):
    class About:
        name, total_memory = "L4", 24 * 2**30

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: About)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    assert ("FP8" in examine_device("cuda").found) == has_fp8


def findings() -> dict[str, Availability]:
    return {finding.name: finding for finding in examine_launchers()}


def test_torchrun_says_what_it_is_built_with():
    assert "gloo" in findings()["torchrun"].found


@pytest.mark.horovod
def test_horovodrun_says_what_it_is_built_with():
    found = findings()
    assert found["horovodrun"].there
    assert f"Horovod {metadata.version('horovod')}: gloo" in found["horovodrun"].found
    assert f"fits torch {torch.__version__}" in found["horovodrun"].found


def test_horovod_that_is_missing_or_was_built_for_another_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "horovod.torch", None)  # an ImportError
    monkeypatch.setattr(launchers, "find_spec", lambda name: object())
    monkeypatch.setattr(launchers, "version", lambda name: "0.28.1")
    finding = findings()["horovodrun"]
    assert not finding.there
    assert f"does not fit torch {torch.__version__}" in finding.found
    assert finding.missing == "make horovod builds one that fits"
    monkeypatch.setattr(launchers, "find_spec", lambda name: None if name == "horovod" else object())
    assert findings()["horovodrun"] == Availability(
        "horovodrun", False, "Horovod is not installed", "make horovod builds it"
    )


def test_poprun_is_there_with_its_package(monkeypatch):
    assert "Poplar SDK" in findings()["poprun"].missing
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/poprun")
    monkeypatch.setattr(launchers, "find_spec", lambda name: None if name == "horovod" else object())
    assert findings()["poprun"] == Availability("poprun", True, "popdist of unknown version")
    monkeypatch.setattr(launchers, "version", lambda name: "3.4")
    assert findings()["poprun"] == Availability("poprun", True, "popdist 3.4")


def test_what_is_not_installed_has_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "available", lambda: False)
    found = {finding.name: finding for finding in (*doctor._check_loggers(), *doctor._check_machine())}
    assert found["wandb"] == Availability("wandb", False, "not installed", install_extra("wandb"))
    assert found["mlperf_logging"].missing == install_extra("mllog")
    assert not found["kernels"].there
    assert "C++17 compiler" in found["kernels"].missing


@pytest.mark.parametrize(
    "command",
    [
        ["pretrain", "--generated-data", "--output-dir=y"],
        ["evaluate", "--eval-data=x", "--output-dir=y"],
    ],
)
def test_without_torch_there_is_one_line_with_the_remedy(command):
    assert_torch_is_missing(run_without_torch(*command))


def test_without_torch_doctor_says_which_extra_is_missing_and_what_else_is_there():
    done = run_without_torch("doctor")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == (
        "trainer: error: torch is not installed, so nothing can be trained here; "
        "pip install --editable '.[train]' in bertdata's source tree"
    )
    rows = {m[1]: m[2] for one in done.stdout.splitlines() if (m := re.match(r".{10}(\w+) +(yes|no)  ", one))}
    assert {rows[name] for name in [*DEVICES, "torchrun", "horovodrun"]} == {"no"}
    assert (rows["cores"], rows["kernels"]) == ("yes", "yes")
    assert "Without --device" not in done.stdout


def test_without_torch_doctor_s_json_names_no_best_device():
    done = run_without_torch("doctor", "--json")
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert (found["best"], found["command"]) == (None, None)
    for one in [*found["device"], *found["launcher"][:2]]:
        assert (one["there"], one["found"]) == (False, "torch is not installed")
        assert one["missing"] == "pip install --editable '.[train]' in bertdata's source tree"


def test_brackets_of_an_extra_are_printed(trainer, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    printed = " ".join(trainer("doctor").out.split())  # a narrow table breaks the command into lines
    assert "pip install --editable '.[wandb]'" in printed

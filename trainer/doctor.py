"""What this machine has for training, which device would be used, and what is missing."""

import json
import os
from dataclasses import asdict
from importlib.util import find_spec

import torch

from bertdata._native import available, why_missing
from bertdata.errors import SettingsError
from bertdata.io.process_pool import available_cores
from trainer.collectives.examine import examine as examine_launchers
from trainer.collectives.examine import find_version
from trainer.config import Config
from trainer.devices import CLASSES, Finding, examine

EXTRAS = {"tensorboard": "tensorboard", "wandb": "wandb", "mlperf_logging": "mllog", "matplotlib": "pictures"}
"""The extra that brings each package which only some logs need."""


def diagnose(device: str | None, *, as_json: bool) -> None:
    """Print a table, or JSON; of one device alone where it is named: SettingsError if it is not there."""
    devices = [examine(name) for name in ([device] if device else CLASSES)]
    if device and not devices[0].there:
        raise SettingsError(f"device {device!r} is not there: {_told(devices[0])}")
    groups = {"device": devices}
    if not device:
        groups |= {"launcher": examine_launchers(), "log": _logs(), "machine": _machine()}
    default = str(Config().device)
    best = next((one for one in devices if one.there and one.name != default), devices[0])
    workers = f" --dist --world-size {best.count}" if best.count > 1 else ""
    command = f"python -m trainer pretrain --device {best.name}{workers} ..."
    if as_json:
        found = {group: [asdict(finding) for finding in findings] for group, findings in groups.items()}
        print(json.dumps(found | {"default": default, "best": best.name, "command": command}, indent=1))
    else:
        _print(groups)
        print(f"\nWithout --device a run uses {default}. The best that is here:\n  {command}")


def _print(groups: dict[str, list[Finding]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "", "there", "found", box=None, pad_edge=False, header_style="bold")
    for group, findings in groups.items():
        for number, finding in enumerate(findings):
            words = "" if number else group, finding.name, "yes" if finding.there else "no", _told(finding)
            table.add_row(*words, style="" if finding.there else "yellow")
    Console(highlight=False, markup=False).print(table)


def _told(finding: Finding) -> str:
    return "; ".join(filter(None, (finding.found, finding.missing)))


def _logs() -> list[Finding]:
    return [
        Finding(name, True, find_version(name))
        if find_spec(name)
        else Finding(name, False, "not installed", f"pip install 'bertdata[{extra}]'")
        for name, extra in EXTRAS.items()
    ]


def _machine() -> list[Finding]:
    threads = f"{available_cores()} for this process; threads of torch: {torch.get_num_threads()}"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    remedy = "" if available() else f"{why_missing}; pip install builds them where there is a C++17 compiler"
    return [
        Finding("cores", True, threads),
        Finding("memory", True, f"{memory:.1f} GiB"),
        Finding("kernels", available(), "bertdata's native ones" + " are not built" * bool(remedy), remedy),
    ]

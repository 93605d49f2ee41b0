"""The command line of ``python -m trainer doctor``: devices, launchers and packages of this machine."""

import json
import os
from dataclasses import asdict
from importlib.util import find_spec

from bertdata._native import available, why_missing
from bertdata.cli.common.parser import Parser
from bertdata.errors import MissingExtraError, SettingsError, install_extra
from bertdata.io.process_pool import count_available_cores
from bertdata.io.terminal import say, say_text
from trainer.config.settings import Config
from trainer.devices.availability import Availability
from trainer.devices.choice import DEVICES, PROCESSOR, choose_device, examine_device
from trainer.workers.examine import examine_launchers, find_version

EXTRAS = {
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "mlperf_logging": "mllog",
    "matplotlib": "pictures",
    "jinja2": "report",
}
"""For each optional package, the extra of this project with which pip installs it."""


def run(arguments: list[str]) -> None:
    """Print which devices, launchers and packages this machine has, as a table or as JSON.

    With --device, report only on this device. SettingsError if the machine does not have it. If torch is not
    installed, raise MissingExtraError after the report, because nothing can be trained.
    """
    summary = (
        "Prints a table of the devices, launchers and packages found, with a remedy for each missing one."
    )
    parser = Parser("python -m trainer doctor", "  python -m trainer doctor --json", summary)
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="report on this device only; the exit status is 2 if the device is missing",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(arguments)
    device = given.device
    devices = [examine_device(name) for name in ([device] if device else DEVICES)]
    if device and not devices[0].there:
        raise SettingsError(f"device {device!r} is not there: {_format_finding(devices[0])}")
    groups = {"device": devices}
    if not device:
        groups |= {"launcher": examine_launchers(), "log": _check_loggers(), "machine": _check_machine()}
    default = Config.of().run.device
    has_torch = find_spec("torch") is not None
    best = device or (choose_device(Config.of()).name if has_torch else None)
    count = next((one.count for one in devices if one.name == best), 1)
    workers = f" --dist --world-size {count}" if count > 1 else ""
    command = f"python -m trainer pretrain --device {best}{workers} ..."
    if given.json:
        found = {group: [asdict(finding) for finding in findings] for group, findings in groups.items()}
        choice = {"best": best, "command": command} if has_torch else {"best": None, "command": None}
        say_text(json.dumps(found | {"default": default} | choice, indent=1))
    else:
        _print_table(groups)
        if best:
            say("", _format_device_hint(best, device), f"  {command}")
    if not has_torch:
        raise MissingExtraError(
            f"torch is not installed, so nothing can be trained here; {install_extra('train')}"
        )


def _format_device_hint(best: str, device: str | None) -> str:
    """Return the line that introduces the suggested command. It names the device on which the command trains.

    best: name of the device.
    device: value of --device, or None.
    """
    if device:
        return f"A run on {device}:"
    if best == PROCESSOR:
        return f"Without --device a run uses {best}, since no accelerator is there:"
    return f"Without --device a run uses {best}, the accelerator that is there:"


def _print_table(groups: dict[str, list[Availability]]) -> None:
    """Print a table with a group for devices, launchers, loggers and the machine."""
    from rich.console import Console
    from rich.table import Table

    table = Table("", "", "there", "found", box=None, pad_edge=False, header_style="bold")
    for group, findings in groups.items():
        for number, finding in enumerate(findings):
            there, style = ("yes", "") if finding.there else ("no", "yellow")
            table.add_row("" if number else group, finding.name, there, _format_finding(finding), style=style)
    Console(highlight=False, markup=False).print(table)


def _format_finding(finding: Availability) -> str:
    """Return what the machine has of a device or package, and what is missing, as text for the table."""
    return "; ".join(filter(None, (finding.found, finding.missing)))


def _check_loggers() -> list[Availability]:
    """Return for each optional logger, such as TensorBoard, whether its package is installed."""
    return [_check_package(name, extra) for name, extra in EXTRAS.items()]


def _check_package(name: str, extra: str) -> Availability:
    """Return whether a package is installed, with its version or the command that installs its extra."""
    if find_spec(name):
        return Availability(name, True, find_version(name))
    return Availability(name, False, "not installed", install_extra(extra))


def _check_machine() -> list[Availability]:
    """Return the number of cores, the memory, and whether bertdata's native kernels are built."""
    threads = f"{count_available_cores()} for this process"
    if find_spec("torch") is not None:
        import torch

        threads += f"; threads of torch: {torch.get_num_threads()}"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    kernels = Availability("kernels", True, "bertdata's native ones")
    if not available():
        remedy = f"{why_missing}; pip install builds them where there is a C++17 compiler"
        kernels = Availability("kernels", False, "bertdata's native ones are not built", remedy)
    return [
        Availability("cores", True, threads),
        Availability("memory", True, f"{memory:.1f} GiB"),
        kernels,
        _check_package("torchao", "fp8"),
    ]

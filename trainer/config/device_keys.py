"""Keys that have an effect on some devices only: their base class, and CUDA's. None: not given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import schema_of, setting
from bertdata.config.value_check import check_values
from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class DeviceSection(Section):
    """Keys of one kind of device. Each is checked only where it is given."""

    def __post_init__(self) -> None:
        given = {name: value for name, value in self.values().items() if value is not None}
        check_values(given, schema_of(type(self)))


def option(help: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """A setting of some devices, which other devices do without."""
    return setting(None, help, choices, optional=True, **more)


@dataclass(frozen=True, kw_only=True)
class CudaSection(DeviceSection):
    """Keys of NVIDIA's GPUs."""

    attention: str | None = option(
        "attention kernel: auto, flash (without padding), efficient, cudnn or math (default: auto)",
        ("auto", "flash", "efficient", "cudnn", "math"),
        keywords={"type": "string"},
    )
    cuda_graphs: bool | None = option("compile the model and run it as CUDA graphs")

"""Configuration section for splitting a model over devices: a plan file, or limits for finding a plan."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import require
from bertdata.io.outputs import OutputFormat
from trainer.config.sections.section import Section

PLAN_FORM = OutputFormat(words="a plan", begins=lambda head: b'"bertdata plan' in head)
"""Test that recognises a plan file of ``trainer/splitting``, so that no other type of file is overwritten."""


@dataclass(frozen=True, kw_only=True)
class SplitSection(Section):
    """Keys about splitting a model, for the strategies sharded, pipelined and auto."""

    plan: str | None = setting(
        None,
        "plan file from python -m trainer split (default: make a plan at the start)",
        common=True,
        by_phase=True,
    )
    save_plan: str | None = setting(None, "file to write the plan to", by_phase=True)
    device_memory: float | None = setting(
        None, "memory of a device in GB of 10^9 bytes (default: what the device reports)", above=0
    )
    memory_margin: float = setting(0.1, "share of a device's memory to leave free", least=0, below=1)
    min_micro_batches: int = setting(1, "fewest micro-batches per update in a pipeline", least=1)
    max_micro_batches: int = setting(32, "most micro-batches per update in a pipeline", least=1)
    power_of_two: bool = setting(
        True, "consider only powers of two for the numbers of stages, copies and micro-batches"
    )
    bandwidth: float | None = setting(
        None,
        "bandwidth between two devices in GB/s, in each direction (default: measured, or the data sheet's)",
        above=0,
    )
    stages: int | None = setting(None, "number of pipeline stages (default: as in the fastest plan)", least=1)
    copies: int | None = setting(
        None,
        "number of devices that hold a copy of each stage (default: number of devices / number of stages)",
        least=1,
    )
    profile_layers: bool = setting(
        False, "measure the layers' times on the device for the plan, instead of computing the times"
    )
    recompute: str = setting(
        "auto",
        "recompute a stage's activations in the backward pass: never (keep them in memory), always, or auto "
        "(keep them where they fit)",
        ("auto", "always", "never"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = self.min_micro_batches, self.max_micro_batches
        require(least <= most, f"min_micro_batches is {least}, expected at most max_micro_batches ({most})")

    @property
    def memory_bytes(self) -> int | None:
        """Memory of a device in bytes, or None if device_memory is not set."""
        return None if self.device_memory is None else round(self.device_memory * 1e9)

    @property
    def bytes_per_second(self) -> float | None:
        """Bandwidth between two devices in bytes per second, or None if not set."""
        return None if self.bandwidth is None else self.bandwidth * 1e9

"""Section of the division of a model over the devices: a plan, or the limits of the search for one."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import check
from bertdata.io.outputs import OutputForm
from trainer.config.sections.section import Section

PLAN_FORM = OutputForm(words="a plan", begins=lambda head: b'"bertdata plan' in head)
"""The file of a plan, as ``trainer/splitting`` writes it."""


@dataclass(frozen=True, kw_only=True)
class SplitSection(Section):
    """Keys of the strategies that divide a model: sharded, pipelined, and the choice of auto."""

    plan: str | None = setting(
        None,
        "plan of python -m trainer split to train by (default: made at the start)",
        common=True,
        by_phase=True,
    )
    save_plan: str | None = setting(None, "file to write the plan to", by_phase=True)
    device_memory: float | None = setting(
        None, "memory of a device in GB of 10^9 bytes (default: the device's)", above=0
    )
    memory_margin: float = setting(0.1, "share of the memory that a plan leaves free", least=0, below=1)
    min_micro_batches: int = setting(1, "fewest micro-batches of an update in a pipeline", least=1)
    max_micro_batches: int = setting(32, "most micro-batches of an update in a pipeline", least=1)
    power_of_two: bool = setting(
        True, "only powers of two as number of stages, of copies and of micro-batches"
    )
    bandwidth: float | None = setting(
        None,
        "bandwidth between two devices in GB/s, each way (default: measured, or the hardware's)",
        above=0,
    )
    stages: int | None = setting(
        None, "number of stages (default: the plan that takes the least time)", least=1
    )
    copies: int | None = setting(None, "number of copies of each stage (default: devices / stages)", least=1)
    profile_layers: bool = setting(
        False, "time the layers on the device before the plan is made, instead of computing their times"
    )
    recompute: str = setting(
        "auto",
        "activations of a stage: kept (never), computed again in the backward pass (always), or auto: "
        "kept where the memory holds them",
        ("auto", "always", "never"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = self.min_micro_batches, self.max_micro_batches
        check(least <= most, f"min_micro_batches is {least}, expected at most max_micro_batches ({most})")

    @property
    def memory_bytes(self) -> int | None:
        """Bytes of a device's memory, or None where not given."""
        return None if self.device_memory is None else round(self.device_memory * 1e9)

    @property
    def bytes_per_second(self) -> float | None:
        """The bandwidth in bytes a second, or None where not given."""
        return None if self.bandwidth is None else self.bandwidth * 1e9

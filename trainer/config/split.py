"""Section of the division of a model over the devices: a plan, or the limits of the search for one."""

from dataclasses import dataclass

from trainer.config.section import Section, check


@dataclass(frozen=True, kw_only=True)
class SplitSection(Section):
    """Keys of the strategies that divide a model: sharded, pipelined, and the choice of auto."""

    plan: str | None = None  # path; None: a plan is made at the start
    save_plan: str | None = None  # path
    device_memory: float | None = None  # GB of 10^9 bytes; None: the device's
    memory_margin: float = 0.1  # share of the memory that stays free
    min_micro_batches: int = 1  # of an update
    max_micro_batches: int = 32
    power_of_two: bool = True  # numbers of stages, copies and micro-batches
    bandwidth: float | None = None  # GB/s each way between two devices; None: measured
    stages: int | None = None  # None: the planner's choice
    copies: int | None = None
    profile_layers: bool = False
    recompute: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = self.min_micro_batches, self.max_micro_batches
        check(least <= most, f"min_micro_batches is {least}, expected at most max_micro_batches ({most})")

    @property
    def memory_bytes(self) -> int | None:
        """Bytes of a device's memory; None: not given."""
        return None if self.device_memory is None else round(self.device_memory * 1e9)

    @property
    def bytes_per_second(self) -> float | None:
        """The bandwidth in bytes; None: not given."""
        return None if self.bandwidth is None else self.bandwidth * 1e9

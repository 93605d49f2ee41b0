"""Section of the workers: their number, what starts them, what they exchange."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check, shown


@dataclass(frozen=True, kw_only=True)
class WorkersSection(Section):
    """Several workers of one run, and the averages of their gradients."""

    dist: bool = shown(False, "start world_size workers on this machine, unless a launcher has started them")
    world_size: int | None = shown(None, "expected number of workers (default: any)", least=1)
    collective: str | None = setting(
        None,
        "communication between workers (default: the launcher's)",
        ("single", "torch_distributed", "horovod", "poprun"),
    )
    allreduce_post_accumulation: bool = setting(True, "all-reduce once an update, not once a micro-batch")
    allreduce_post_accumulation_fp16: bool = setting(False, "all-reduce in 16 bits")
    force_weight_sync: bool = setting(False, "average the weights over the workers before each update")

    def __post_init__(self) -> None:
        super().__post_init__()
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        check(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")

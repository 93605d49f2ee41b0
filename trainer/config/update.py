"""Section of an update: batch sizes, precision, optimiser, clipping, reduction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.config.schema import usual
from trainer.config.section import Section, check

_DEFAULT_BATCH_SIZE = 32
_NEARLY_WHOLE = 0.05  # of a micro-batch: rows that are spread over the others


@dataclass(frozen=True, kw_only=True)
class UpdateSection(Section):
    """The way from examples to changed weights; None: the optimiser's own value, unless said otherwise."""

    batch_size: int | None = None  # examples of a micro-batch; None: 32, or from the global batch
    accumulation: int | None = None  # micro-batches of a worker; None: 1, or from the global batch
    packed_accumulation: str = "sequences"
    replicas: int | None = None  # workers assumed by the two above; None: the actual number
    global_batch_size: int | None = None  # examples over all workers
    precision: str = "fp32"
    loss_scaling: float = 0.0  # 0: adjusted within the three bounds that follow
    init_loss_scale: float = 65536.0
    min_loss_scale: float = 1.0
    max_loss_scale: float = 16777216.0
    optimiser: str = "lamb-nvidia"
    beta1: float | None = None
    beta2: float | None = None
    optimiser_epsilon: float | None = None
    weight_decay: float | None = None
    decay_skips: Sequence[str] | None = None
    use_debiasing: bool | None = None
    momentum: float | None = None
    clipping: str = "usual"
    max_grad_norm: float = 1.0
    allreduce_post_accumulation: bool = True
    allreduce_post_accumulation_fp16: bool = False
    force_weight_sync: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        check(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")

    @property
    def clipping_point(self) -> str:
        """The point at which gradients are clipped; by default the optimiser's usual one."""
        return usual(self.optimiser, "clipping") if self.clipping == "usual" else self.clipping

    def micro_batch_clip_norm(self, divisor: float) -> float | None:
        """Norm to clip the gradient of a micro-batch's loss / divisor to; None: not clipped there.

        MLPerf's program clips the gradient of the undivided loss to max_grad_norm, then divides it;
        Habana's clips that of the divided loss.
        """
        norms = {
            "per_micro_batch": self.max_grad_norm / divisor,
            "per_micro_batch_divided": self.max_grad_norm,
        }
        return norms.get(self.clipping_point)

    def micro_batches(self, workers: int, examples_per_row: float = 1.0) -> tuple[int, int]:
        """(rows of a micro-batch, micro-batches of a worker in an update).

        A number that is not given follows from the global batch. SettingsError where that does not divide.
        Packed rows have ``examples_per_row`` on average. Unless packed_accumulation is "rows", the numbers
        given count examples: then there are fewer micro-batches, of about as many rows as examples are asked
        for, or fewer rows.
        """
        size, count = self._given_micro_batches(workers)
        if self.packed_accumulation == "rows" or examples_per_row <= 1:
            return size, count
        packed = max(1, math.ceil(count / examples_per_row - _NEARLY_WHOLE))
        return max(1, round(size * count / (packed * examples_per_row))), packed

    def _given_micro_batches(self, workers: int) -> tuple[int, int]:
        """(batch_size, accumulation) as they are given, or follow from the global batch."""
        size, count, total = self.batch_size, self.accumulation, self.global_batch_size
        if total is None and self.replicas is not None:
            total = (size or _DEFAULT_BATCH_SIZE) * (count or 1) * self.replicas
            count = None
        if total is not None:
            size = size or max(1, total // (workers * (count or 1)))
            count = count or max(1, total // (workers * size))
            whole = workers * size * count
            factors = f"{workers} (workers) * {size} (batch_size) * {count} (accumulation) = {whole}"
            wanted = f"expected {factors}: a batch size that does not divide"
            check(total == whole, f"the global batch is {total}, {wanted}")
        return size or _DEFAULT_BATCH_SIZE, count or 1

    def examples(self, workers: int, examples_per_row: float = 1.0) -> int:
        """Examples of one update over all workers; of packed rows on average."""
        size, count = self.micro_batches(workers, examples_per_row)
        return round(workers * size * count * examples_per_row)

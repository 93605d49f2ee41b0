"""Section of an update: batch sizes, precision, optimiser, clipping, reduction."""

from dataclasses import dataclass

from trainer.config.schema import usual
from trainer.config.section import Section, check

_DEFAULT_BATCH_SIZE = 32


@dataclass(frozen=True, kw_only=True)
class UpdateSection(Section):
    """The way from examples to changed weights; None: the optimiser's own value, unless said otherwise."""

    batch_size: int | None = None  # examples of a micro-batch; None: 32, or from the global batch
    accumulation: int | None = None  # micro-batches of a worker; None: 1, or from the global batch
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

    def micro_batch_clip_norm(self, count: int) -> float | None:
        """Norm to clip the gradient of a micro-batch's loss / count to; None: not clipped there.

        MLPerf's program clips the gradient of the undivided loss to max_grad_norm, then divides it by
        count; Habana's clips that of the divided loss.
        """
        norms = {
            "per_micro_batch": self.max_grad_norm / count,
            "per_micro_batch_divided": self.max_grad_norm,
        }
        return norms.get(self.clipping_point)

    def micro_batches(self, workers: int) -> tuple[int, int]:
        """(examples of a micro-batch, micro-batches of a worker in an update).

        A number that is not given follows from the global batch. SettingsError where that does not divide.
        """
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

    def examples(self, workers: int) -> int:
        """Examples of one update over all workers."""
        size, count = self.micro_batches(workers)
        return workers * size * count

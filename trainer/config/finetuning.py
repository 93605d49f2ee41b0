"""Section of fine-tuning: the task, its files, and the settings of its features and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.config.section import Section

PRETRAINING, SQUAD = "pretraining", "squad"


@dataclass(frozen=True, kw_only=True)
class FinetuningSection(Section):
    """A task that starts from a pre-trained model; None: the task's own value."""

    task: str = PRETRAINING
    task_dir: str | None = None  # of the files that the task's program expects
    task_train_file: str | None = None
    task_eval_file: str | None = None
    task_predict_file: str | None = None
    lower_case: bool | None = None  # None: the checkpoint's, else true
    do_eval: bool = True
    do_predict: bool = False
    doc_stride: int = 128  # tokens
    max_query_length: int = 64  # tokens
    n_best_size: int = 20
    max_answer_length: int = 30  # tokens
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0
    first_column: str | None = None
    second_column: str | None = None
    label_column: str | None = None
    labels: Sequence[str] | None = None  # in the order of their numbers; None: those of the training file
    regression: bool = False

    @property
    def is_finetuning(self) -> bool:
        return self.task != PRETRAINING

    def idle(self) -> list[str]:
        """The keys that have no effect on pre-training."""
        return [] if self.is_finetuning else [name for name in self.values() if name != "task"]

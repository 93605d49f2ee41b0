"""Section of fine-tuning: the task, its files, and the settings of its features and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.sources.delimited import QUOTING
from trainer.config.sections.section import Section
from trainer.plugins import FINE_TUNED

PRETRAINING = "pretraining"
"""The task of a run that fine-tunes nothing."""


@dataclass(frozen=True, kw_only=True)
class FinetuningSection(Section):
    """A task that starts from a pre-trained model. None: the task's own value."""

    task: str = setting(
        PRETRAINING,
        "what is fine-tuned: squad, one of GLUE's tasks, or classification for a table of one's own",
        (PRETRAINING, *FINE_TUNED),
        keywords={"type": "string"},
    )
    task_dir: str | None = setting(
        None, "directory of the task's files under their usual names; finetune's --data-dir"
    )
    task_train_file: str | None = setting(
        None, "file to fine-tune on; finetune's --train-file (default: the one in task_dir)"
    )
    task_eval_file: str | None = setting(
        None, "file to evaluate on; finetune's and evaluate's --eval-file (default: the one in task_dir)"
    )
    task_predict_file: str | None = setting(
        None,
        "file to predict, without answers or labels; --predict-file there (default: the one in task_dir)",
    )
    lower_case: bool | None = setting(
        None,
        "lower-case the text and strip its accents (default: as the checkpoint's tokeniser says, or true)",
    )
    do_eval: bool = setting(True, "evaluate during and after fine-tuning")
    do_predict: bool = setting(False, "write predictions for task_predict_file at the end")
    doc_stride: int = setting(128, "tokens from the start of one span of a context to the next", least=1)
    max_query_length: int = setting(64, "most tokens of a question; the rest is cut off", least=1)
    n_best_size: int = setting(20, "answers in nbest_predictions.json", least=1)
    max_answer_length: int = setting(30, "most tokens of an answer", least=1)
    answers_over_padding: bool = setting(
        False,
        "the softmax of an answer's places runs over the padding of a row too, as in the original programs; "
        "needs rows",
    )
    padding_learns: bool = setting(
        True,
        "the embedding of padding learns where padding takes part; no in transformers, whose gradient is 0",
    )
    version_2_with_negative: bool = setting(False, "questions may have no answer (SQuAD 2.0)")
    null_score_diff_threshold: float = setting(
        0.0, "no answer where its score is more than this above the best answer's"
    )
    first_column: str | None = setting(None, "column of the first text (default: the task's)")
    second_column: str | None = setting(None, "column of the second text (default: the task's)")
    label_column: str | None = setting(None, "column of the label or score (default: the task's)")
    labels: Sequence[str] | None = setting(
        None,
        "labels in the order of their numbers: A,B or a JSON list (default: the task's, or those of the "
        "training file, sorted)",
    )
    regression: bool = setting(False, "the label is a score")
    quoting: str | None = setting(
        None,
        "double quotes of a table: csv, they enclose a value; none, they are text (default: csv for .csv, "
        "none for .tsv)",
        QUOTING,
    )

    @property
    def is_finetuning(self) -> bool:
        return self.task in FINE_TUNED

    def idle(self) -> list[str]:
        """The keys that have no effect on pre-training."""
        return [] if self.is_finetuning else [name for name in self.values() if name != "task"]

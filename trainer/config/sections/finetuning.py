"""Configuration section of fine-tuning: the task, its files, its features and its predictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.sources.delimited import QUOTING
from trainer.config.sections.section import Section
from trainer.plugins import FINE_TUNED

PRETRAINING = "pretraining"
"""Value of the key ``task`` for a pre-training run."""


@dataclass(frozen=True, kw_only=True)
class FinetuningSection(Section):
    """Keys about a task that starts from a pre-trained model. None means the task's usual value."""

    task: str = setting(
        PRETRAINING,
        "task to fine-tune: squad, a task of GLUE, or classification for your own table",
        (PRETRAINING, *FINE_TUNED),
        keywords={"type": "string"},
    )
    task_dir: str | None = setting(
        None, "directory with the task's files under their published names (flag: --data-dir)"
    )
    task_train_file: str | None = setting(
        None, "file to fine-tune on (flag: --train-file; default: found in task_dir)"
    )
    task_eval_file: str | None = setting(
        None, "file of the task to evaluate on (flag: --eval-file; default: found in task_dir)"
    )
    task_predict_file: str | None = setting(
        None,
        "file of the task whose answers or labels are to be predicted (flag: --predict-file; default: found "
        "in task_dir)",
    )
    lower_case: bool | None = setting(
        None,
        "lower-case the text and strip accents (default: as the checkpoint's tokeniser does, else yes)",
    )
    do_eval: bool = setting(True, "evaluate during and after fine-tuning")
    do_predict: bool = setting(False, "when training has ended, predict the examples in task_predict_file")
    doc_stride: int = setting(
        128,
        "number of tokens from the start of one span of a long context to the start of the next span",
        least=1,
    )
    doc_overlap: int | None = setting(
        None,
        "number of tokens that two neighbouring spans of a long context share; replaces doc_stride",
        least=0,
    )
    max_query_length: int | None = setting(
        None,
        "most tokens of a question, the rest is cut off; 0: no limit (default: 64, or the largest number "
        "that fits in max_seq_length)",
        least=0,
    )
    first_answer: bool = setting(
        False,
        "accept questions with several answers in training, and learn the first; a question without answers "
        "counts as impossible",
    )
    n_best_size: int = setting(20, "number of answers to each question in nbest_predictions.json", least=1)
    max_answer_length: int = setting(30, "most tokens of an answer", least=1)
    answers_over_padding: bool = setting(
        False,
        "let the softmax over an answer's positions include a row's padding, as Google's and NVIDIA's "
        "programs do; needs rows",
    )
    padding_learns: bool = setting(
        True,
        "with answers_over_padding: also train the embedding of the padding token, which transformers "
        "does not train",
    )
    version_2_with_negative: bool = setting(False, "allow questions without an answer (SQuAD 2.0)")
    null_score_diff_threshold: float = setting(
        0.0,
        "predict that a question has no answer if the score of no answer exceeds the best answer's score "
        "by more than this number",
    )
    text_column: str | None = setting(
        None, "column of the first text (default: the task's column)", other_names=["first_column"]
    )
    second_text_column: str | None = setting(
        None, "column of the second text (default: the task's column)", other_names=["second_column"]
    )
    label_column: str | None = setting(None, "column of the label or score (default: the task's column)")
    labels: Sequence[str] | None = setting(
        None,
        "labels in the order of their ids, as A,B or a JSON list (default: the task's labels). For a table "
        "of your own the default is the sorted labels of the training file, or the order in the checkpoint "
        "of start_from_ckpt if its head has the same labels",
    )
    regression: bool = setting(False, "predict a score instead of a label")
    heading: bool | None = setting(
        None,
        "the first row of a TSV or CSV file names the columns; no: the first row is an example (default: "
        "as in the task's published files, for your own table yes)",
    )
    new_head: bool = setting(
        False, "start with a new head (output layer of the task), even if start_from_ckpt has one"
    )
    ignore_mismatched_sizes: bool = setting(
        False,
        "start with a new head if the head in start_from_ckpt has another number of labels than the task, "
        "like the same flag of transformers' run_glue.py",
    )
    quoting: str | None = setting(
        None,
        "meaning of double quotes in a table: csv (they enclose a value) or none (they are text) (default: "
        "csv for .csv, none for .tsv)",
        QUOTING,
    )
    skip_bad_records: bool = setting(
        False,
        "leave out and count rows of a labelled table that are malformed, lack a column, or have a bad label "
        "or score; without this flag the first such row ends the run with an error",
    )

    @property
    def is_finetuning(self) -> bool:
        """True if the key ``task`` names a fine-tuning task."""
        return self.task in FINE_TUNED

    def list_idle_keys(self) -> list[str]:
        """Return the keys that have no effect in pre-training, or on SQuAD's files, which are no tables."""
        if not self.is_finetuning:
            return [name for name in self.values() if name != "task"]
        return ["skip_bad_records"] if self.task == "squad" else []

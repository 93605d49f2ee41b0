"""Hugging Face's run_qa.py: SQuAD 1.1 and 2.0."""

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from trainer.extensions.like.huggingface.arguments import DATA, MODEL, TRAINING, hf_flag, truth
from trainer.extensions.like.huggingface.training import check_files, read_booleans, summary_of, training_keys
from trainer.extensions.like.program import Meaning, Program

_TABLE: list[Flag] = [
    *MODEL,
    *DATA,
    *TRAINING,
    hf_flag("max_seq_length", int, 384, "ids of a feature", key="max_seq_length"),
    hf_flag("doc_stride", int, 128, "tokens that two spans have in common", key="doc_stride"),
    hf_flag("n_best_size", int, 20, "answers of a question in nbest_predictions.json", key="n_best_size"),
    hf_flag("max_answer_length", int, 30, "tokens of an answer at most", key="max_answer_length"),
    hf_flag("version_2_with_negative", truth, False, "SQuAD 2.0: questions without an answer"),
    hf_flag("null_score_diff_threshold", float, 0.0, "SQuAD 2.0: advantage of no answer over the best one",
            key="null_score_diff_threshold"),
]  # fmt: skip

_DATASETS = ("squad", "squad_v2")


def resolve(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    given = read_booleans(given, _TABLE)
    files = (given["train_file"], given["validation_file"], given["test_file"])
    name = given["dataset_name"]
    if name is None and not any(files):
        raise UsageError("Need either a dataset name or a training/validation file/test_file.")
    dataset = name and name.rpartition("/")[2]
    if name is not None and dataset not in _DATASETS:
        raise UsageError(f"dataset_name {name}: this trainer has {' and '.join(_DATASETS)}")
    check_files(given, needed=name is None)
    warnings = [
        "the program's doc_stride is what two spans have in common, here it is the way from one to the next"
    ]
    if name is not None:
        warnings.append(
            f"the dataset {name} is not downloaded: append -- --data-dir DIR, with its files in DIR"
        )
    keys = training_keys(given, _TABLE, warnings)
    keys |= {
        "task": "squad",
        "version_2_with_negative": given["version_2_with_negative"] or dataset == "squad_v2",
    }
    return Meaning(summary=summary_of("squad", given, keys), phases=[keys], warnings=warnings)


PROGRAM = Program(
    name="huggingface/run_qa.py",
    title="Hugging Face run_qa.py",
    source="huggingface/transformers 4.5 to 4.57, examples/pytorch/question-answering/run_qa.py",
    commands={"": _TABLE},
    resolve=resolve,
    published=(
        "--model_name_or_path bert-base-uncased --dataset_name squad --do_train --do_eval "
        "--per_device_train_batch_size 12 --learning_rate 3e-5 --num_train_epochs 2 --max_seq_length 384 "
        "--doc_stride 128 --output_dir /tmp/debug_squad/",
    ),
)

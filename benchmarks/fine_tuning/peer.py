"""Program that makes one fine-tuning run with transformers' model and Trainer.

    python -m benchmarks.fine_tuning.peer TASK --weights DIR --train-file FILE --eval-file FILE --seed N \\
        --output-dir DIR

It writes predictions for the evaluation file. Weights, files and settings are the benchmark's, and the
predictions have the same file name as those of this project's command. Each batch is padded to its longest
example, which changes the time but not the result.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.fine_tuning.peer_answers import find_answer_texts, read_squad_features
from benchmarks.fine_tuning.task import TASKS, BenchmarkTask, TaskData
from trainer.tasks.classification.presets import TASKS as TABLES
from trainer.tasks.classification.reading import convert_labels, read_pairs
from trainer.tasks.data_file import read_file

EVALUATED = 32  # number of examples per batch in an evaluation


def read_pair_features(path: Path, tokenizer: Any, task: BenchmarkTask) -> list[dict[str, Any]]:
    """Return the features of a table of sentence pairs: their ids without padding, and their labels."""
    table = TABLES[task.name]
    pairs = read_pairs(read_file(str(path)), table).pairs
    firsts, seconds = [pair.first for pair in pairs], [str(pair.second) for pair in pairs]
    found = tokenizer(firsts, seconds, truncation=True, max_length=task.length)
    return [
        {**{name: found[name][number] for name in found}, "labels": int(label)}
        for number, label in enumerate(convert_labels(pairs, table))
    ]


def make_model(task: BenchmarkTask, weights: Path, seed: int) -> transformers.PreTrainedModel:
    """Return the encoder with a new head for the task. The head's first weights are drawn with the seed."""
    transformers.set_seed(seed)
    if task.is_squad:
        return transformers.BertForQuestionAnswering.from_pretrained(weights, dtype=torch.float32)
    return transformers.BertForSequenceClassification.from_pretrained(weights, dtype=torch.float32)


def make_trainer(
    task: BenchmarkTask,
    model: transformers.PreTrainedModel,
    tokenizer: Any,
    features: Sequence[dict[str, Any]],
    output_dir: Path,
    *,
    seed: int = 1,
    padded: bool = False,
    shuffled: bool = True,
    callbacks: Sequence[transformers.TrainerCallback] = (),
) -> transformers.Trainer:
    """Return transformers' Trainer with the task's settings, on one processor.

    padded: True to pad all batches to the task's greatest length. False to pad each to its longest example.
    shuffled: False to train on the examples in the order of the file.
    """
    arguments = transformers.TrainingArguments(
        output_dir=str(output_dir),
        seed=seed,
        num_train_epochs=task.epochs,
        per_device_train_batch_size=task.batch_size,
        per_device_eval_batch_size=EVALUATED,
        learning_rate=task.rate,
        warmup_steps=task.warmup,  # transformers treats a value below 1 as a share of all steps
        lr_scheduler_type="linear",
        weight_decay=0.0,
        max_grad_norm=1.0,
        train_sampling_strategy="random" if shuffled else "sequential",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    collator = transformers.DataCollatorWithPadding(
        tokenizer, padding="max_length" if padded else "longest", max_length=task.length
    )
    return transformers.Trainer(
        model, arguments, data_collator=collator, train_dataset=features, callbacks=list(callbacks)
    )


def fine_tune(task: BenchmarkTask, data: TaskData, seed: int, output_dir: Path) -> None:
    """Train a model on the task, predict the labels or answers of the evaluation file, and write them to a
    file.
    """
    output_dir.mkdir(parents=True, exist_ok=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(data.weights)
    model = make_model(task, data.weights, seed)
    if task.is_squad:
        features, _ = read_squad_features(data.train, tokenizer, task)
        evaluated, spans = read_squad_features(data.evaluation, tokenizer, task)
    else:
        features = read_pair_features(data.train, tokenizer, task)
        evaluated = read_pair_features(data.evaluation, tokenizer, task)
    trainer = make_trainer(task, model, tokenizer, features, output_dir, seed=seed)
    trainer.train()
    logits = trainer.predict(evaluated).predictions
    if task.is_squad:
        texts = find_answer_texts(data.evaluation, spans, *logits[:2])
        (output_dir / "predictions.json").write_text(json.dumps(texts), encoding="utf-8")
    else:
        labels = "".join(f"{number}\n" for number in logits.argmax(1).tolist())
        (output_dir / "predictions.tsv").write_text(labels, encoding="utf-8")


def main() -> None:
    """Make the run that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    for name in ("--weights", "--train-file", "--eval-file", "--output-dir"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    data = TaskData(weights=given.weights, train=given.train_file, evaluation=given.eval_file)
    fine_tune(TASKS[given.task], data, given.seed, given.output_dir)


if __name__ == "__main__":
    main()

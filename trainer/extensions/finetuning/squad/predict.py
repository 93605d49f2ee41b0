"""The answer of a fine-tuned model to one question about a text."""

import json
from argparse import Namespace

import numpy as np
import torch

from bertdata.errors import InputError, MissingInputError, UsageError
from bertdata.io import storage
from bertdata.io.terminal import say, say_error
from trainer.data.single import single_sequence
from trainer.extensions.finetuning.labelled_text import decode_text
from trainer.extensions.finetuning.squad.answers import best_logits, predict_answers
from trainer.extensions.finetuning.squad.data import squad_settings
from trainer.extensions.finetuning.squad.features import make_features
from trainer.extensions.finetuning.squad.reading import parse_squad
from trainer.extensions.finetuning.squad.task import BertForQuestionAnswering
from trainer.extensions.finetuning.task_files import feature_length
from trainer.run.predict_command import refuse, single_text
from trainer.run.trained_model import Trained

_THE_TEXT = "the text"


def print_answer(given: Namespace, opened: Trained) -> None:
    """Print the answer, or an empty line and a message where the text holds none."""
    refuse(given, ("num", "labels"))
    single_text(given)
    if given.context is None:
        raise UsageError(
            f"{given.model}: the task squad answers from a text: give it, or its file, by --context"
        )
    name, context = _find_context(given.context)
    if name == _THE_TEXT:
        say_error("trainer: --context names no file: it is taken as the text itself")
    line = _answer_line(given, opened, name, context)
    say(line)
    if not line:
        say_error(f"trainer: {name}: holds no answer to the question")


def _find_context(given: str) -> tuple[str, str]:
    """The name and text of a file of UTF-8, or the given text itself where it is no file's name.

    MissingInputError for one word that names no file: a misspelt name must not be answered from.
    """
    if storage.exists(given):
        return given, decode_text(storage.read_bytes(given), given, "a text in UTF-8")
    if len(given.split()) > 1:
        return _THE_TEXT, given
    raise MissingInputError(f"{given}: no such file; a text is taken as it is where it has several words")


def _answer_line(given: Namespace, opened: Trained, name: str, context: str) -> str:
    """The answer in one line, by the run's own settings. As JSON it has its probability among the best.

    It is empty where the run allows questions without an answer (SQuAD 2.0) and finds none.
    """
    model = BertForQuestionAnswering(opened.shape).eval()
    opened.fill(model, "qa_outputs.", "has no head for answers; fine-tune it with --task squad")
    config = opened.config.changed(task=given.task, lower_case=opened.lower_case)
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    entry = {"id": "question", "question": single_text(given), "answers": []}
    data = {"data": [{"paragraphs": [{"context": context, "qas": [entry]}]}]}
    asked = parse_squad(json.dumps(data).encode(), name, training=False, negatives=False)
    settings = squad_settings(config, length, training=False)
    features = make_features(asked.questions, opened.tokenizer, settings)
    if not features:
        raise InputError(f"{name}: holds no words")
    logits = np.full((len(features), length, 2), np.finfo(np.float32).min, np.float32)
    with torch.no_grad():
        for row, feature in enumerate(features):
            batch = single_sequence(feature.ids(opened.vocabulary), first_length=feature.document)
            logits[row, : feature.length] = model(batch).numpy()
    best = best_logits(logits, config.finetuning.n_best_size)
    predicted = predict_answers(asked.questions, features, best, opened.vocabulary, config.finetuning)
    found = predicted["question"]
    if not given.json:
        return found.answer
    probability = next(probability for scored, probability in found.n_best if scored.text == found.answer)
    return json.dumps({"answer": found.answer, "probability": probability}, ensure_ascii=False)

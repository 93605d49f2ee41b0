"""The answer to one question about a text, by a model that was fine-tuned on SQuAD."""

import json
from typing import NamedTuple

import numpy as np
import torch

from bertdata.config.dialects import find_dialect
from bertdata.errors import DataError, InputError, MissingInputError
from bertdata.io import storage
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.checkpoint.filling import fill_model
from trainer.config.finetuning import SQUAD
from trainer.data.single import single_sequence
from trainer.extensions.finetuning.labelled_text import decode_text
from trainer.extensions.finetuning.models import BertForQuestionAnswering
from trainer.extensions.finetuning.squad.answers import predict_answers
from trainer.extensions.finetuning.squad.features import make_features
from trainer.extensions.finetuning.squad.reading import parse_squad
from trainer.extensions.finetuning.squad.task import answer_settings, squad_settings
from trainer.extensions.finetuning.task_files import feature_length
from trainer.run.trained import Trained

_DIALECT = "google"
_HEAD = "qa_outputs."


class GivenText(NamedTuple):
    """The text that an answer is in; name: the file that it was read from, or what it is called."""

    text: str
    name: str


THE_TEXT = "the text"


def find_context(given: str) -> GivenText:
    """The text of a file of UTF-8, or the given text itself where it names no file and has several words.

    MissingInputError for one word that names no file: a misspelt name must not be answered from.
    """
    if len(given.split()) > 1 and not storage.exists(given):
        return GivenText(given, THE_TEXT)
    if not storage.exists(given):
        raise MissingInputError(f"{given}: no such file; a text is taken as it is where it has several words")
    return GivenText(decode_text(storage.read_bytes(given), given, "a text in UTF-8"), given)


def answer_line(opened: Trained, question: str, context: GivenText, *, as_json: bool) -> str:
    """The answer in one line, by the run's own settings; as JSON with its probability among the best.

    The answer is empty where the run knows questions without one (SQuAD 2.0)
    and this is such. DataError for a model without SQuAD's head.
    """
    model = BertForQuestionAnswering(opened.shape).eval()
    missing = fill_model(model, opened.checkpoint)
    if any(name.startswith(_HEAD) for name in missing):
        raise DataError(f"{opened.source}: has no head for answers; fine-tune it with --task squad")
    config = opened.config.changed(task=SQUAD, lower_case=opened.lower_case)
    length = min(feature_length(config), opened.shape.max_position_embeddings)
    settings = squad_settings(config, length, training=False)
    asked = parse_squad(_as_squad(question, context.text), context.name, training=False, negatives=False)
    questions = asked.questions
    tokenizer = WordPieceTokenizer(opened.vocabulary, find_dialect(_DIALECT), lower_case=opened.lower_case)
    features = make_features(questions, tokenizer, settings)
    if not features:
        raise InputError(f"{context.name}: holds no words")
    logits = np.full((len(features), length, 2), np.finfo(np.float32).min, np.float32)
    with torch.no_grad():
        for row, feature in enumerate(features):
            batch = single_sequence(feature.ids(opened.vocabulary), first_length=feature.document)
            logits[row, : feature.length] = model(batch).numpy()
    found = predict_answers(
        questions, features, logits[:, :, 0], logits[:, :, 1], opened.vocabulary, answer_settings(config)
    )[questions[0].id]
    if not as_json:
        return found.answer
    share = next(share for scored, share in found.n_best if scored.text == found.answer)
    return json.dumps({"answer": found.answer, "probability": share}, ensure_ascii=False)


def _as_squad(question: str, context: str) -> bytes:
    """SQuAD's JSON of one question about the text."""
    entry = {"id": "question", "question": question, "answers": []}
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [entry]}]}]}).encode()

"""predictions.json, nbest_predictions.json and null_odds.json as run_squad.py writes them."""

import json
from collections.abc import Mapping
from typing import Any

from bertdata.io import storage
from trainer.extensions.finetuning.squad.answers import Prediction

Predictions = Mapping[str, Prediction]


def write_predictions(directory: str, predictions: Predictions, *, negatives: bool) -> None:
    """Write the files into the directory; negatives: null_odds.json too."""
    files = {"predictions.json": predictions_json, "nbest_predictions.json": n_best_json}
    if negatives:
        files["null_odds.json"] = null_odds_json
    storage.make_directory(directory)
    for name, text in files.items():
        with storage.open_output(storage.join(directory, name)) as file:
            file.write(text(predictions).encode("ascii"))


def predictions_json(predictions: Predictions) -> str:
    """The answer of each question."""
    return _dump({name: one.answer for name, one in predictions.items()})


def n_best_json(predictions: Predictions) -> str:
    """The n best answers of each question, with probability and logits."""
    return _dump(
        {
            name: [
                {
                    "text": scored.text,
                    "probability": probability,
                    "start_logit": scored.start_logit,
                    "end_logit": scored.end_logit,
                }
                for scored, probability in one.n_best
            ]
            for name, one in predictions.items()
        }
    )


def null_odds_json(predictions: Predictions) -> str:
    """Of each question the score of no answer less that of the best answer (version 2.0)."""
    return _dump({name: one.null_odds for name, one in predictions.items()})


def _dump(value: Any) -> str:
    return json.dumps(value, indent=4) + "\n"

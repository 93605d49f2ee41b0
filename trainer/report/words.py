"""Words for the names that tables of runs use, such as ``masked_lm_accuracy``."""

_TASKS = {
    "pretraining": "pre-training: masked words and pairs of segments",
    "masked_words": "pre-training: masked words",
    "classification": "classification",
    "squad": "answers to questions",
}
_MEASURES = {
    "step": "update",
    "trained": "examples trained on",
    "examples": "examples evaluated",
    "loss": "loss",
    "step_loss": "loss of the last update",
    "mlm_loss": "loss of masked words",
    "mlm_acc": "accuracy of masked words",
    "masked_lm_loss": "loss of masked words",
    "masked_lm_accuracy": "accuracy of masked words",
    "nsp_loss": "loss of next sentences",
    "nsp_acc": "accuracy of next sentences",
    "next_sentence_loss": "loss of next sentences",
    "next_sentence_accuracy": "accuracy of next sentences",
    "label_loss": "loss of labels",
    "label_acc": "accuracy of labels",
    "label_accuracy": "accuracy of labels",
    "acc": "accuracy of labels",
    "score_loss": "squared error of scores",
    "f1": "F1",
    "acc_and_f1": "mean of accuracy and F1",
    "mcc": "Matthews correlation",
    "pearson": "Pearson correlation",
    "spearmanr": "Spearman correlation",
    "corr": "mean of both correlations",
    "exact_match": "exact match",
    "lr": "learning rate",
    "gradient_norm": "gradient norm",
}


def describe_task(name: str) -> str:
    """Return a task's name in words."""
    return _TASKS.get(name, name.replace("_", " "))


def describe_measure(column: str) -> str:
    """Return the name of a measure in words. ``column`` is its column in training.csv or evaluation.csv.

    A baseline is called the guess of its measure. Unknown columns only lose their underscores.
    """
    if column == "most_frequent_accuracy":
        return f"guess: {_MEASURES['masked_lm_accuracy']}"
    if column.startswith("guess_"):
        return f"guess: {describe_measure(column.removeprefix('guess_'))}"
    return _MEASURES.get(column, column.replace("_", " "))

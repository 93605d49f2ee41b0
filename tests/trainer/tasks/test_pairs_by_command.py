"""Pairs of texts by the command line on each kind of model: learned, predicted, exported."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import bertdata
from tests.support.fine_tuning import finetune_words, mrpc_files
from tests.support.tokenizer_files import train_bpe, train_wordpiece
from tests.support.training_runs import Trainer, words
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.source import open_checkpoint
from trainer.data.single import make_single_batch
from trainer.tasks.heads import make_classifier

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.thorough]

FIRST, SECOND = "The harbour is old .", "It is new ."
SPECIAL = {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>", "unk": "<unk>"}
SPECIAL_IDS = (("[CLS]", 0), ("[SEP]", 2))
KEYS = {
    "bert": {"pad": "pad"},
    "roberta": {"bos": "cls", "eos": "sep", "pad": "pad"},
    "modernbert": {"bos": "cls", "eos": "sep", "cls": "cls", "sep": "sep", "pad": "pad"},
}
"""The keys of the originals' config.json: of each token's id the role of the token."""


def with_names(path: Path) -> Path:
    """The tokenizer.json in ModernBERT's layout: its names of special tokens, a template with one [SEP]."""
    text = path.read_text(encoding="utf-8")
    for role, token in SPECIAL.items():
        text = text.replace(f'"{token}"', f'"[{role.upper()}]"')
    value = json.loads(text)
    cls, sep = ({"SpecialToken": {"id": f"[{role}]", "type_id": 0}} for role in ("CLS", "SEP"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    tokens = {
        token: {"id": token, "ids": [n], "tokens": [token]} for token, n in (("[CLS]", 0), ("[SEP]", 2))
    }
    value["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [cls, first, sep],
        "pair": [cls, first, sep, second, sep],
        "special_tokens": tokens,
    }
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KEYS)
def test_a_pair_has_the_label_that_transformers_gives_it(
    kind: str, corpus: list[Path], trainer: Trainer, tmp_path: Path
) -> None:
    train_tokenizer = train_wordpiece if kind == "bert" else train_bpe
    tokenizer = train_tokenizer(tmp_path / "own.json", corpus[0].read_text(encoding="utf-8").splitlines())
    if kind == "modernbert":
        with_names(tokenizer)
    sizes: dict[str, Any] = {"max_seq_length": 48, "max_predictions_per_seq": 7, "dupe_factor": 1}
    data, start = tmp_path / "data", tmp_path / "start"
    bertdata.create(corpus[:1], data, tokenizer=tokenizer, workers=1, objective="mlm", **sizes)
    assert trainer(*words(data, start, "--steps=3", "--no-logs", f"--model-type={kind}")).status == 0
    folder, run, form = mrpc_files(tmp_path / "mrpc"), tmp_path / "run", tmp_path / "form"
    done = trainer(*finetune_words("mrpc", start, run, f"--data-dir={folder}", "--num-train-epochs=2"))
    assert done.status == 0, done.err
    told = json.loads(trainer("predict", run, FIRST, SECOND, "--json").out)
    assert trainer("convert", run, form).status == 0
    model = transformers.AutoModelForSequenceClassification.from_pretrained(form).eval()
    theirs = transformers.AutoTokenizer.from_pretrained(form)
    batch = theirs(FIRST, SECOND, return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch).logits[0]
    assert told["label"] == str(int(logits.argmax()))
    assert list(told["probabilities"].values()) == pytest.approx(logits.softmax(0).tolist(), abs=1e-5)
    ids = batch["input_ids"][0].tolist()
    assert ids.count(theirs.sep_token_id) == (3 if kind == "roberta" else 2)
    with torch.no_grad():
        ours = own_logits(form, ids, ids.index(theirs.sep_token_id) + 1)
    torch.testing.assert_close(ours, logits, rtol=0, atol=1e-5)
    found = {key: getattr(model.config, f"{key}_token_id") for key in KEYS[kind]}
    assert found == {key: getattr(theirs, f"{role}_token_id") for key, role in KEYS[kind].items()}
    again = json.loads(trainer("predict", form, FIRST, SECOND, "--task=mrpc", "--json").out)
    assert again == told


def own_logits(form: Path, ids: list[int], first_length: int) -> torch.Tensor:
    """The logits of the exported model by this trainer."""
    checkpoint = open_checkpoint(str(form))
    model = make_classifier(checkpoint.expect_config(), 2).eval()
    assert not [name for name in fill_model(model, checkpoint) if name.startswith("classifier.")]
    return model(make_single_batch(ids, first_length=first_length))[0]

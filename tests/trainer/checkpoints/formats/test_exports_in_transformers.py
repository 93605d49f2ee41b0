"""Exports are read and run by transformers, from 4.48 on, as this trainer reads and runs them."""

import json
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer

from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.tokenizer_json import find_model_tokenizer, find_tokenizer_json
from tests.support.exported_models import (
    HEADS,
    SHAPES,
    TEXTS,
    Exported,
    differences,
    export,
    make_tokenizers,
)
from tests.support.older_transformers import run_with, versions_to_try
from tests.support.training_runs import Trainer
from tests.support.transformers_reading import read_exports
from trainer.checkpoints.tokenizer import is_same_tokenizer

MODEL_TYPES = ("bert", "roberta", "modernbert")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def tokenizers(place: Path) -> dict[str, TokenizerFile]:
    return make_tokenizers(place)


def choose(tokenizers: Iterable[str], *, thorough: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the combinations of a tokeniser, a shape and a head that are exported."""
    for file, shape, head in product(tokenizers, SHAPES, HEADS):
        is_main = file in ("vocab", "bpe")
        if head == "words":
            chosen = thorough or is_main or shape == "bert"
        else:
            chosen = is_main and (thorough or (file == "bpe" and shape in MODEL_TYPES))
        if chosen:
            yield file, shape, head


def export_all(place: Path, files: dict[str, TokenizerFile], *, thorough: bool) -> dict[str, Exported]:
    """Export the combinations, and return them by name: "roberta-words-bpe"."""
    return {
        f"{shape}-{head}-{file}": export(place / file, files[file], shape, head)
        for file, shape, head in choose(files, thorough=thorough)
    }


@pytest.fixture(scope="module")
def exported(place: Path, tokenizers: dict[str, TokenizerFile]) -> dict[str, Exported]:
    return export_all(place / "some", tokenizers, thorough=False)


@pytest.fixture(scope="module")
def all_exported(place: Path, tokenizers: dict[str, TokenizerFile]) -> dict[str, Exported]:
    """Every shape with every tokeniser; and every head with a vocabulary and a byte-level BPE."""
    return export_all(place / "all", tokenizers, thorough=True)


def test_texts_and_pairs_have_the_same_ids_segments_and_answers(exported: dict[str, Exported]) -> None:
    found = read_exports(TEXTS, [str(one.directory) for one in exported.values()])
    assert differences(exported.values(), found) == []
    assert len(found) == len(exported)


@pytest.mark.thorough
@pytest.mark.parametrize("version", versions_to_try())
def test_older_releases_give_the_same(version: str, all_exported: dict[str, Exported]) -> None:
    directories = [one.directory for one in all_exported.values()]
    found = run_with(version, "tests.support.transformers_reading", json.dumps(TEXTS), *directories)
    assert differences(all_exported.values(), found) == []
    missing = {name for name, one in all_exported.items() if str(one.directory) not in found}
    assert all(name.startswith("modernbert-answers") for name in missing)


PREFIXED = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], add_prefix_space=True)
print(json.dumps(tokenizer(["Jakob"], is_split_into_words=True)["input_ids"]))
"""
"""A prefix space asked for, as the classification of a text's words asks."""


def test_a_roberta_takes_a_prefix_space_that_is_asked_for(exported: dict[str, Exported]) -> None:
    one = exported["roberta-words-bpe"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(one.directory, add_prefix_space=True)
    expected, _ = one.sequence([" Jakob"])
    assert tokenizer(["Jakob"], is_split_into_words=True)["input_ids"] == expected
    assert expected != one.sequence(["Jakob"])[0]


@pytest.mark.thorough
@pytest.mark.parametrize("version", versions_to_try())
def test_older_releases_take_a_prefix_space_too(version: str, exported: dict[str, Exported]) -> None:
    one = exported["roberta-words-bpe"]
    assert run_with(version, PREFIXED, one.directory) == one.sequence([" Jakob"])[0]


def test_a_robertas_bias_is_there_under_both_names(exported: dict[str, Exported]) -> None:
    """transformers before 4.51 reads lm_head.decoder.bias alone, and says nothing where it is missing."""
    one = exported["roberta-words-bpe"]
    weights = load_file(one.directory / "model.safetensors")
    size = one.model.config.vocab_size
    bias = one.model.state_dict()["cls.predictions.bias"][:size]
    assert bias.any()
    assert weights["lm_head.bias"].tolist() == bias.tolist()
    assert weights["lm_head.decoder.bias"].tolist() == bias.tolist()


def test_the_library_alone_neither_cuts_nor_pads_nor_draws(
    place: Path, tokenizers: dict[str, TokenizerFile]
) -> None:
    """A published tokenizer.json may cut at 128 tokens, pad to them, and leave out merges by chance."""
    parsed = json.loads((place / "bpe.json").read_text(encoding="utf-8"))
    parsed["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    parsed["padding"] = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 1,
        "pad_type_id": 0,
        "pad_token": "<pad>",
    }
    parsed["model"]["dropout"] = 0.9
    (place / "cutting.json").write_text(json.dumps(parsed), encoding="utf-8")
    one = export(place, find_tokenizer_json(str(place / "cutting.json"), {}), "roberta")
    alone = Tokenizer.from_file(str(one.directory / "tokenizer.json"))
    for texts in TEXTS:
        assert alone.encode(*texts).ids == one.sequence(texts)[0]


def test_special_tokens_of_given_roles_are_put_around_a_text(
    place: Path, tokenizers: dict[str, TokenizerFile]
) -> None:
    file = find_tokenizer_json(str(place / "bpe.json"), {"cls": "<mask>", "sep": "<unk>"})
    one = export(place, file, "bert")
    alone = Tokenizer.from_file(str(one.directory / "tokenizer.json"))
    mask, unknown = (alone.token_to_id(token) for token in ("<mask>", "<unk>"))
    ids, segments = one.sequence(("Jakob", "lamp"))
    assert [ids[0], ids[-1]] == [mask, unknown]
    assert [alone.encode("Jakob", "lamp").ids, alone.encode("Jakob", "lamp").type_ids] == [ids, segments]


def test_an_export_with_another_template_has_the_tokeniser_of_its_data(
    exported: dict[str, Exported], tokenizers: dict[str, TokenizerFile]
) -> None:
    """Else evaluating it on data of the tokeniser would warn of ids with another meaning."""
    found = find_model_tokenizer(str(exported["bert-words-bpe"].directory))
    assert vocabulary_of(found).md5 != vocabulary_of(tokenizers["bpe"]).md5
    assert is_same_tokenizer(found, tokenizers["bpe"])
    assert not is_same_tokenizer(found, tokenizers["prefix"])
    assert not is_same_tokenizer(found, tokenizers["vocab"])


@pytest.fixture(scope="module")
def padded(place: Path, tokenizers: dict[str, TokenizerFile]) -> Exported:
    """A model with 34 rows more than its tokeniser has tokens."""
    size = vocabulary_of(tokenizers["bpe"]).size
    return export(place / "padded", tokenizers["bpe"], "roberta", vocab_size=size + 34)


def test_ids_without_a_token_are_never_guessed(padded: Exported, trainer: Trainer) -> None:
    """Probabilities are the pipeline's, which counts those ids and would offer them."""
    size = padded.tokenizer.vocabulary.size
    outcome = trainer("predict", padded.directory, "Jakob saw the <mask>.", "--num=600", "--json")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(padded.directory)
    model = transformers.AutoModelForMaskedLM.from_pretrained(padded.directory).eval()
    batch = tokenizer("Jakob saw the <mask>.", return_tensors="pt")
    with torch.no_grad():
        shares = model(**batch).logits[0].softmax(1)[batch["input_ids"][0] == tokenizer.mask_token_id][0]
    assert shares[size:].max() > shares[:size].median()  # the pipeline would offer them
    assert len(found) == size
    expected = shares[:size].sort(descending=True).values
    assert [share for _, share in found] == pytest.approx(expected.tolist(), rel=1e-3)


def test_a_padded_vocabulary_is_told_and_comes_back_whole(
    padded: Exported, trainer: Trainer, tmp_path: Path
) -> None:
    size = padded.tokenizer.vocabulary.size
    outcome = trainer("convert", padded.directory, tmp_path / "own")
    assert outcome.status == 0, outcome.err
    outcome = trainer("convert", padded.directory, tmp_path / "again", "--to=huggingface")
    assert f"34 of its {size + 34} ids have no token" in outcome.out
    weights, again = (load_file(one / "model.safetensors") for one in (padded.directory, tmp_path / "again"))
    assert weights.keys() == again.keys()
    assert all(torch.equal(value, again[name]) for name, value in weights.items())

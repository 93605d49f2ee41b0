"""Runs on data of a tokenizer.json: kept, exported, filled by transformers, and other programs' models."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer

import bertdata as face
from bertdata.tokens.kept_files import make_tokenizer_files
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.tokenizer_files import TRAINERS, train_bpe
from tests.support.training_runs import Trainer, refuse, start_workers, words
from trainer.__main__ import main
from trainer.config.settings import Config
from trainer.data.dynamic_masks import UnmaskedData
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training
from trainer.run.evaluation_warnings import find_training_warnings

ROBERTA = ("--model-type=roberta", "--type-vocab-size=1")


def make_data(corpus: list[Path], place: Path, kind: str, size: int = 2000, *, masks: bool = True) -> Path:
    """A tokenizer.json of the kind trained on the corpus, and a dataset of masked words made with it."""
    lines = [line for part in corpus for line in part.read_text().splitlines()]
    file = TRAINERS[kind](place / f"{kind}-{size}.json", lines, size)
    output = place / f"set-{kind}-{size}"
    sizes = {"max_seq_length": 48, "max_predictions_per_seq": 7, "dupe_factor": 1}
    face.create(corpus[:1], output, tokenizer=file, workers=1, objective="mlm", masks=masks, **sizes)
    return output


@pytest.fixture(scope="module")
def place(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its export for a tokeniser of each kind. Their data are gone."""
    folder = tmp_path_factory.mktemp("any")
    for kind in TRAINERS:
        data, run = make_data(corpus, folder, kind), folder / f"run-{kind}"
        more = ROBERTA if kind == "bpe" else ()
        assert main(words(data, run, "--steps=2", "--warmup=1", "--no-logs", *more)) == 0
        shutil.rmtree(data)
        assert main(["convert", str(run), str(folder / f"form-{kind}")]) == 0
    return folder


def id_of(token: str, file: Path) -> int:
    return int(Tokenizer.from_file(str(file)).token_to_id(token))


def compare_words(found: list[str], expected: list[str], kind: str = "bpe") -> None:
    """Assert the pipeline's words. It has one sign for all parts of characters, and no blank of a ▁."""
    for word, wanted in zip(found, expected, strict=True):
        if "\ufffd" not in wanted:
            plain = wanted.replace("▁", " ").strip()
            assert word == wanted if kind == "bpe" else word.strip() == plain


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_run_keeps_its_tokeniser(kind: str, place: Path) -> None:
    run = place / f"run-{kind}"
    assert (run / "tokenizer.json").read_bytes() == (place / f"{kind}-2000.json").read_bytes()
    assert not (run / "vocab.txt").exists()
    config = json.loads((run / "tokenizer_config.json").read_text())
    names = {"bpe": "<mask>", "unigram": "[MASK]", "wordpiece": "[MASK]"}
    assert config["mask_token"] == names[kind]
    assert "do_lower_case" not in config


@pytest.mark.parametrize("kind", TRAINERS)
def test_transformers_fills_masks_as_predict_does(kind: str, place: Path, trainer: Trainer) -> None:
    form = place / f"form-{kind}"
    tokenizer = transformers.AutoTokenizer.from_pretrained(form)
    model = transformers.AutoModelForMaskedLM.from_pretrained(form).eval()
    assert model.config.pad_token_id == tokenizer.pad_token_id
    text = f"The {tokenizer.mask_token} of the old city, and {tokenizer.mask_token}."
    fill = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=6)
    expected = [[(one["token_str"], one["score"]) for one in guesses] for guesses in fill(text)]
    for source in (place / f"run-{kind}", form):
        for written in (text, text.replace(tokenizer.mask_token, "[MASK]")):
            outcome = trainer("predict", source, written, "--num=6", "--json")
            assert outcome.status == 0, outcome.err
            found = json.loads(outcome.out)
            assert [[share for _, share in one] for one in found] == [
                pytest.approx([share for _, share in one], rel=1e-3) for one in expected
            ]
            for guesses, wanted in zip(found, expected, strict=True):
                compare_words([word for word, _ in guesses], [word for word, _ in wanted], kind)


def test_an_export_tells_roles_and_positions(place: Path) -> None:
    form = place / "form-bpe"
    config = json.loads((form / "config.json").read_text())
    assert (config["model_type"], config["pad_token_id"]) == ("roberta", 1)
    assert config["architectures"] == ["RobertaForMaskedLM"]
    assert config["max_position_embeddings"] == 512 + 2
    special = json.loads((form / "special_tokens_map.json").read_text())
    assert special == {
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
        "unk_token": "<unk>",
    }
    assert (form / "tokenizer.json").read_bytes() == (place / "bpe-2000.json").read_bytes()
    tokenizer = transformers.AutoTokenizer.from_pretrained(form)
    assert tokenizer.model_max_length == 48  # of the examples
    assert tokenizer("One.")["input_ids"][:1] == [0]


def test_an_export_puts_special_tokens_around_a_text_where_the_file_does_not(
    corpus: list[Path], tmp_path: Path
) -> None:
    from trainer.checkpoints.formats.huggingface_tokenizer import make_tokenizer_json

    train_bpe(tmp_path / "own.json", corpus[0].read_text().splitlines())
    parsed = json.loads((tmp_path / "own.json").read_text())
    for own in (
        None,
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
    ):
        (tmp_path / "own.json").write_text(json.dumps({**parsed, "post_processor": own}))
        file = find_tokenizer_json(str(tmp_path / "own.json"), {})
        exported = Tokenizer.from_str(make_tokenizer_json(file).decode())
        bare = [Tokenizer.from_file(file.path).encode(text).ids for text in ("One.", "Two")]
        assert exported.encode("One.").ids == [0, *bare[0], 2]
        pair = exported.encode("One.", "Two")
        assert pair.ids == [0, *bare[0], 2, *bare[1], 2]
        assert pair.type_ids == [0] * (len(bare[0]) + 2) + [1] * (len(bare[1]) + 1)


def test_a_roberta_of_transformers_is_filled_as_it_fills_itself(
    corpus: list[Path], tmp_path: Path, trainer: Trainer
) -> None:
    train_bpe(tmp_path / "own.json", corpus[0].read_text().splitlines(), 500)
    special = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "own.json"), mask_token="<mask>", **special
    )
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=66, type_vocab_size=1, **shape
    )
    torch.manual_seed(3)
    model = transformers.RobertaForMaskedLM(config).eval()
    model.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    text = "Where is the <mask> of it?"
    fill = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=4)
    expected = fill(text)
    outcome = trainer("predict", tmp_path / "theirs", text, "--num=4", "--json")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)
    compare_words([word for word, _ in found], [one["token_str"] for one in expected])
    assert [share for _, share in found] == pytest.approx([one["score"] for one in expected], rel=1e-3)


def test_evaluation_data_of_another_tokeniser_are_named(
    corpus: list[Path], training_set: Path, tmp_path: Path
) -> None:
    one, other = make_data(corpus, tmp_path, "bpe"), make_data(corpus, tmp_path, "bpe", 500)

    def warned(train: Path, evaluation: Path) -> list[str]:
        return find_training_warnings(Config.of(train_data=str(train), eval_data=str(evaluation)))

    assert warned(one, one) == []
    md5s = [json.loads((data / "manifest.json").read_text())["settings"]["tokenizer"]["vocabulary"]["md5"]
            for data in (one, other)]  # fmt: skip
    (line,) = warned(one, other)
    assert f"another tokeniser (md5 {md5s[1]}) than {one} (md5 {md5s[0]})" in line
    (line,) = warned(one, training_set)
    assert "another tokeniser" in line
    assert "case" not in line


def test_wrong_input_is_one_line(place: Path, trainer: Trainer) -> None:
    run = place / "run-bpe"
    refuse(trainer("predict", run, "no mask here"), 2, "the text has no [MASK]")
    refuse(trainer("predict", run, "a <mask>", "--lower-case"), 2, "says itself how text is read")
    other, own = (f"--vocab={place / f'{kind}-2000.json'}" for kind in ("wordpiece", "bpe"))
    refuse(trainer("predict", run, "a <mask>", other), 2, "another tokeniser than the run was trained with")
    assert trainer("predict", run, "a <mask>", own).status == 0
    bare = shutil.copytree(place / "form-bpe", place / "bare")
    parsed = json.loads((bare / "tokenizer.json").read_text())
    for item in parsed["added_tokens"]:
        item["content"] = item["content"].replace("<mask>", "<blank>")
    (bare / "tokenizer.json").write_text(json.dumps(parsed))
    as_it_is = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (bare / "tokenizer_config.json").write_text(json.dumps(as_it_is))
    (bare / "special_tokens_map.json").unlink()
    refuse(trainer("predict", bare, "a [MASK]"), 2, "names no mask token", "mask_token in its directory's")
    (bare / "tokenizer_config.json").write_text(json.dumps(as_it_is | {"mask_token": "<blank>"}))
    assert trainer("predict", bare, "a [MASK]").status == 0
    (bare / "tokenizer.json").write_text("[1]")
    refuse(trainer("predict", bare, "a [MASK]"), 1, "tokenizer.json: is JSON, but no object")


def test_other_forms_get_the_tokeniser_as_a_run_has_it(place: Path, tmp_path: Path, trainer: Trainer) -> None:
    assert trainer("convert", place / "run-wordpiece", tmp_path / "tf", "--to=nvidia").status == 0
    file = find_tokenizer_json(str(place / "run-wordpiece"), {})
    for name, data in make_tokenizer_files(file).items():
        assert (tmp_path / "tf" / name).read_bytes() == data


@pytest.mark.thorough
@pytest.mark.parametrize("whole_words", [False, True])
def test_masks_at_load_leave_special_ids_and_pad_by_the_role(
    whole_words: bool, corpus: list[Path], tmp_path: Path
) -> None:
    data = make_data(corpus, tmp_path, "bpe", masks=False)
    config = Config.of(train_data=str(data), masking="dynamic", whole_word_mask=whole_words)
    opened = prepare_for_training(config, open_configured(config, str(data)))
    assert isinstance(opened, UnmaskedData)
    rows = Rows(opened, opened)
    loader = Loader(rows, form=make_form(rows, batch_size=8, padded=True), batch_size=8)
    mask, special = id_of("<mask>", tmp_path / "bpe-2000.json"), [0, 1, 2, 3]
    masked = 0
    for _ in range(5):
        for batch in next(loader).batches:
            assert set(batch.input_ids[batch.attention_mask == 0].tolist()) <= {1}
            used = batch.masked_lm_weights > 0
            assert not set(batch.masked_lm_ids[used].tolist()) & {*special, mask}
            masked += int((batch.input_ids == mask).sum())
            firsts = batch.input_ids[:, 0].tolist()
            assert set(firsts) == {0}
    loader.close()
    assert masked > 20


@pytest.mark.thorough
def test_two_workers_train_on_masks_drawn_at_load(corpus: list[Path], tmp_path: Path) -> None:
    data, run = make_data(corpus, tmp_path, "bpe", masks=False), tmp_path / "run"
    more = ("--masking=dynamic", "--steps=4", "--no-logs", *ROBERTA)
    outcome = start_workers("torchrun", 2, *words(data, run, *more))
    assert outcome.status == 0, outcome.err
    assert "masked anew in each epoch" in outcome.err
    assert (run / "tokenizer.json").read_bytes() == (tmp_path / "bpe-2000.json").read_bytes()
    assert main(["predict", str(run), "The <mask> of it."]) == 0

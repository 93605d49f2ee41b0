"""What --vocab, --model-config and --train-data named is in the record of an export, which is made again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bertdata
from bertdata.errors import InputError, ManifestError, MissingInputError
from bertdata.lineages.step import Step
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from tests.support.bare_weights import list_md5s, make_bare_weights, rename_copies
from tests.support.exported_models import export, make_tokenizers
from tests.support.lineages import compute_md5, edit_json, run_commands
from tests.support.made_checkpoints import made
from trainer.checkpoints.formats.convert import convert
from trainer.checkpoints.formats.kinds import WRITERS

pytestmark = pytest.mark.usefixtures("rebuild_in_process")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TokenizerFile]:
    return make_tokenizers(tmp_path_factory.mktemp("tokenisers"))


@pytest.fixture(scope="module")
def bare(tokenizers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with ``weights/model.safetensors``, and in ``model`` the files that belong to it."""
    place = tmp_path_factory.mktemp("bare")
    return {name: make_bare_weights(place, tokenizers[name], shape) for name, shape in SHAPES.items()}


SHAPES = {"vocab": "bert", "bpe": "roberta"}


def convert_bare(bare: Path, target: Path, **flags: Any) -> Step:
    """Convert weights that lie alone. Return the step of the export."""
    flags = {"to": "huggingface", "model_config": str(bare / "model/config.json"), **flags}
    convert(str(bare / "weights"), str(target), **flags)
    lineage = bertdata.lineage(target)
    assert lineage.faults == []
    [step] = lineage.results
    return step


def test_a_vocabulary_and_a_model_file_are_recorded_and_found_among_the_sources(bare, tokenizers, tmp_path):
    vocab, config = Path(tokenizers["vocab"].path), bare["vocab"] / "model/config.json"
    mine = Path(shutil.copyfile(vocab, tmp_path / "mine.txt"))  # without its manifest
    step = convert_bare(bare["vocab"], tmp_path / "model", vocab=str(mine))
    assert [one.role for one in step.inputs] == ["checkpoint", "vocabulary", "model configuration"]
    assert list_md5s(step, "vocabulary") == {"mine.txt": compute_md5(vocab)}
    assert list_md5s(step, "model configuration") == {"config.json": compute_md5(config)}
    assert [one.source for one in step.inputs] == [True, True, True]
    sources = [bare["vocab"] / "weights", rename_copies([vocab, config], tmp_path / "sources")]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences
    assert (tmp_path / "again/model/vocab.txt").exists()


def test_a_source_of_an_export_that_is_missing_or_another_is_named(bare, tokenizers, tmp_path):
    config = bare["vocab"] / "model/config.json"
    convert_bare(bare["vocab"], tmp_path / "model", vocab=tokenizers["vocab"].path)
    weights = bare["vocab"] / "weights"
    with pytest.raises(MissingInputError, match="the model configuration config.json of python -m trainer"):
        bertdata.rebuild(tmp_path / "model", weights, tmp_path / "again")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_bytes(config.read_bytes() + b"\n")
    with pytest.raises(InputError, match="config.json: is not the model configuration"):
        bertdata.rebuild(tmp_path / "model", [weights, other], tmp_path / "again")


def test_a_vocabulary_that_was_trained_is_followed_to_its_texts_and_trained_again(bare, tokenizers, tmp_path):
    vocab = Path(tokenizers["vocab"].path)
    step = convert_bare(bare["vocab"], tmp_path / "model", vocab=str(vocab))
    [given] = [one for one in step.inputs if one.role == "vocabulary"]
    assert given.made_by is not None
    assert given.record == compute_md5(vocab.with_name("vocab.txt.manifest.json"))
    assert [file.md5 for file in given.made_by.inputs[0].files] == [compute_md5(vocab.with_name("text.txt"))]
    sources = [bare["vocab"] / "weights", bare["vocab"] / "model/config.json", vocab.with_name("text.txt")]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences
    assert [one.name for one in result.steps] == ["train-vocab", "export"]


def test_a_tokenizer_json_of_another_name_is_not_read_with_the_files_next_to_it(bare, tokenizers, tmp_path):
    bpe, config = Path(tokenizers["bpe"].path), bare["bpe"] / "model/config.json"
    mine = Path(shutil.copyfile(bpe, tmp_path / "mine.json"))
    step = convert_bare(bare["bpe"], tmp_path / "model", vocab=str(mine))
    assert list_md5s(step, "vocabulary") == {"mine.json": compute_md5(bpe)}
    place = tmp_path / "sources"
    place.mkdir()
    shutil.copyfile(bpe, place / "tokenizer.json")
    (place / "tokenizer_config.json").write_text(json.dumps({"pad_token": "<unk>"}), encoding="utf-8")
    sources = [bare["bpe"] / "weights", config, place]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences


@pytest.mark.parametrize("given", ["tokenizer.json", ""])
def test_all_files_of_a_tokeniser_are_recorded_and_read_together_again(bare, tmp_path, given):
    place = tmp_path / "tokeniser"
    place.mkdir()
    names = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
    for name in names:
        shutil.copyfile(bare["bpe"] / "model" / name, place / name)
    edit_json(place / "tokenizer_config.json", {"pad_token": "<unk>"})
    (place / "notes.txt").write_text("mine")
    step = convert_bare(bare["bpe"], tmp_path / "model", vocab=str(place / given))
    read = names[1:] if given else names
    role = "tokenizer.json" if given else "tokeniser"
    assert list_md5s(step, role) == {name: compute_md5(place / name) for name in read}
    sources = rename_copies([place / name for name in names], tmp_path / "sources")
    again = tmp_path / "again"
    result = bertdata.rebuild(tmp_path / "model", [bare["bpe"] / "weights", sources], again)
    assert result.is_equal, result.differences
    assert sorted(path.name for path in (again / "sources/tokeniser-1").iterdir()) == sorted(read)


def test_a_published_vocabulary_is_recorded_and_given_by_its_name(
    published_vocabulary, tmp_path, monkeypatch
):
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/bert-base-uncased").mkdir(parents=True)
    shutil.copyfile(published_vocabulary, tmp_path / "cache/bert-base-uncased/vocab.txt")
    file = VocabularyFile(path=str(published_vocabulary), dialect="google")
    bare = make_bare_weights(tmp_path, file, "bert")
    step = convert_bare(bare, tmp_path / "model", vocab="bert-base-uncased")
    assert list_md5s(step, "vocabulary") == {"bert-base-uncased": compute_md5(published_vocabulary)}
    sources = [bare / "weights", bare / "model/config.json"]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences
    assert "--vocab bert-base-uncased" in result.commands[-1]


def test_a_dataset_from_which_the_tokeniser_was_read_is_made_again(bare, tokenizers, tmp_path):
    vocab = Path(tokenizers["vocab"].path)
    text = vocab.with_name("text.txt")
    flags = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1")
    casing = ("--vocab", vocab, "--no-lower-case")
    run_commands(("create", text, "--output", tmp_path / "shards", *casing, *flags))
    step = convert_bare(bare["vocab"], tmp_path / "model", train_data=str(tmp_path / "shards"))
    [given] = [one for one in step.inputs if one.role == "training data"]
    assert given.record == compute_md5(tmp_path / "shards/manifest.json")
    assert given.made_by is not None
    assert given.made_by.name == "create"
    shutil.rmtree(tmp_path / "shards")
    sources = [bare["vocab"] / "weights", bare["vocab"] / "model/config.json", text]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences
    assert [one.name for one in result.steps] == ["train-vocab", "create", "export"]


def test_the_format_that_was_named_is_named_again(tmp_path):
    place = tmp_path / "source"
    place.mkdir()
    for form in ("tf1", "huggingface"):
        WRITERS[form](made(), str(place))
    convert(str(place), str(tmp_path / "model"), kind="huggingface", to="tf2")
    result = bertdata.rebuild(tmp_path / "model", place, tmp_path / "again")
    assert result.is_equal, result.differences
    assert "--from huggingface" in result.commands[-1]


@pytest.mark.parametrize(
    ("flags", "has_inputs"),
    [({}, False), ({"model_config": "missing.json"}, False), ({"vocab": "own"}, True)],
)
def test_only_files_that_were_read_are_recorded(tokenizers, tmp_path, flags, has_inputs):
    """A run says itself what model it is, so --model-config has no effect."""
    export(tmp_path, tokenizers["vocab"], "bert")
    [run] = tmp_path.glob("*-run")
    if "vocab" in flags:
        flags = {"vocab": str(run / "vocab.txt")}
    convert(str(run), str(tmp_path / "model"), **flags)
    record = json.loads((tmp_path / "model/lineage.json").read_text(encoding="utf-8"))
    assert ("inputs" in record) == has_inputs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"inputs/0/files/0/name": "../vocab.txt"},
            "lists '../vocab.txt', expected a file in its own directory",
        ),
        ({"inputs/0/files": []}, "inputs: vocabulary: lists 0 files, expected 1"),
        ({"inputs/0/role": "training data"}, "inputs: training data: expected a record"),
        ({"inputs/0/role": "others"}, "inputs/0/role: 'others' is not one of"),
        ({"inputs/0/record": "0" * 32}, "inputs: vocabulary: expected no record"),
    ],
)
def test_a_record_in_another_form_is_one_error(bare, tokenizers, tmp_path, change, said):
    convert_bare(bare["vocab"], tmp_path / "model", vocab=tokenizers["vocab"].path)
    edit_json(tmp_path / "model/lineage.json", change)
    with pytest.raises(ManifestError, match="lineage.json: ") as caught:
        bertdata.lineage(tmp_path / "model")
    assert said in str(caught.value)


def test_training_data_that_are_no_dataset_are_a_fault(bare, tokenizers, tmp_path):
    step = convert_bare(bare["vocab"], tmp_path / "model", vocab=tokenizers["vocab"].path)
    [given] = [one for one in step.inputs if one.role == "vocabulary"]
    of_vocabulary = {"role": "training data", "files": [], "record": given.record}
    edit_json(tmp_path / "model/lineage.json", {"inputs/0": of_vocabulary})
    [fault] = bertdata.lineage(tmp_path / "model").faults
    assert fault == f"the record with the md5 {given.record} is not the manifest of a dataset"

"""What --vocab and --model-config named is in the state of a run that started from another program's weights.

Such a run is made again with the same flags, whose files are among the sources.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import bertdata
import trainer
from bertdata.errors import DataError, InputError, MissingInputError
from bertdata.lineages.run_state import compute_state_md5
from bertdata.lineages.step import Step
from bertdata.steps import rebuild as rebuilding
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from tests.support.bare_weights import list_md5s, make_bare_weights, rename_copies
from tests.support.exported_models import export, make_tokenizers
from tests.support.fine_tuning import table
from tests.support.lineages import compute_md5, edit_json, run_commands

KEYS: dict[str, Any] = {
    "device": "cpu",
    "batch_size": 4,
    "base_learning_rate": 0.01,
    "steps": 2,
    "no_progress_bar": True,
}

pytestmark = pytest.mark.usefixtures("rebuild_in_process")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TokenizerFile]:
    return make_tokenizers(tmp_path_factory.mktemp("tokenisers"))


@pytest.fixture(scope="module")
def bare(tokenizers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with ``weights/model.safetensors``, and in ``model`` the files that belong to it."""
    return {
        name: make_bare_weights(tmp_path_factory.mktemp(name), tokenizers[name], "bert")
        for name in ("vocab", "wordpiece")
    }


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return table(tmp_path / "labels.tsv", 16)


@pytest.fixture
def mine(tokenizers, tmp_path: Path) -> Path:
    """A vocabulary of the user, without the manifest of its training."""
    return Path(shutil.copyfile(tokenizers["vocab"].path, tmp_path / "mine.txt"))


def finetune(start: Path, labels: Path, run: Path, **keys: Any) -> dict[str, Any]:
    """Fine-tune a little. Return the state of the newest checkpoint."""
    made = trainer.finetune(
        task="classification",
        start_from_ckpt=str(start),
        task_train_file=str(labels),
        output_dir=str(run),
        max_seq_length=32,
        **KEYS | keys,
    )
    assert made.checkpoint is not None
    return read_state(Path(made.checkpoint))


def finetune_bare(bare: Path, labels: Path, run: Path, vocab: Path | str, **keys: Any) -> dict[str, Any]:
    """Fine-tune weights that lie alone. Return the state of the newest checkpoint."""
    given = {"model_config": str(bare / "model/config.json"), "vocab": str(vocab), **keys}
    return finetune(bare / "weights", labels, run, **given)


def read_state(checkpoint: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    return value


def read_step(run: Path) -> Step:
    """Return the step that trained a run, whose lineage has no faults."""
    lineage = bertdata.lineage(run)
    assert lineage.faults == []
    [step] = lineage.results
    return step


def rebuild(path: Path, sources: Sequence[Path], output: Path) -> rebuilding.RebuildResult:
    """Make an artefact again, equal in every md5."""
    result = bertdata.rebuild(path, sources, output)
    assert result.is_equal, result.differences
    return result


def test_the_files_of_both_flags_are_recorded_and_found_among_the_sources(bare, labels, mine, tmp_path):
    config = bare["vocab"] / "model/config.json"
    state = finetune_bare(bare["vocab"], labels, tmp_path / "run", mine)
    assert state["inputs"] == [
        {"role": role, "files": [{"name": path.name, "bytes": path.stat().st_size, "md5": compute_md5(path)}]}
        for role, path in (("vocabulary", mine), ("model configuration", config))
    ]
    step = read_step(tmp_path / "run")
    assert [(one.role, one.source) for one in step.inputs] == [
        ("training data", False),
        ("start", True),
        ("vocabulary", True),
        ("model configuration", True),
    ]
    trainer.convert(tmp_path / "run", tmp_path / "model")
    shutil.rmtree(tmp_path / "run")
    renamed = rename_copies([mine, config], tmp_path / "sources")
    mine.unlink()
    result = rebuild(tmp_path / "model", [bare["vocab"] / "weights", renamed, labels], tmp_path / "again")
    flags = f"--vocab {renamed}/0/renamed-0 --model-config {renamed}/1/renamed-1"
    assert flags in result.commands[-2]
    # The file has the model's settings, so that no flags replace them.
    assert "--hidden-size" not in result.commands[-2]
    assert [one.name for one in result.steps] == ["finetune", "export"]


def test_the_commands_of_a_dry_run_name_the_files_too(bare, labels, mine, tmp_path, capsys):
    finetune_bare(bare["vocab"], labels, tmp_path / "run", mine)
    config = bare["vocab"] / "model/config.json"
    sources = ("--from", bare["vocab"] / "weights", mine, config, labels)
    run_commands(("rebuild", tmp_path / "run", *sources, "--output", tmp_path / "again", "--dry-run"))
    assert f"--vocab {mine} --model-config {config}" in capsys.readouterr().out
    assert not (tmp_path / "again").exists()


def test_a_missing_file_or_another_one_is_named(bare, labels, mine, tmp_path):
    config = bare["vocab"] / "model/config.json"
    finetune_bare(bare["vocab"], labels, tmp_path / "run", mine)
    sources = [bare["vocab"] / "weights", labels, mine]
    with pytest.raises(MissingInputError, match="the model configuration config.json of python -m trainer f"):
        bertdata.rebuild(tmp_path / "run", sources, tmp_path / "again")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_bytes(config.read_bytes() + b"\n")
    with pytest.raises(InputError, match="config.json: is not the model configuration"):
        bertdata.rebuild(tmp_path / "run", [*sources, other], tmp_path / "again")


def test_a_vocabulary_that_was_trained_is_followed_to_its_texts_and_trained_again(
    bare, labels, tokenizers, tmp_path
):
    for name in ("vocab.txt", "vocab.txt.manifest.json", "text.txt"):
        shutil.copyfile(Path(tokenizers["vocab"].path).with_name(name), tmp_path / name)
    vocab, text = tmp_path / "vocab.txt", tmp_path / "text.txt"
    finetune_bare(bare["vocab"], labels, tmp_path / "run", vocab)
    manifest = compute_md5(tmp_path / "vocab.txt.manifest.json")
    vocab.unlink()
    (tmp_path / "vocab.txt.manifest.json").unlink()
    assert compute_md5(tmp_path / f"run/sources/{manifest}.json") == manifest
    [given] = [one for one in read_step(tmp_path / "run").inputs if one.role == "vocabulary"]
    assert (given.record, given.made_by and given.made_by.name) == (manifest, "train-vocab")
    sources = [bare["vocab"] / "weights", bare["vocab"] / "model/config.json", text, labels]
    result = rebuild(tmp_path / "run", sources, tmp_path / "again")
    assert [one.name for one in result.steps] == ["train-vocab", "finetune"]


@pytest.mark.parametrize("given", ["tokenizer.json", ""])
def test_all_files_of_a_tokeniser_are_recorded_and_read_together_again(bare, labels, tmp_path, given):
    place = tmp_path / "tokeniser"
    place.mkdir()
    names = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
    for name in names:
        shutil.copyfile(bare["wordpiece"] / "model" / name, place / name)
    edit_json(place / "tokenizer_config.json", {"pad_token": "[UNK]"})
    finetune_bare(bare["wordpiece"], labels, tmp_path / "run", place / given)
    read = names[1:] if given else names
    role = "tokenizer.json" if given else "tokeniser"
    step = read_step(tmp_path / "run")
    assert list_md5s(step, role) == {name: compute_md5(place / name) for name in read}
    sources = rename_copies([place / name for name in names], tmp_path / "sources")
    shutil.rmtree(place)
    rebuild(tmp_path / "run", [bare["wordpiece"] / "weights", sources, labels], tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again/sources/tokeniser-1").iterdir()) == sorted(read)


def test_a_published_vocabulary_is_recorded_and_given_by_its_name(
    published_vocabulary, labels, tmp_path, monkeypatch
):
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/bert-base-uncased").mkdir(parents=True)
    shutil.copyfile(published_vocabulary, tmp_path / "cache/bert-base-uncased/vocab.txt")
    file = VocabularyFile(path=str(published_vocabulary), dialect="google")
    bare = make_bare_weights(tmp_path, file, "bert")
    finetune_bare(bare, labels, tmp_path / "run", "bert-base-uncased")
    found = list_md5s(read_step(tmp_path / "run"), "vocabulary")
    assert found == {"bert-base-uncased": compute_md5(published_vocabulary)}
    sources = [bare / "weights", bare / "model/config.json", labels]
    result = rebuild(tmp_path / "run", sources, tmp_path / "again")
    assert "--vocab bert-base-uncased" in result.commands[-1]
    # The name is enough, also if neither the cache nor the run has a copy.
    (tmp_path / "run/vocab.txt").unlink()
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "empty"))
    plan = rebuilding.make_plan(tmp_path / "run", sources, tmp_path / "other")
    assert "--vocab bert-base-uncased" in plan.list_lines()[-1]


def test_a_resumed_run_keeps_the_record_of_its_first_start(bare, labels, mine, tmp_path):
    config = bare["vocab"] / "model/config.json"
    start = Path(shutil.copytree(bare["vocab"] / "weights", tmp_path / "start"))
    given = {"model_config": str(config), "vocab": str(mine), "steps": 4}
    first = finetune(start, labels, tmp_path / "run", steps_this_run=2, **given)
    shutil.rmtree(start)
    other = {"steps": 4, "base_learning_rate": 0.5, "resume": True}
    last = finetune(start, labels, tmp_path / "run", **other)
    assert (len(first["inputs"]), last["step"]) == (2, 4)
    assert last["inputs"] == first["inputs"]
    sources = [bare["vocab"] / "weights", config, mine, labels]
    result = rebuild(tmp_path / "run", sources, tmp_path / "again")
    parts = [line for line in result.commands if " finetune " in line]
    assert [f"--vocab {mine} --model-config {config}" in line for line in parts] == [True, True]


def test_a_flag_that_was_not_given_is_not_recorded(bare, labels, tmp_path):
    """The model file and the tokeniser next to the weights are read, as they are when the run is rebuilt."""
    start = Path(shutil.copytree(bare["vocab"] / "model", tmp_path / "start"))
    (start / "lineage.json").unlink()
    state = finetune(start, labels, tmp_path / "run")
    assert state["config"]["vocab"] == str(start / "vocab.txt")
    assert state["inputs"] == []
    rebuild(tmp_path / "run", [start, labels], tmp_path / "again")


def test_flags_for_a_model_that_the_trainer_exported_are_recorded_too(bare, labels, mine, tmp_path):
    """Only its checkpoints say themselves what model they are."""
    finetune(bare["vocab"] / "model", labels, tmp_path / "run", vocab=str(mine))
    step = read_step(tmp_path / "run")
    assert [one.made_by and one.made_by.name for one in step.inputs] == ["features", "export", None]
    assert list_md5s(step, "vocabulary") == {"mine.txt": compute_md5(mine)}


def test_nothing_is_recorded_for_a_checkpoint_of_the_trainer(tokenizers, labels, tmp_path):
    """It says itself what model it is, and its run has the tokeniser."""
    export(tmp_path, tokenizers["vocab"], "bert")
    [run] = tmp_path.glob("*-run")
    assert finetune(run, labels, tmp_path / "run", vocab=str(run / "vocab.txt"))["inputs"] == []


@pytest.mark.parametrize(("masking", "reads_vocabulary"), [("dynamic", True), ("static", False)])
def test_pre_training_records_what_it_has_read(bare, tokenizers, mine, tmp_path, masking, reads_vocabulary):
    text, config = Path(tokenizers["vocab"].path).with_name("text.txt"), bare["vocab"] / "model/config.json"
    flags = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1")
    casing = ("--vocab", mine, "--no-lower-case")
    run_commands(("create", text, "--output", tmp_path / "shards", *casing, *flags))
    made = trainer.pretrain(
        train_data=str(tmp_path / "shards"),
        output_dir=str(tmp_path / "run"),
        start_from_ckpt=str(bare["vocab"] / "weights"),
        model_config=str(config),
        vocab=str(mine),
        masking=masking,
        **KEYS,
    )
    inputs = read_state(Path(str(made.checkpoint)))["inputs"]
    expected = ["vocabulary", "model configuration"]
    assert [one["role"] for one in inputs] == expected[not reads_vocabulary :]
    sources = [bare["vocab"] / "weights", config, mine, text]
    result = rebuild(tmp_path / "run", sources, tmp_path / "again")
    assert f"--model-config {config}" in result.commands[-1]
    assert (f"--vocab {mine}" in result.commands[-1]) == reads_vocabulary


def test_a_state_of_an_earlier_version_is_read_and_rebuilt_without_the_flags(bare, labels, mine, tmp_path):
    finetune_bare(bare["vocab"], labels, tmp_path / "run", mine, steps_this_run=1)
    checkpoint = tmp_path / "run/checkpoints/step-00000001"
    state = read_state(checkpoint)
    del state["md5"], state["inputs"]
    text = json.dumps({**state, "md5": compute_state_md5(state)})
    (checkpoint / "state.json").write_text(text, encoding="utf-8")
    assert [one.role for one in read_step(tmp_path / "run").inputs] == ["training data", "start"]
    with pytest.raises(DataError, match="ended with exit status"):
        bertdata.rebuild(tmp_path / "run", [bare["vocab"] / "weights", labels, mine], tmp_path / "again")
    resumed = finetune_bare(bare["vocab"], labels, tmp_path / "run", mine, resume=True)
    assert (resumed["step"], resumed["inputs"]) == (2, [])


@pytest.mark.parametrize("shape", ["roberta", "modernbert"])
def test_bare_weights_of_other_architectures_are_those_of_the_named_model(
    tokenizers, labels, mine, tmp_path, shape
):
    """The names of their tensors are known from the model file. So bare weights train as whole ones do."""
    bare = make_bare_weights(tmp_path, tokenizers["vocab"], shape)
    whole = tmp_path / "whole"
    shutil.copytree(bare / "model", whole)
    shutil.copyfile(bare / "weights/model.safetensors", whole / "model.safetensors")
    finetune_bare(bare, labels, tmp_path / "bare-run", mine)
    finetune(whole, labels, tmp_path / "whole-run")
    weights = [
        (tmp_path / name / "checkpoints/step-00000002/model.safetensors").read_bytes()
        for name in ("bare-run", "whole-run")
    ]
    assert weights[0] == weights[1]


def test_bare_weights_of_other_architectures_are_evaluated_as_the_named_model(tokenizers, corpus, tmp_path):
    data, words = tmp_path / "data", tokenizers["vocab"].path
    bertdata.create(
        corpus[:1],
        data,
        vocab=words,
        objective="mlm",
        max_seq_length=64,
        max_predictions_per_seq=10,
        workers=1,
    )
    bare = make_bare_weights(tmp_path, tokenizers["vocab"], "roberta")
    shutil.copytree(bare / "weights", tmp_path / "whole")
    shutil.copyfile(bare / "model/config.json", tmp_path / "whole/config.json")
    keys = {"eval_data": str(data), "eval_examples": 20, "device": "cpu", "no_progress_bar": True}
    wanted = trainer.evaluate(
        start_from_ckpt=str(tmp_path / "whole"), output_dir=str(tmp_path / "out-1"), **keys
    )
    model = str(bare / "model/config.json")
    start, output = str(bare / "weights"), str(tmp_path / "out-2")
    found = trainer.evaluate(start_from_ckpt=start, model_config=model, output_dir=output, **keys)
    assert found.metrics == wanted.metrics
    assert found.metrics

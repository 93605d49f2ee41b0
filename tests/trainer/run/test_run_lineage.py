"""What a run and an exported model say about where they come from, and the same weights made again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bertdata
import trainer
from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.lineages.commands.command import Places
from bertdata.lineages.commands.run_commands import make_run_commands
from bertdata.lineages.run_state import compute_state_md5
from bertdata.lineages.tree import draw_lineage
from bertdata.trust.in_toto import make_statements
from tests.support.lineages import CORPUS, compute_md5, make_chain, run_commands
from tests.support.paths import DUMP, GOLDEN
from trainer.__main__ import main

SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "device": "cpu",
    "batch_size": 2,
    "base_learning_rate": 0.01,
    "no_progress_bar": True,
}


def train(data: Path, output: Path, **keys: Any) -> Path:
    """Train a tiny model. Return its newest checkpoint."""
    made = trainer.pretrain(train_data=str(data), output_dir=str(output), **SMALL | {"steps": 2} | keys)
    assert made.checkpoint is not None
    return Path(made.checkpoint)


def read_state(checkpoint: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    return value


def edit_state(checkpoint: Path, **changes: Any) -> None:
    """Change fields of a state, with the md5 that belongs to them. None removes a field."""
    state = read_state(checkpoint)
    del state["md5"]
    state = {name: value for name, value in (state | changes).items() if value is not None}
    text = json.dumps({**state, "md5": compute_state_md5(state)}, indent=1)
    (checkpoint / "state.json").write_text(f"{text}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``articles``, ``parts``, ``shards`` of the golden dump, ``eval``, ``run``, and ``model``, exported."""
    place = tmp_path_factory.mktemp("run")
    make_chain(place, trained=False)
    words = ("create", place / "parts" / "eval.txt", "--output", place / "eval", "--workers=1")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1")
    run_commands((*words, "--vocab", GOLDEN / "vocab.txt", *sizes))
    train(place / "shards", place / "run", eval_data=str(place / "eval"))
    trainer.convert(place / "run", place / "model")
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(made, tmp_path / "place"))


def test_a_state_names_the_manifests_of_its_data_and_the_run_keeps_copies(made):
    state = read_state(made / "run/checkpoints/step-00000002")
    assert state["sources"] == {
        "train_data": [compute_md5(made / "shards/manifest.json")],
        "eval_data": [compute_md5(made / "eval/manifest.json")],
    }
    assert (state["started"], state["history"], state["workers"]) == ("new", [], 1)
    kept = {path.stem: compute_md5(path) for path in (made / "run/sources").iterdir()}
    assert all(name == md5 for name, md5 in kept.items())
    expected = [made / name / "manifest.json" for name in ("shards", "eval", "parts", "articles")]
    assert set(kept) == set(map(compute_md5, expected))


def test_a_model_says_what_it_was_trained_on_after_the_data_have_moved(made, tmp_path):
    model = shutil.copytree(made / "model", tmp_path / "model")
    steps = bertdata.lineage(model).list_steps()
    assert [step.name for step in steps] == ["extract", "segment", "create", "create", "pretrain", "export"]
    assert bertdata.lineage(model).faults == []
    of_run = bertdata.lineage(made / "run").list_steps()
    assert [step.record for step in steps[:-1]] == [step.record for step in of_run]
    written = {file.name: file.md5 for file in steps[-1].outputs}
    others = {path.name: compute_md5(path) for path in model.iterdir() if path.name != "lineage.json"}
    assert written == {name: md5 for name, md5 in others.items() if name != "README.md"}


@pytest.mark.parametrize(
    "name", ["", "/checkpoints/step-00000002", "/checkpoints/step-00000002/model.safetensors"]
)
def test_a_run_a_checkpoint_and_its_weights_have_the_same_lineage(made, name):
    [step] = bertdata.lineage(f"{made}/run{name}").results
    assert step.record == compute_md5(made / "run/checkpoints/step-00000002/state.json")
    weights = compute_md5(made / "run/checkpoints/step-00000002/model.safetensors")
    assert weights in [file.md5 for file in step.outputs]
    assert [one.role for one in step.inputs] == ["training data", "evaluation data"]


def test_a_model_that_was_changed_after_its_export_is_a_fault(place):
    weights = place / "model/model.safetensors"
    expected = compute_md5(weights)
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    [fault] = bertdata.lineage(place / "model").faults
    assert fault == (
        f"{weights}: was changed after the export: found md5 {compute_md5(weights)}, expected {expected}"
    )
    # A run that starts from it must not claim the lineage of the unchanged model.
    train(place / "shards", place / "next", start_from_ckpt=str(place / "model"))
    [start] = [one for one in bertdata.lineage(place / "next").results[0].inputs if one.role == "start"]
    assert start.made_by is None
    assert compute_md5(weights) in [file.md5 for file in start.files]


@pytest.mark.parametrize("is_cited", [True, False])
def test_a_damaged_copy_in_a_run_is_one_fault_whether_or_not_a_step_cites_it(place, is_cited):
    record = place / "articles/manifest.json"
    if not is_cited:  # such as the manifest of a vocabulary, which no record cites
        record = place / "vocabulary.json"
        record.write_text('{"kind": "vocabulary"}\n', encoding="utf-8")
    copy = place / f"run/sources/{compute_md5(record)}.json"
    copy.write_bytes(record.read_bytes())
    assert bertdata.lineage(place / "run").faults == []
    copy.write_bytes(record.read_bytes() + b" ")
    [fault] = bertdata.lineage(place / "run").faults
    assert fault.startswith(f"{copy}: ")
    assert f"found md5 {compute_md5(copy)}, expected {compute_md5(record)}" in fault


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"format": "bertdata lineage 1"}'])
def test_a_lineage_file_of_another_program_or_a_damaged_one_keeps_nobody_from_training(place, content):
    (place / "model/lineage.json").write_text(content, encoding="utf-8")
    train(place / "shards", place / "next", start_from_ckpt=str(place / "model"))
    [start] = [one for one in bertdata.lineage(place / "next").results[0].inputs if one.role == "start"]
    assert (start.made_by, start.source) == (None, True)


def test_a_run_that_starts_from_another_has_the_steps_of_both(place):
    train(place / "shards", place / "next", start_from_ckpt=str(place / "run"))
    trainer.convert(place / "next", place / "again", to="bertdata")
    train(place / "shards", place / "last", start_from_ckpt=str(place / "again"))
    shutil.rmtree(place / "run")
    shutil.rmtree(place / "next")
    lineage = bertdata.lineage(place / "last")
    assert lineage.faults == []
    names = [step.name for step in lineage.list_steps() if step.name in ("pretrain", "export")]
    assert names == ["pretrain", "pretrain", "export", "pretrain"]


def test_phase_2_starts_from_phase_1(made, tmp_path):
    first = train(made / "shards", tmp_path / "run")
    record = compute_md5(first / "state.json")
    last = train(made / "shards", tmp_path / "run", phase2=True)
    state = read_state(last)
    assert (state["started"], state["sources"]["start"]) == ("phase 2", [record])
    resumed = train(made / "shards", tmp_path / "run", phase2=True, resume=True, steps=3)
    assert read_state(resumed)["sources"] == state["sources"]
    [step] = bertdata.lineage(tmp_path / "run").results
    [start] = [one for one in step.inputs if one.role == "start"]
    assert start.made_by is not None
    assert start.made_by.record == record


def test_a_run_resumed_with_other_settings_keeps_the_earlier_ones(made, tmp_path):
    train(made / "shards", tmp_path / "run", steps=4, steps_this_run=1)
    train(made / "shards", tmp_path / "run", steps=4, steps_this_run=1, resume=True)
    last = train(made / "shards", tmp_path / "run", steps=4, resume=True, base_learning_rate=0.5)
    assert read_state(last)["history"] == [{"until": 2, "settings": {"base_learning_rate": 0.01}}]
    [step] = bertdata.lineage(tmp_path / "run").results
    outputs = {one.made_by.record: "data" for one in step.inputs if one.made_by}
    first, second = make_run_commands(step, Places(outputs, {}, {}), "again")
    assert first.list_words()[-2:] == ("--steps-this-run", "2")
    assert "0.01" in first.words
    assert second.list_words()[-1] == "--resume"
    assert "0.5" in second.words
    # what an interrupted rebuild goes on with
    assert first.list_words(made=1)[-3:] == ("--steps-this-run", "1", "--resume")


def test_a_state_of_an_earlier_version_is_followed_to_data_in_place(place):
    checkpoint = place / "run/checkpoints/step-00000002"
    config = read_state(checkpoint)["config"]
    config |= {"train_data": str(place / "shards"), "eval_data": str(place / "eval")}
    names = ("sources", "started", "history", "workers", "threads")
    edit_state(checkpoint, config=config, **dict.fromkeys(names))
    shutil.rmtree(place / "run/sources")
    [step] = bertdata.lineage(place / "run").results
    assert [one.record for one in step.inputs] == [
        compute_md5(place / name / "manifest.json") for name in ("shards", "eval")
    ]
    shutil.rmtree(place / "shards")
    shutil.copytree(place / "eval", place / "shards")  # other data at the same place
    [step] = bertdata.lineage(place / "run").results
    assert step.inputs[0].made_by is None
    assert f"the data {place}/shards are no longer in place, or changed" in step.inputs[0].remark


def test_data_at_a_url_in_a_state_of_an_earlier_version_are_not_opened(place):
    url = "memory://data-of-an-earlier-version/shards"
    for path in (path for path in (place / "shards").rglob("*") if path.is_file()):
        with storage.open_output(f"{url}/{path.relative_to(place / 'shards')}") as file:
            file.write(path.read_bytes())
    shutil.rmtree(place / "run/sources")
    checkpoint = place / "run/checkpoints/step-00000002"
    config = read_state(checkpoint)["config"]
    digest = read_state(checkpoint)["data"]
    for train_data, eval_data in ((url, str(place / "eval")), (f"{url}*0.5 + {place}/eval*0.5", None)):
        there = {"train_data": train_data, "eval_data": eval_data}
        edit_state(checkpoint, config=config | there, sources=None, started=None)
        lineage = bertdata.lineage(place / "run")
        data = lineage.results[0].inputs[0]
        assert (data.role, data.made_by, data.record) == ("training data", None, None)
        assert data.remark == (
            f"the data {train_data} are not known: an earlier version did not record their manifests, and "
            f"URLs are not opened; digest of their shards {digest}"
        )
        assert [one.made_by is not None for one in lineage.results[0].inputs[1:]] == [True] * bool(eval_data)
        assert lineage.faults == []
        with pytest.raises(ManifestError, match="training data: the data memory://.* are not known"):
            bertdata.rebuild(place / "run", [DUMP], place / "again")


def test_a_converted_checkpoint_without_its_record_says_that_its_origin_is_not_known(place):
    trainer.convert(place / "model", place / "converted")
    (place / "converted/lineage.json").unlink()
    trainer.convert(place / "converted", place / "last")
    for name, count in (("converted", 1), ("last", 2)):
        lineage = bertdata.lineage(place / name)
        assert [step.program for step in lineage.list_steps()] == ["python -m trainer convert"] * count
        assert lineage.faults == []
        [first, *_] = lineage.list_steps()
        assert first.record == compute_md5(place / "converted/state.json")
        [source] = first.inputs
        assert source.remark == "the converted checkpoint is not known: no lineage.json names it"
        lines = [line.strip("│ ") for line in draw_lineage(lineage)]
        assert "└─ checkpoint: not followed further" in lines
        assert f"remark      {source.remark}" in lines
        with pytest.raises(ManifestError, match="the converted checkpoint is not known"):
            bertdata.rebuild(place / name, [DUMP], place / "again")
    [statement, _] = make_statements(bertdata.lineage(place / "last"))
    assert statement["subject"][-1]["name"] == "state.json"


def test_the_page_of_a_run_shows_its_lineage_without_its_data(place):
    shutil.rmtree(place / "shards")
    shutil.rmtree(place / "eval")
    page = Path(trainer.write_report(place / "run")).read_text(encoding="utf-8")
    assert "<h2 id=" in page
    assert compute_md5(place / "articles/manifest.json") in page
    assert compute_md5(DUMP) in page


def test_the_weights_of_a_model_are_made_again_to_the_bit(made, tmp_path, rebuild_in_process):
    result = bertdata.rebuild(made / "model", [DUMP, GOLDEN / "vocab.txt"], tmp_path / "again")
    assert result.is_equal, result.differences
    assert [step.name for step in result.steps][-2:] == ["pretrain", "export"]
    name = "model/model.safetensors"
    assert compute_md5(tmp_path / "again" / name) == compute_md5(made / name)


def test_a_manipulated_setting_of_the_run_is_found(place, tmp_path, rebuild_in_process):
    checkpoint = place / "run/checkpoints/step-00000002"
    edit_state(checkpoint, config=read_state(checkpoint)["config"] | {"base_learning_rate": 0.02})
    result = bertdata.rebuild(place / "run", [DUMP, GOLDEN / "vocab.txt"], tmp_path / "again")
    assert {one.step.name for one in result.differences} == {"pretrain"}
    assert "model.safetensors: found md5" in str(result.differences[0])


@pytest.mark.thorough
def test_a_mixture_of_two_phases_resumed_with_other_settings_is_made_again(
    made, tmp_path, rebuild_in_process
):
    """Dynamic masks depend on the names of shards, so the datasets keep their relative places."""
    words = ("create", *sorted(CORPUS.glob("part-*")), "--vocab", GOLDEN / "vocab.txt", "--workers=1")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1")
    run_commands((*words, "--output", tmp_path / "z/corpus", *sizes))
    shutil.copytree(made / "shards", tmp_path / "a/wiki")
    data = f"{tmp_path}/z/corpus+{tmp_path}/a/wiki"
    keys: dict[str, Any] = {"masking": "dynamic", "vocab": str(GOLDEN / "vocab.txt"), "steps": 4}
    train(Path(data), tmp_path / "run", steps_this_run=2, **keys)
    train(Path(data), tmp_path / "run", resume=True, base_learning_rate=0.5, **keys)
    train(Path(data), tmp_path / "run", phase2=True, **keys)
    result = bertdata.rebuild(tmp_path / "run", [DUMP, CORPUS, GOLDEN / "vocab.txt"], tmp_path / "again")
    assert result.is_equal, result.differences
    assert [step.name for step in result.steps][-2:] == ["pretrain", "pretrain"]


def test_a_fine_tuned_model_is_made_again_with_the_model_that_it_started_from(
    place, tmp_path, rebuild_in_process
):
    rows = [("good", "a fine day"), ("bad", "a grey day"), ("good", "fine"), ("bad", "grey and cold")]
    table = tmp_path / "labels.tsv"
    table.write_text("label\ttext\n" + "".join(f"{one}\t{two}\n" for one, two in rows * 2), encoding="utf-8")
    trainer.finetune(
        task="classification",
        start_from_ckpt=str(place / "run"),
        task_train_file=str(table),
        output_dir=str(tmp_path / "tuned"),
        max_seq_length=32,
        **{name: SMALL[name] for name in ("device", "batch_size", "no_progress_bar")} | {"steps": 2},
    )
    trainer.convert(tmp_path / "tuned", tmp_path / "model")
    shutil.rmtree(place / "run")
    shutil.rmtree(tmp_path / "tuned")
    steps = bertdata.lineage(tmp_path / "model").list_steps()
    names = [step.name for step in steps if step.name not in ("extract", "segment", "create")]
    assert names == ["features", "pretrain", "finetune", "export"]
    sources = [DUMP, GOLDEN / "vocab.txt", table]
    result = bertdata.rebuild(tmp_path / "model", sources, tmp_path / "again")
    assert result.is_equal, result.differences
    assert [step.name for step in result.steps][-3:] == ["pretrain", "finetune", "export"]


def test_a_run_at_a_url_keeps_its_records_there(made, tmp_path):
    url = "memory://lineage-of-a-run/run"
    trainer.pretrain(train_data=str(made / "shards"), output_dir=url, **SMALL | {"steps": 2})
    lineage = bertdata.lineage(url)
    assert [step.name for step in lineage.list_steps()] == ["extract", "segment", "create", "pretrain"]
    assert lineage.faults == []
    assert main(["convert", url, str(tmp_path / "model")]) in (None, 0)
    steps = bertdata.lineage(tmp_path / "model").list_steps()
    assert [step.record for step in steps[:-1]] == [step.record for step in lineage.list_steps()]

"""``create --tokenizer``: datasets of a tokenizer.json, from text to every container and reader."""

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

import bertdata as face
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.shuffle.keys import sort_documents
from bertdata.dataset.discover import find_datasets
from bertdata.dataset.verify import verify_files
from bertdata.dataset.vocabulary import check_vocabulary_fit, load_dataset_vocabulary
from bertdata.errors import SettingsError
from bertdata.records import Documents
from bertdata.shards.content import compute_content_md5
from tests.support.commands import Program, contents
from tests.support.tokenizer_files import TRAINERS

SIZES = {"max_seq_length": 48, "max_predictions_per_seq": 7, "dupe_factor": 1}
FLAGS = ("--max-seq-length", 48, "--max-predictions-per-seq", 7, "--dupe-factor", 1)


@pytest.fixture(scope="module")
def files(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tokenizer.json of each kind, trained on the sample corpus."""
    folder = tmp_path_factory.mktemp("files")
    lines = [line for part in corpus for line in part.read_text().splitlines()]
    return {kind: train(folder / f"my-{kind}.json", lines, 2000) for kind, train in TRAINERS.items()}


def create(corpus: list[Path], output: Path, tokenizer: Path, **settings: Any) -> Path:
    face.create(corpus, output, tokenizer=tokenizer, workers=1, **{**SIZES, **settings})
    return output


def id_of(token: str, file: Path) -> int:
    added = json.loads(file.read_text())["added_tokens"]
    return int(next(item["id"] for item in added if item["content"] == token))


def examples_of(directory: Path) -> list[tuple[int, ...]]:
    return [tuple(example.ids) for example in face.open_dataset(directory)]


@pytest.mark.parametrize("objective", ["bert", "mlm"])
@pytest.mark.parametrize("kind", TRAINERS)
def test_every_container_holds_the_same_examples(
    kind: str, objective: str, corpus: list[Path], files: dict[str, Path], tmp_path: Path
) -> None:
    found, sums = [], []
    for container in ("tfrecord", "hdf5", "parquet"):
        output = tmp_path / container
        create(corpus[:1], output, files[kind], objective=objective, format=container)
        report = verify_files(str(output), content=True)
        assert report.sound, report
        assert (output / "tokenizer.json").read_bytes() == files[kind].read_bytes()
        assert not (output / "vocab.txt").exists()
        found.append(examples_of(output))
        (shard,) = json.loads((output / "manifest.json").read_text())["shards"]
        assert compute_content_md5(str(output / shard["name"])) == shard["content_md5"]
        sums.append(shard["content_md5"])
    assert found[0] == found[1] == found[2]
    assert len(set(sums)) == 1


def test_the_manifest_tells_the_tokeniser(corpus: list[Path], files: dict[str, Path], tmp_path: Path) -> None:
    output = create(corpus[:1], tmp_path / "out", files["bpe"], roles={"unk": "."})
    settings = json.loads((output / "manifest.json").read_text())["settings"]
    assert list(settings["tokenizer"]) == ["kind", "file", "roles", "between", "vocabulary"]
    assert settings["tokenizer"]["kind"] == "bpe"
    assert settings["tokenizer"]["roles"] == {
        "cls": "<s>",
        "sep": "</s>",
        "pad": "<pad>",
        "mask": "<mask>",
        "unk": ".",
    }
    assert settings["container"]["padding_id"] == 1
    (dataset,) = find_datasets(str(output))
    vocabulary = load_dataset_vocabulary(None, dataset)
    assert vocabulary is not None
    assert vocabulary.words[vocabulary.role("unk")] == "."
    assert check_vocabulary_fit(dataset) != []  # more than 2 % of the tokens are full stops


@pytest.mark.parametrize("container", ["tfrecord", "hdf5"])
def test_empty_places_hold_the_padding_token(
    container: str, corpus: list[Path], files: dict[str, Path], tmp_path: Path
) -> None:
    output = create(corpus[:1], tmp_path / "out", files["bpe"], objective="mlm", format=container)
    path = next(output.glob(f"*.{container}"))
    if container == "hdf5":
        import h5py

        rows = h5py.File(path)["input_ids"][:].tolist()
    else:
        from bertdata.shards.example_proto import decode_example
        from bertdata.shards.framing import read_payloads

        with path.open("rb") as file:
            rows = [decode_example(payload)["input_ids"] for payload in read_payloads(file, "shard")]
    examples = examples_of(output)
    assert [row[: len(ids)] for row, ids in zip(rows, examples, strict=True)] == [
        list(ids) for ids in examples
    ]
    rests = [row[len(ids) :] for row, ids in zip(rows, examples, strict=True)]
    assert {cell for rest in rests for cell in rest} == {1}


@pytest.mark.thorough
def test_views_pad_by_the_role(corpus: list[Path], files: dict[str, Path], tmp_path: Path) -> None:
    data = face.open_dataset(create(corpus[:1], tmp_path / "out", files["bpe"], objective="mlm"))
    rows = next(data.numpy(batch_size=64))
    assert set(rows["input_ids"][rows["attention_mask"] == 0].tolist()) == {1}
    first = next(iter(data.datasets()))
    assert first["input_ids"] == rows["input_ids"][0].tolist()
    examples = [next(iter(data))]
    assert data.collator()(examples)["input_ids"][0].tolist() == rows["input_ids"][0].tolist()


def test_a_vocabulary_gives_the_bytes_that_it_gave(
    corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    face.create(corpus[:1], tmp_path / "out", vocab=small_vocabulary_file, workers=1, **SIZES)
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]
    assert list(settings["tokenizer"]) == ["kind", "dialect", "lower_case", "vocabulary"]
    assert "padding_id" not in settings["container"]


def test_masks_drawn_at_load_know_the_tokeniser(
    corpus: list[Path], files: dict[str, Path], tmp_path: Path
) -> None:
    data = face.open_dataset(create(corpus[:1], tmp_path / "out", files["bpe"], objective="mlm", masks=False))
    mask = id_of("<mask>", files["bpe"])
    assert not any(mask in example.ids for example in data)
    assert any(mask in example.ids for example in data.masked(max_predictions_per_seq=7))


@pytest.mark.thorough
def test_the_pipeline_and_the_command_make_the_same_files(
    corpus: list[Path], files: dict[str, Path], bertdata: Program, tmp_path: Path
) -> None:
    for name, flags in (("plain", ()), ("mixed", ("--shuffle", "global", "--num-shards", 2))):
        words = ["--tokenizer", files["unigram"], "--objective", "mlm", "--whole-word-mask", *FLAGS, *flags]
        made = bertdata("create", *corpus, "--output", tmp_path / name, "--workers", 1, *words)
        assert made.status == 0, made.err
        assert "run by the tokenizers library" in made.out
        given = ["--input", *corpus, "--output", tmp_path / f"beam-{name}", *words]
        assert prepare_words(given) == 0
        assert contents(tmp_path / name) == contents(tmp_path / f"beam-{name}")


def prepare_words(words: list[Any]) -> int:
    from beam_pipelines.prepare import main

    return main([str(word) for word in words])


def test_sorted_documents_keep_their_word_starts() -> None:
    documents = Documents(
        ids=array("H", [5, 6, 7, 8, 9, 10]),
        sentence_ends=array("I", [2, 3, 6]),
        document_ends=array("I", [1, 3]),
        word_starts=bytes([1, 0, 1, 1, 0, 1]),
    )
    found = gather_documents([sort_documents(documents, "part").records], wide=False, has_word_starts=True)
    first = {5: [1, 0], 7: [1, 1, 0, 1]}
    starts = list(found.word_starts)  # type: ignore[call-overload]
    order = [number for number in found.ids if number in first]
    assert starts == [bit for number in order for bit in first[number]]
    assert len(found.ids) == 6


@pytest.mark.thorough
def test_packing_and_converting_keep_the_tokeniser(
    corpus: list[Path], files: dict[str, Path], bertdata: Program, tmp_path: Path
) -> None:
    source = create(corpus[:1], tmp_path / "out", files["wordpiece"], objective="mlm")
    packed = bertdata("pack", source, "--output", tmp_path / "packed", "--layout", "flat", "--workers", 1)
    assert packed.status == 0, packed.err
    assert (tmp_path / "packed" / "tokenizer.json").read_bytes() == files["wordpiece"].read_bytes()
    assert sorted(examples_of(tmp_path / "packed")) == sorted(examples_of(source))
    pairs = create(corpus[:1], tmp_path / "pairs", files["bpe"])
    for target, flags in (("nvidia-mlperf", ("--num-shards", 1)), ("lddl", ())):
        made = bertdata("convert", pairs, tmp_path / target, "--to", target, "--workers", 1, *flags)
        assert made.status == 0, made.err
        assert verify_files(str(tmp_path / target), content=True).sound
        assert sorted(examples_of(tmp_path / target)) == sorted(examples_of(pairs))


def test_a_shard_alone_is_converted_with_its_padding(
    corpus: list[Path], files: dict[str, Path], bertdata: Program, tmp_path: Path
) -> None:
    source = create(corpus[:1], tmp_path / "out", files["bpe"], objective="mlm")
    shard = next(source.glob("*.tfrecord"))
    for target in ("one.hdf5", "two.parquet", "three.tfrecord"):
        assert bertdata("convert", shard, tmp_path / target, "--objective", "mlm").status == 0
        shard = tmp_path / target
        assert compute_content_md5(str(shard)) == compute_content_md5(str(next(source.glob("*.tfrecord"))))
    assert shard.read_bytes() == next(source.glob("*.tfrecord")).read_bytes()


def test_show_and_stats_read_it(
    corpus: list[Path], files: dict[str, Path], bertdata: Program, tmp_path: Path
) -> None:
    source = create(corpus[:1], tmp_path / "out", files["bpe"], objective="mlm")
    shown = bertdata("show", next(source.glob("*.tfrecord")), "--num", 3)
    assert shown.status == 0, shown.err
    assert "Ġ" not in shown.out
    assert "  t" in shown.out
    assert "<mask>" in shown.out
    stats = bertdata("stats", source)
    assert stats.status == 0
    assert f"id of [MASK]      {id_of('<mask>', files['bpe'])} by the vocabulary" in stats.out


REFUSED = {
    "both": (["--tokenizer", "{json}", "--vocab", "v.txt"], 2, "not allowed with argument"),
    "dialect": (["--tokenizer", "{json}", "--dialect", "google"], 2, "--dialect goes with --vocab"),
    "case": (["--tokenizer", "{json}", "--no-lower-case"], 2, "--no-lower-case goes with --vocab"),
    "role of a vocabulary": (["--vocab", "{json}", "--role", "mask=x"], 2, "--role goes with --tokenizer"),
    "json as vocabulary": (["--vocab", "{json}"], 1, "takes a tokenizer.json with --tokenizer"),
    "directory as vocabulary": (["--vocab", "{folder}"], 2, "goes with --tokenizer {folder}"),
    "not there": (["--tokenizer", "nowhere.json"], 2, "nowhere.json: no such file or directory"),
    "no token": (["--tokenizer", "{json}", "--role", "mask=<none>"], 1, "has no token '<none>'"),
    "no role": (["--tokenizer", "{bare}"], 2, "names no cls token"),
    "no mask": (["--tokenizer", "{bare}", "--role", "cls=a", "--role", "sep=b"], 2, "names no mask token"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_told_before_text_is_read(
    name: str, corpus: list[Path], files: dict[str, Path], bertdata: Program, tmp_path: Path
) -> None:
    value = json.loads(files["bpe"].read_text()) | {"added_tokens": [], "post_processor": None}
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "bare.json").write_text(json.dumps(value))
    places = {"json": files["bpe"], "folder": folder, "bare": folder / "bare.json"}
    flags, status, problem = REFUSED[name]
    words = [word.format(**places) for word in flags]
    made = bertdata("create", corpus[0], "--output", tmp_path / "out", *words)
    made.assert_one_error(status, problem.format(**places))
    assert not (tmp_path / "out").exists()


def test_the_function_refuses_two_tokenisers_and_none(corpus: list[Path], tmp_path: Path) -> None:
    for given in ({}, {"vocab": "vocab.txt", "tokenizer": "tokenizer.json"}):
        with pytest.raises(SettingsError, match="vocab=.*tokenizer"):
            face.create(corpus, tmp_path / "out", **given)  # type: ignore[arg-type]


def test_examples_without_masks_need_no_mask_token(
    corpus: list[Path], files: dict[str, Path], tmp_path: Path
) -> None:
    value = json.loads(files["wordpiece"].read_text())
    value["added_tokens"] = [item for item in value["added_tokens"] if item["content"] != "[MASK]"]
    (tmp_path / "made.json").write_text(json.dumps(value))
    with pytest.raises(SettingsError, match="names no mask token"):
        create(corpus[:1], tmp_path / "masked", tmp_path / "made.json", objective="mlm")
    create(corpus[:1], tmp_path / "plain", tmp_path / "made.json", objective="mlm", masks=False)


def test_the_drop_in_names_the_command(files: dict[str, Path], corpus: list[Path], bertdata: Program) -> None:
    flags = [f"--input_file={corpus[0]}", "--output_file=out", f"--vocab_file={files['bpe']}"]
    made = bertdata("create-pretraining-data", *flags)
    made.assert_one_error(1, "bertdata create takes a tokenizer.json with --tokenizer")


@pytest.mark.parametrize(("code", "between"), [("zh", ""), ("de", " ")])
def test_sentences_are_joined_as_their_language_does(
    code: str, between: str, bertdata: Program, files: dict[str, Path], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(
        "灯塔站在岸边。守塔人每天点灯。\n\n" if code == "zh" else "Der Turm steht. Das Licht brennt.\n\n"
    )
    face.segment([text], tmp_path / "parts", input_kind="text", language=code, eval_articles=0)
    part = next(one for one in sorted((tmp_path / "parts").glob("part-*")) if one.stat().st_size)
    given = ("--tokenizer", files["bpe"], "--objective", "mlm", "--max-seq-length", 64, "--no-masks")
    assert bertdata("create", part, *given, "--output", tmp_path / "set").status == 0
    settings = json.loads((tmp_path / "set/manifest.json").read_text())["settings"]
    assert settings["tokenizer"]["between"] == between
    sentences = part.read_text().strip().split("\n")
    assert len(sentences) == 2
    from tokenizers import Tokenizer

    expected = Tokenizer.from_file(str(files["bpe"])).encode(
        between.join(sentences), add_special_tokens=False
    )
    (block,) = examples_of(tmp_path / "set")
    special = {id_of("<s>", files["bpe"]), id_of("</s>", files["bpe"])}
    assert [token for token in block if token not in special] == expected.ids

"""Every command, used as its help says."""

import hashlib
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from bertdata import __version__
from bertdata.build.plan import choose_settings
from bertdata.cli.main import COMMANDS, USAGE
from bertdata.dataset.published.tables import load_table
from bertdata.shards.example_proto import decode_example, encode_example, encode_varint
from bertdata.shards.framing import frame_payload, read_payloads
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.support.commands import SMALL, contents, dataset_files, files_below, finish, on_a_terminal, start
from tests.support.paths import GOLDEN

SHARD = "part-00000-of-00003"
KINDS = ("tfrecord", "hdf5", "parquet")


@pytest.fixture(scope="session")
def made(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """Datasets of the sample corpus, one for each container."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("made")
    for kind in KINDS:
        output = ["--output", str(place / kind), "--vocab", str(small_vocabulary_file), "--format", kind]
        assert main(["create", *map(str, corpus), *output, *SMALL]) == 0
    return place


@pytest.fixture
def dataset(made, tmp_path) -> Path:
    """A copy of the TFRecord dataset, to be changed."""
    return Path(shutil.copytree(made / "tfrecord", tmp_path / "dataset"))


# --- help ---------------------------------------------------------------------------------------


def commands_of(example: str) -> list[list[str]]:
    """The command lines of an example, as a shell would split them, without the program's name."""
    lines = example.replace("\\\n", " ").strip().splitlines()
    return [shlex.split(line.split(" > ")[0])[1:] for line in lines]


def command_module(name: str) -> object:
    return importlib.import_module(f"bertdata.cli.{name.replace('-', '_')}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_begins_with_an_example_that_its_parser_accepts(name, bertdata):
    outcome = bertdata(name, "--help")
    assert outcome.status == 0
    assert outcome.out.startswith("Example:\n")
    module = command_module(name)
    commands = commands_of(outcome.out.removeprefix("Example:\n").partition("\n\n")[0])
    assert commands
    for command, *arguments in commands:
        assert command == name
        assert f"bertdata {name} {arguments[0] if arguments else ''}".strip() in outcome.out
        module.make_parser().parse_args(arguments)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_the_general_help_begins_with_examples_and_lists_every_command(words, bertdata):
    outcome = bertdata(*words)
    assert outcome.status == 0
    assert outcome.out.startswith("Example:\n")
    for name, summary in COMMANDS.items():
        assert name in outcome.out
        assert summary in outcome.out
    for name, *arguments in commands_of(USAGE.split("\n\n")[0].removeprefix("Example:\n")):
        command_module(name).make_parser().parse_args(arguments)


def test_no_command_at_all_shows_the_help_as_wrong_usage(bertdata):
    outcome = bertdata()
    assert outcome.status == 2
    assert outcome.out.startswith("Example:\n")


def test_a_command_without_its_arguments_names_them(bertdata):
    bertdata("create").assert_one_error(2, "required: PART, --output", "bertdata create --help")
    problem = "one of the arguments --vocab --tokenizer is required"
    bertdata("create", "part", "--output", "shards").assert_one_error(2, problem, "bertdata create --help")


def test_the_version_names_the_engine(bertdata):
    outcome = bertdata("--version")
    assert outcome.status == 0
    assert outcome.out.startswith(f"bertdata {__version__} (engine: ")


def test_recipes_are_listed_and_printed_as_json(bertdata):
    names = [line.split()[0] for line in bertdata("recipes").out.splitlines()]
    assert names == ["mlperf", "google", "nvidia", "habana", "graphcore", *ENCODERS]
    nvidia = json.loads(bertdata("recipes", "nvidia").out)
    assert [phase["max_seq_length"] for phase in nvidia["phases"]] == [128, 512]


ENCODERS = {
    "roberta": [(512, 0.15, 0.8)],
    "modernbert": [(1024, 0.3, 0.8), (8192, 0.3, 0.8)],
    "ettin": [(1024, 0.3, 0.8), (7999, 0.3, 0.8)],
    "mosaicbert": [(128, 0.3, 0.8)],
    "neobert": [(1024, 0.2, 1.0), (4096, 0.2, 1.0)],
    "electra": [(128, None, None)],
}
"""Length, share of masks and of [MASK] among them of each phase, as FACTS of the encoders have them."""


@pytest.mark.parametrize("recipe", ENCODERS)
def test_a_recipe_of_an_encoder_has_its_programs_figures_and_unmasked_examples(recipe, bertdata):
    found = json.loads(bertdata("recipes", recipe).out)
    names = ("max_seq_length", "masked_lm_prob", "mask_share")
    assert [tuple(phase.get(name) for name in names) for phase in found["phases"]] == ENCODERS[recipe]
    assert all(found[name] for name in ("exact", "distribution", "paper"))
    assert {phase.get("masks", False) for phase in found["phases"]} == {False}


@pytest.mark.parametrize("recipe", ["roberta", "neobert", "electra"])
def test_a_recipe_of_an_encoder_is_made_with_a_vocabulary(
    recipe, bertdata, corpus, small_vocabulary_file, tmp_path
):
    given = ("create", corpus[0], "--vocab", small_vocabulary_file, "--workers=1", "--recipe", recipe)
    assert bertdata(*given, "--output", tmp_path).status == 0
    manifests = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("**/manifest.json"))]
    assert [one["settings"]["objective"]["max_seq_length"] for one in manifests] == [
        length for length, *_ in ENCODERS[recipe]
    ]
    assert {one["recipe"] for one in manifests} == {recipe}
    assert {one["totals"]["masked_tokens"] for one in manifests} == {0}


def test_roberta_is_made_with_a_tokenizer_json(kit, bertdata, corpus, tmp_path):
    pytest.importorskip("tokenizers")
    path = kit / "encoders" / "tokenizers" / "bpe-roberta.json"
    given = ("create", corpus[0], f"--tokenizer={path}", "--role", "mask=<mask>", "--workers=1")
    outcome = bertdata(*given, "--recipe=roberta", "--output", tmp_path)
    assert outcome.status == 0, outcome.err
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert (found["recipe"], found["settings"]["objective"]["blocks"]) == ("roberta", "complete")


def test_one_length_makes_one_dataset_of_an_encoder_with_two():
    _, chosen = choose_settings("modernbert", None, {"max_seq_length": 4096})
    assert [(place, one.max_seq_length) for place, one in chosen.items()] == [("", 4096)]
    _, chosen = choose_settings("modernbert", 2, {})
    assert [one.max_seq_length for one in chosen.values()] == [8192]


PUBLISHED = {
    "mlperf": [(512, 76, 10, 12345)],
    "google": [(128, 20, 10, 12345)],
    "nvidia": [(128, 20, 5, 12345), (512, 80, 5, 12345)],
    "habana": [(128, 20, 5, 12345), (512, 80, 5, 12345)],
    "graphcore": [(128, 20, 5, 1984), (384, 58, 5, 1984)],
}
"""Length, predictions, dupe factor and seed of each phase, as the recipe's owner publishes them."""


@pytest.mark.parametrize("recipe", PUBLISHED)
def test_a_recipe_has_the_figures_of_its_owners_instructions(recipe, bertdata):
    names = ("max_seq_length", "max_predictions_per_seq", "dupe_factor", "random_seed")
    _, chosen = choose_settings(recipe, None, {})
    figures = [tuple(getattr(phase, name) for name in names) for phase in chosen.values()]
    assert figures == PUBLISHED[recipe]
    summary = next(line for line in bertdata("recipes").out.splitlines() if line.split()[0] == recipe)
    assert f"dupe factor {figures[0][2]}" in summary


# --- create -------------------------------------------------------------------------------------


def test_a_part_becomes_a_shard_of_its_name_and_a_line_on_standard_error(made, bertdata, corpus):
    for kind in KINDS:
        names = [f"{part.name}.{kind}" for part in corpus]
        assert files_below(made / kind) == dataset_files(*names)


def test_create_prints_what_it_made_and_what_it_kept(bertdata, corpus, small_vocabulary_file, tmp_path):
    command = ["create", *corpus, "--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL]
    first, second = bertdata(*command), bertdata(*command)
    assert sorted(line.split("(")[0] for line in first.err.splitlines()) == [
        f"made {part.name}.tfrecord " for part in corpus
    ]
    assert second.err == first.err.replace("made", "kept")
    told, share = first.out.rsplit(", ", 1)
    assert second.out == f"{told}\n"
    assert share.endswith("% of next sentences random\n")
    assert first.out.startswith(f"{tmp_path / 'out'}: 3 shards, ")


def test_a_finished_dataset_is_repaired_to_the_same_bytes(
    dataset, bertdata, corpus, small_vocabulary_file, made
):
    (dataset / f"{SHARD}.tfrecord").unlink()
    damaged = dataset / "part-00001-of-00003.tfrecord"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    outcome = bertdata("create", *corpus, "--output", dataset, "--vocab", small_vocabulary_file, *SMALL)
    assert outcome.status == 0
    assert [line.split(".tfrecord")[0] for line in sorted(outcome.err.splitlines())] == [
        "kept part-00002-of-00003",
        f"made {SHARD}",
        "made part-00001-of-00003",
    ]
    assert contents(dataset) == contents(made / "tfrecord")


def test_parts_may_be_named_by_pattern_in_any_order_and_twice(
    made, bertdata, corpus, small_vocabulary_file, tmp_path
):
    for number, parts in enumerate(([corpus[0].parent / "part-*"], [*reversed(corpus), corpus[1]])):
        output = tmp_path / str(number)
        assert (
            bertdata("create", *parts, "--output", output, "--vocab", small_vocabulary_file, *SMALL).status
            == 0
        )
        assert contents(output) == contents(made / "tfrecord")


@pytest.mark.parametrize("recipe", ["nvidia", "graphcore"])
def test_both_phases_are_made_from_one_tokenisation(
    recipe, bertdata, corpus, small_vocabulary_file, tmp_path, monkeypatch
):
    calls = []
    sound = WordPieceTokenizer.encode
    monkeypatch.setattr(WordPieceTokenizer, "encode", lambda *given: calls.append(given) or sound(*given))
    command = ["create", corpus[0], "--vocab", small_vocabulary_file, "--recipe", recipe, "--workers=1"]
    assert bertdata(*command, "--output", tmp_path / "both").status == 0
    assert len(calls) == 1
    for phase in (1, 2):
        assert (
            bertdata(*command, "--output", tmp_path / "alone" / f"phase{phase}", f"--phase={phase}").status
            == 0
        )
        manifest = json.loads((tmp_path / "both" / f"phase{phase}" / "manifest.json").read_text())
        assert manifest["phase"] == phase
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")
    report = bertdata("verify-md5", tmp_path / "both")
    assert report.status == 0
    assert "2 files right, sound" in report.out


def test_both_lengths_make_a_recipe_of_two_phases_one_dataset(
    bertdata, corpus, small_vocabulary_file, tmp_path
):
    command = ["create", corpus[0], "--vocab", small_vocabulary_file, "--recipe=nvidia", *SMALL]
    assert bertdata(*command, "--output", tmp_path / "out").status == 0
    assert (tmp_path / "out" / f"{SHARD}.hdf5").exists()


# --- create-pretraining-data --------------------------------------------------------------------


@pytest.fixture
def drop_in(bertdata, small_vocabulary_file, tmp_path) -> Callable[..., dict[str, bytes]]:
    """MLPerf's command; what it wrote."""

    def call(inputs: str, outputs: str, *flags: str) -> dict[str, bytes]:
        place = tmp_path / "drop-in"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        files = ",".join(str(place / name) for name in outputs.split(","))
        outcome = bertdata(
            "create-pretraining-data",
            f"--input_file={inputs}",
            f"--output_file={files}",
            f"--vocab_file={small_vocabulary_file}",
            "--max_seq_length=64",
            "--max_predictions_per_seq=10",
            "--dupe_factor=1",
            *flags,
        )
        assert outcome.status == 0
        *shards, lost = outcome.out.splitlines()
        assert len(shards) == len(outputs.split(","))
        assert lost.startswith("in no example: ")
        return contents(place)

    return call


def test_the_drop_in_command_makes_the_shard_that_create_makes(drop_in, corpus, made):
    assert drop_in(str(corpus[0]), "a") == {"a": (made / "tfrecord" / f"{SHARD}.tfrecord").read_bytes()}


def test_patterns_and_comma_lists_name_the_same_inputs(drop_in, corpus):
    directory = corpus[0].parent
    listed = drop_in(",".join(map(str, corpus)), "a")
    assert drop_in(f"{directory}/part-*", "a") == listed
    assert drop_in(f"{directory}/part-00000*,{directory}/part-0000[12]*", "a") == listed
    assert drop_in(",".join(map(str, reversed(corpus))), "a") != listed  # the script reads in the given order


def test_examples_are_dealt_to_the_outputs_in_turn(drop_in, corpus):
    whole = records(drop_in(str(corpus[0]), "a")["a"])
    dealt = drop_in(str(corpus[0]), "a,b,c")
    for start_at, name in enumerate("abc"):
        assert records(dealt[name]) == whole[start_at::3]


def records(data: bytes) -> list[bytes]:
    """The payloads of a TFRecord file."""
    return list(read_payloads(io.BytesIO(data), "test"))


def test_lower_case_may_be_switched_as_the_script_allows(drop_in, corpus):
    lower = drop_in(str(corpus[0]), "a")
    for flag in ("--do_lower_case", "--do_lower_case=True", "--do_lower_case=true", "--do_lower_case=1"):
        assert drop_in(str(corpus[0]), "a", flag) == lower
    cased = drop_in(str(corpus[0]), "a", "--do_lower_case=False")
    assert cased != lower
    for flag in ("--do_lower_case=false", "--do_lower_case=0", "--nodo_lower_case"):
        assert drop_in(str(corpus[0]), "a", flag) == cased


def test_one_output_named_twice_is_refused(bertdata, corpus, small_vocabulary_file, tmp_path):
    outcome = bertdata(
        "create-pretraining-data",
        f"--input_file={corpus[0]}",
        f"--vocab_file={small_vocabulary_file}",
        f"--output_file={tmp_path / 'a'},{tmp_path / 'a'}",
    )
    outcome.assert_one_error(2, "--output_file", "names an output twice")


# --- pick-eval ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("count", [1, 7, 162, 200])
def test_picked_records_are_evenly_spaced(count, engine, dataset, bertdata, tmp_path):
    shard, picked = dataset / f"{SHARD}.tfrecord", tmp_path / "picked"
    outcome = bertdata("pick-eval", shard, picked, "--num-examples", count, "--engine", engine)
    repeats = ", 38 of them repeats" if count == 200 else ""
    assert (outcome.status, outcome.out) == (0, f"{picked}: {count} of 162 records{repeats}\n")
    told = "holds 162 records, 200 were asked for: 38 are picked a second time"
    assert (told in outcome.err) == bool(repeats)
    whole = records(shard.read_bytes())
    assert records(picked.read_bytes()) == [whole[int(i * (162 / count))] for i in range(count)]


def test_pick_eval_takes_the_flags_of_mlperfs_script(dataset, bertdata, tmp_path):
    shard, picked, expected = dataset / f"{SHARD}.tfrecord", tmp_path / "picked", tmp_path / "expected"
    assert bertdata("pick-eval", shard, expected, "--num-examples", 7).status == 0
    files = [f"--input_tfrecord={shard}", f"--output_tfrecord={picked}"]
    for words in (
        [*files, "--num_examples_to_pick=7"],
        [*files, "--num_examples_to_pick", 7, "--max_seq_length=64", "--max_predictions_per_seq=10"],
        [files[1], shard, "--num-examples=7"],
        [files[0], picked, "--num-examples=7"],
    ):
        picked.unlink(missing_ok=True)
        outcome = bertdata("pick-eval", *words)
        assert (outcome.status, outcome.out, outcome.err) == (0, f"{picked}: 7 of 162 records\n", "")
        assert picked.read_bytes() == expected.read_bytes()


def test_pick_eval_picks_ten_thousand_by_default_as_the_script_does(dataset, bertdata, tmp_path):
    shard, picked = dataset / f"{SHARD}.tfrecord", tmp_path / "picked"
    outcome = bertdata("pick-eval", f"--input_tfrecord={shard}", f"--output_tfrecord={picked}")
    told = f"{picked}: 10000 of 162 records, 9838 of them repeats\n"
    assert (outcome.status, outcome.out) == (0, told)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--max_seq_length=128"], "record 0: room for 64 ids, expected 128"),
        (["--max_predictions_per_seq=76"], "record 0: room for 10 masked positions, expected 76"),
    ],
)
def test_pick_eval_refuses_records_of_other_lengths_than_those_given(
    flags, words, dataset, bertdata, tmp_path
):
    shard, picked = dataset / f"{SHARD}.tfrecord", tmp_path / "picked"
    bertdata("pick-eval", shard, picked, *flags).assert_one_error(1, f"{shard}: {words}")
    assert not picked.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: INPUT"),
        (["a"], "the following arguments are required: OUTPUT"),
        (["--input_tfrecord=a"], "the following arguments are required: OUTPUT"),
        (["--input_tfrecord=a", "b", "c"], "c is one file too many"),
        (["a", "b", "--output_tfrecord=c"], "b is one file too many"),
    ],
)
def test_pick_eval_names_the_file_that_is_missing_or_too_many(words, message, bertdata):
    bertdata("pick-eval", *words).assert_one_error(2, message)


# --- md5 ----------------------------------------------------------------------------------------


def test_md5_prints_the_lines_of_md5sum_and_md5sum_accepts_them(bertdata, made, tmp_path):
    if shutil.which("md5sum") is None:
        pytest.skip("no md5sum on this system")
    odd = tmp_path / "two\nlines \\ and back"
    odd.write_text("x")
    paths = [*sorted(path for path in (made / "tfrecord").iterdir() if path.is_file()), odd]
    outcome = bertdata("md5", *paths)
    assert outcome.status == 0
    assert (
        outcome.out == subprocess.run(["md5sum", *paths], capture_output=True, text=True, check=True).stdout
    )
    sums = tmp_path / "sums"
    sums.write_text(outcome.out)
    subprocess.run(["md5sum", "--check", "--quiet", sums], check=True)
    assert bertdata("verify-md5", sums, "--anywhere").out == f"{sums}: {len(paths)} files right, sound\n"


def test_md5_names_what_it_cannot_read_and_goes_on(bertdata, made, tmp_path):
    shard = made / "tfrecord" / f"{SHARD}.tfrecord"
    outcome = bertdata("md5", tmp_path / "missing", tmp_path, shard)
    assert outcome.status == 2
    assert [line.split(": ", 2)[2] for line in outcome.err.splitlines()] == [
        f"{tmp_path / 'missing'}: no such file or directory",
        f"{tmp_path}: is a directory, expected a file",
    ]
    assert outcome.out.endswith(f"  {shard}\n")


@pytest.mark.parametrize("engine", ["native", "python"])
def test_the_content_md5_is_the_same_in_every_container(engine, bertdata, made):
    shards = [made / kind / f"{SHARD}.{kind}" for kind in KINDS]
    outcome = bertdata("md5", "--content", "--engine", engine, *shards)
    assert len({line.split()[0] for line in outcome.out.splitlines()}) == 1
    assert outcome.out.split()[0] == hashlib.md5(shards[0].read_bytes()).hexdigest()


# --- verify-md5 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "manifest.json", "MD5SUMS"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_dataset_is_sound_by_its_directory_manifest_or_md5sums(name, kind, bertdata, made):
    outcome = bertdata("verify-md5", made / kind / name)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.endswith(
        f": {7 if name == 'MD5SUMS' else 3} files right, sound\n"
    )  # it lists the manifest


def test_md5sum_accepts_the_md5sums_of_a_dataset(made):
    if shutil.which("md5sum") is None:
        pytest.skip("no md5sum on this system")
    for kind in KINDS:
        subprocess.run(["md5sum", "--check", "--quiet", "MD5SUMS"], cwd=made / kind, check=True)


def in_another_order(payload: bytes) -> bytes:
    """The example with its features in another order, as other tools write it."""
    features = decode_example(payload)
    body = b"".join(inner(encode_example({key: features[key]})) for key in sorted(features, reverse=True))
    return b"\n" + encode_varint(len(body)) + body


def inner(message: bytes) -> bytes:
    """The bytes of the message's only field."""
    heads = (message[:1] + encode_varint(len(message) - length) for length in (2, 3, 4))
    return next(message[len(head) :] for head in heads if message.startswith(head))


def test_content_accepts_another_tools_bytes_of_the_same_examples(dataset, bertdata):
    shard = dataset / f"{SHARD}.tfrecord"
    other = [in_another_order(payload) for payload in records(shard.read_bytes())]
    assert decode_example(other[0]) == decode_example(records(shard.read_bytes())[0])
    shard.write_bytes(b"".join(map(frame_payload, other)))
    plain = bertdata("verify-md5", dataset)
    assert plain.status == 1
    assert f"{shard}: wrong md5: found" in plain.out
    assert "each of its 162 records can be read" in plain.out
    assert bertdata("verify-md5", dataset, "--content").out == f"{dataset}: 3 files right, sound\n"
    shard.write_bytes(b"".join(map(frame_payload, [*other[:-2], other[-1], other[-2]])))
    swapped = bertdata("verify-md5", dataset, "--content")
    assert swapped.status == 1
    assert f"{shard}: wrong content md5: found" in swapped.out


def test_json_says_what_the_lines_say(dataset, bertdata):
    (dataset / f"{SHARD}.tfrecord").unlink()
    (dataset / "notes.txt").write_text("x")
    lines, report = bertdata("verify-md5", dataset), bertdata("verify-md5", dataset, "--json")
    assert lines.status == report.status == 1
    value = json.loads(report.out)
    assert (value["path"], value["sound"], value["right"]) == (str(dataset), False, 2)
    faults = [finding for finding in value["findings"] if finding["is_fault"]]
    for finding, line in zip(faults, lines.out.splitlines(), strict=False):
        assert line.startswith(f"{finding['file']}: {finding['status']}")
    assert len(faults) == 2


def test_a_published_table_is_searched_for_in_a_tree(bertdata, tmp_path):
    place = tmp_path / "bert" / "results"
    place.mkdir(parents=True)
    for name in ("eval.txt", "eval.md5"):
        shutil.copy(GOLDEN / "text" / "mlperf" / name, place / name)
    outcome = bertdata("verify-md5", tmp_path, "--table", "mlperf-v1.0")
    expected = {row.label for row in load_table("mlperf-v1.0")}
    assert len(outcome.out.splitlines()) >= len(expected)
    assert f"{tmp_path}/bert/results/eval.md5: " in outcome.out


def test_a_tree_that_holds_nothing_of_a_table_is_a_fault(bertdata, tmp_path):
    outcome = bertdata("verify-md5", tmp_path, "--table", "mlperf-v1.0")
    assert outcome.status == 1
    assert outcome.out.count(": missing\n") == len(load_table("mlperf-v1.0"))
    assert "holds no file of the table mlperf-v1.0" in outcome.out


def test_a_table_needs_a_directory_and_the_original_bytes(bertdata, made):
    manifest = made / "tfrecord" / "manifest.json"
    bertdata("verify-md5", manifest, "--table", "mlperf-v1.0").assert_one_error(2, "is not a directory")
    bertdata("verify-md5", made, "--table", "mlperf-v1.0", "--content").assert_one_error(
        2, "exclude each other"
    )
    bertdata("verify-md5", made, "--table", "v2").assert_one_error(
        2,
        "table 'v2' is not known; known are mlperf-v1.0, nvidia-mlperf-2048, nvidia-mlperf-4320, "
        "nvidia-mlperf-4320-shuffled, nvidia-mlperf-eval, or give a .tsv file",
    )


# --- show ---------------------------------------------------------------------------------------


def test_an_example_reads_the_same_in_every_container(bertdata, made, small_vocabulary_file):
    shown = {
        bertdata(
            "show", made / kind / f"{SHARD}.{kind}", "--vocab", small_vocabulary_file, "--index=5", "--num=3"
        ).out
        for kind in KINDS
    }
    assert len(shown) == 1
    text = shown.pop()
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("ex")] == [
        "example 5",
        "example 6",
        "example 7",
    ]
    assert text.count("  A  [CLS] ") == 3
    assert "  [MASK]  " in text


def test_the_vocabulary_beside_the_manifest_gives_the_words(bertdata, made, small_vocabulary_file):
    shard = made / "tfrecord" / f"{SHARD}.tfrecord"
    assert bertdata("show", shard).out == bertdata("show", shard, "--vocab", small_vocabulary_file).out
    assert "[MASK]" in bertdata("show", shard).out


def test_a_vocabulary_of_another_md5_beside_the_manifest_is_not_believed(bertdata, made, tmp_path):
    copy = Path(shutil.copytree(made / "tfrecord", tmp_path / "copy"))
    (copy / "vocab.txt").write_text("[MASK]\n")
    assert "  A  <2> " in bertdata("show", copy / f"{SHARD}.tfrecord").out
    outcome = bertdata("verify-md5", copy)
    assert outcome.status == 1
    assert f"{copy / 'vocab.txt'}: wrong md5: found " in outcome.out
    (copy / "vocab.txt").unlink()
    assert f"{copy / 'vocab.txt'}: missing" in bertdata("verify-md5", copy).out.splitlines()


def test_without_a_vocabulary_ids_are_shown_and_no_kind_of_mask_is_guessed(bertdata, made, tmp_path):
    shard = shutil.copy(made / "tfrecord" / f"{SHARD}.tfrecord", tmp_path)
    text = bertdata("show", shard).out
    assert "  A  <2> " in text
    assert "changed <" in text
    assert "random  <" not in text
    assert "[MASK]" not in text


def test_more_examples_than_there_are_show_the_rest(bertdata, made):
    text = bertdata("show", made / "hdf5" / f"{SHARD}.hdf5", "--index=160", "--num=99").out
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("ex")] == [
        "example 160",
        "example 161",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_outside_the_shard_is_wrong_usage(kind, bertdata, made):
    shard = made / kind / f"{SHARD}.{kind}"
    bertdata("show", shard, "--index=162").assert_one_error(
        2, "--index 162", "holds 162 examples, the last is 161"
    )
    bertdata("show", shard, "--index=-1").assert_one_error(2, "--index")
    bertdata("show", shard, "--num=0").assert_one_error(2, "--num", "1 or more")


def test_another_vocabulary_than_the_datasets_is_refused(bertdata, made, small_vocabulary_file, tmp_path):
    other = tmp_path / "vocab.txt"
    other.write_text(small_vocabulary_file.read_text() + "more\n")
    outcome = bertdata("show", made / "tfrecord" / f"{SHARD}.tfrecord", "--vocab", other)
    outcome.assert_one_error(2, f"{other}: md5 ", "the shard was made with ")


def test_what_is_no_shard_is_named(bertdata, tmp_path, small_vocabulary_file):
    bertdata("show", tmp_path / "missing").assert_one_error(2, "missing: no such file or directory")
    bertdata("show", tmp_path).assert_one_error(2, "is a directory, expected a file")
    bertdata("show", small_vocabulary_file).assert_one_error(
        1, "vocab.txt: record 0: ", "not a TFRecord file"
    )


# --- convert ------------------------------------------------------------------------------------


def test_a_shard_survives_all_containers_in_turn(bertdata, made, tmp_path):
    first = made / "tfrecord" / f"{SHARD}.tfrecord"
    places = [
        tmp_path / name for name in ("a.hdf5", "b.parquet", "c.tfrecord", "d.parquet", "e.h5", "f.tfrecord")
    ]
    for source, target in zip([first, *places], places, strict=False):
        outcome = bertdata("convert", source, target)
        assert (outcome.status, outcome.out) == (0, f"{target}: 162 examples\n")
    assert places[2].read_bytes() == places[5].read_bytes() == first.read_bytes()
    for kind in ("hdf5", "parquet"):
        assert (made / kind / f"{SHARD}.{kind}").read_bytes() == places[KINDS.index(kind) - 1].read_bytes()


def test_a_target_of_unknown_ending_is_wrong_usage(bertdata, made, tmp_path):
    source = made / "tfrecord" / f"{SHARD}.tfrecord"
    outcome = bertdata("convert", source, tmp_path / "shard.csv")
    outcome.assert_one_error(2, "shard.csv: ends in .csv, expected one of .tfrecord, .hdf5, .parquet")
    assert files_below(tmp_path) == []


def test_a_missing_source_leaves_no_target(bertdata, tmp_path):
    bertdata("convert", tmp_path / "missing.tfrecord", tmp_path / "new.hdf5").assert_one_error(
        2, "missing.tfrecord"
    )
    assert files_below(tmp_path) == []


def test_a_damaged_source_leaves_an_earlier_target_as_it_was(bertdata, dataset, tmp_path):
    source = dataset / f"{SHARD}.tfrecord"
    source.write_bytes(source.read_bytes()[:-9])
    older = b"\x89HDF\r\n\x1a\n of an older run"
    (tmp_path / "old.hdf5").write_bytes(older)
    bertdata("convert", source, tmp_path / "old.hdf5").assert_one_error(1, "record 161")
    assert (tmp_path / "old.hdf5").read_bytes() == older


# --- train-vocab --------------------------------------------------------------------------------


def test_a_vocabulary_is_the_same_whatever_the_hash_seed(corpus, tmp_path):
    for seed in ("0", "4242"):
        process = start(
            "train-vocab",
            *corpus,
            "--output",
            tmp_path / seed,
            "--size=2000",
            environment={"PYTHONHASHSEED": seed},
        )
        outcome = finish(process)
        assert (outcome.status, outcome.out) == (0, f"{tmp_path / seed}: 2000 tokens\n")
    assert (tmp_path / "0").read_bytes() == (tmp_path / "4242").read_bytes()


def test_a_vocabulary_of_impossible_size_or_text_is_refused_and_leaves_no_file(bertdata, corpus, tmp_path):
    place = tmp_path / "out"
    place.mkdir()
    (tmp_path / "empty.txt").write_text("\n")
    train = ("train-vocab", "--output", place / "vocab.txt")
    bertdata(*train, *corpus, "--size=5").assert_one_error(2, "size is 5")
    bertdata(*train, *corpus, "--size=50").assert_one_error(2, "size is 50, but the text has")
    bertdata(*train, tmp_path / "empty.txt", "--size=50").assert_one_error(1, "empty.txt", "no words")
    bertdata(*train, tmp_path / "missing.txt", "--size=50").assert_one_error(2, "missing.txt: no such file")
    assert files_below(place) == []


# --- other file systems -------------------------------------------------------------------------


@pytest.fixture
def memory() -> str:
    """A fresh directory of fsspec's file system in memory."""
    files = fsspec.filesystem("memory")
    if files.exists("/test"):
        files.rm("/test", recursive=True)
    return "memory://test"


def test_every_command_works_on_remote_paths(memory, bertdata, corpus, small_vocabulary_file, made):
    files = fsspec.filesystem("memory")
    for part in corpus:
        files.pipe(f"/test/text/{part.name}", part.read_bytes())
    files.pipe("/test/vocab.txt", small_vocabulary_file.read_bytes())
    command = [
        "create",
        f"{memory}/text/part-*",
        "--output",
        f"{memory}/out",
        "--vocab",
        f"{memory}/vocab.txt",
    ]
    assert bertdata(*command, *SMALL).status == 0
    local = contents(made / "tfrecord")
    assert {name: files.cat(f"/test/out/{name}") for name in local} == local
    assert len(files.find("/test/out")) == len(local)

    shard = f"{memory}/out/{SHARD}.tfrecord"
    assert bertdata("verify-md5", f"{memory}/out").out == f"{memory}/out: 3 files right, sound\n"
    assert bertdata("verify-md5", f"{memory}/out/MD5SUMS", "--content").status == 0
    shown = bertdata("show", shard, "--vocab", f"{memory}/vocab.txt").out
    assert (
        shown
        == bertdata("show", made / "tfrecord" / f"{SHARD}.tfrecord", "--vocab", small_vocabulary_file).out
    )
    assert bertdata("md5", f"{memory}/out/*.tfrecord").out.count("\n") == 3
    assert bertdata("convert", shard, "memory://test.hdf5").status == 0
    assert (
        bertdata("md5", "--content", "memory://test.hdf5").out.split()[0]
        == bertdata("md5", shard).out.split()[0]
    )
    assert bertdata("pick-eval", shard, f"{memory}/picked", "--num-examples=3").status == 0

    bertdata(*command, *SMALL, "--dupe-factor=2").assert_one_error(2, "was made with other settings")
    files.rm(f"/test/out/{SHARD}.tfrecord")
    assert bertdata("verify-md5", f"{memory}/out").out.startswith(f"{shard}: missing\n")
    assert f"made {SHARD}" in bertdata(*command, *SMALL).err
    assert {name: files.cat(f"/test/out/{name}") for name in local} == local


def test_a_missing_remote_file_or_file_system_is_named(memory, bertdata):
    bertdata("show", f"{memory}/missing").assert_one_error(2, f"{memory}/missing: no such file or directory")
    bertdata("show", "nowhere://x").assert_one_error(2, "nowhere://x: ", "nowhere")


def test_file_urls_are_local_paths(made, bertdata):
    assert bertdata("verify-md5", f"file://{made}/tfrecord").status == 0


# --- progress -----------------------------------------------------------------------------------


@pytest.fixture
def create_all(corpus, small_vocabulary_file, tmp_path) -> list[object]:
    return ["create", *corpus, "--output", tmp_path / "out", "--vocab", small_vocabulary_file, *SMALL]


def test_progress_is_plain_lines_where_there_is_no_terminal(create_all):
    outcome = finish(start(*create_all))
    assert outcome.status == 0
    assert outcome.err.count("\n") == outcome.err.count("made part-") == 3
    assert "\x1b" not in outcome.err


def test_progress_is_a_bar_on_a_terminal_and_warnings_are_not_lost(create_all, tmp_path):
    part = tmp_path / "one-document"
    part.write_text("the house is old .\nit stands by a river .\n")
    seen = on_a_terminal(create_all[0], part, *create_all[1:])
    assert "creating shards" in seen
    assert "━" in seen
    assert "warning: " in seen
    assert "made part-" not in seen
    assert re.search(r"4/4 shards, [1-9][\d,]* tokens/s", seen)


def test_kept_shards_make_no_speed_on_a_terminal(create_all):
    assert finish(start(*create_all)).status == 0
    assert "3/3 shards, 0 tokens/s" in on_a_terminal(*create_all)


def test_verification_shows_a_bar_on_a_terminal(made):
    seen = on_a_terminal("verify-md5", made / "tfrecord")
    assert "verifying" in seen
    assert "━" in seen

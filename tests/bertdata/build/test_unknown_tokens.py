"""[UNK] is counted in each part, told by manifest and stats, and warned of; so is the casing."""

import json
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from bertdata.config.dialects import find_dialect
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import dump_json
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.support.commands import SMALL, Outcome, Program, contents

SETTINGS = SMALL[:-1]  # --workers is no flag of the pipeline
SHUFFLE = ("--shuffle", "global", "--num-shards", "2")
GERMAN = """\
Am Morgen geht die Nachbarin mit ihrem Hund durch den Garten.
Der Regen hat aufgehört, und auf den Blättern glänzt noch das Wasser.
Ihr Sohn wartet am Tor, weil der Bus heute später kommt.

Im Hafen liegen drei Schiffe aus Norwegen.
Die Matrosen tragen Kisten an Land und erzählen von Stürmen.
Ein Kind fragt den Kapitän, wie tief das Meer ist.
Er lacht und zeigt auf den Leuchtturm.

Das Museum der Stadt zeigt Uhren aus vier Jahrhunderten.
Manche gehen noch auf die Minute genau.
Die Besucher staunen über die Zahnräder, die kleiner sind als ein Reiskorn.
"""
CASED_UNKNOWN = "tokens are [UNK], more than 2%"
CASING = "no token has a capital letter, but the text keeps its case"


@pytest.fixture
def german(tmp_path: Path) -> list[Path]:
    """Two parts, of the same sentences in another order of documents."""
    documents = GERMAN.split("\n\n")
    paths = [tmp_path / "parts" / f"part-{number}" for number in range(2)]
    paths[0].parent.mkdir()
    for path, order in zip(paths, (documents, documents[::-1] + documents[:2]), strict=True):
        path.write_text("\n\n".join(document.strip() for document in order) + "\n")
    return paths


@pytest.fixture
def make(bertdata: Program, capsys: pytest.CaptureFixture[str], small_vocabulary_file: Path):
    """``create``, or the Beam pipeline, with the uncased vocabulary of the sample corpus."""

    def call(route: str, parts: list[Path], output: Path, *flags: object) -> Outcome:
        common = [*map(str, parts), "--output", str(output), "--vocab", str(small_vocabulary_file), *SETTINGS]
        if route == "create":
            return bertdata("create", *common, "--workers", 1, *flags)
        capsys.readouterr()
        status = prepare(["--input", *common, *map(str, flags)])
        printed = capsys.readouterr()
        return Outcome(status, printed.out, printed.err)

    return call


def manifest(directory: Path) -> dict:
    return json.loads((directory / "manifest.json").read_text())


def own_count(part: Path, vocabulary: Path, lower_case: bool) -> tuple[int, int]:
    """[UNK] and all tokens of a part by the readable tokeniser, id by id."""
    dialect = find_dialect("mlperf")
    found = parse_vocabulary(vocabulary.read_bytes(), "vocabulary", dialect)
    tokenizer = WordPieceTokenizer(found, dialect, lower_case=lower_case, engine="python")
    ids = list(tokenizer.encode([part.read_bytes()], [part.name]).ids)
    return sum(token == found.unk for token in ids), len(ids)


@pytest.mark.parametrize("case", ["--lower-case", "--no-lower-case"])
def test_every_route_and_engine_counts_the_same_in_the_manifest(
    case: str, make, german: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    runs = [("create", "native"), ("create", "python"), ("Beam", "native"), ("Beam", "python")]
    for number, (route, engine) in enumerate(runs):
        assert make(route, german, tmp_path / str(number), case, "--engine", engine).status == 0
    expected = contents(tmp_path / "0")
    assert [contents(tmp_path / str(number)) for number in (1, 2, 3)] == [expected] * 3
    inputs = manifest(tmp_path / "0")["inputs"]
    counts = [own_count(part, small_vocabulary_file, case == "--lower-case") for part in german]
    assert [(entry["unknown_tokens"], entry["tokens"]) for entry in inputs] == counts
    share = counts[0][0] / counts[0][1]
    assert 0.1 < share < 0.5 if case == "--no-lower-case" else share < 0.1


def test_a_global_shuffle_counts_the_same(make, german: list[Path], tmp_path: Path) -> None:
    for engine in ("native", "python"):
        output = tmp_path / engine
        assert make("Beam", german, output, "--no-lower-case", *SHUFFLE, "--engine", engine).status == 0
    assert make("create", german, tmp_path / "create", "--no-lower-case", *SHUFFLE).status == 0
    assert contents(tmp_path / "native") == contents(tmp_path / "python") == contents(tmp_path / "create")
    assert make("create", german, tmp_path / "plain", "--no-lower-case").status == 0
    assert manifest(tmp_path / "native")["inputs"] == manifest(tmp_path / "plain")["inputs"]
    again = make("Beam", german, tmp_path / "native", "--no-lower-case", *SHUFFLE)
    assert again.status == 0
    assert "shards_kept 2 " in " ".join(again.out.split()) + " "


@pytest.mark.parametrize(
    ("route", "flags"), [("create", ()), ("create", SHUFFLE), ("Beam", ()), ("Beam", SHUFFLE)]
)
def test_cased_text_under_an_uncased_vocabulary_warns_of_casing_and_of_each_part(
    route: str, flags: tuple[str, ...], make, german: list[Path], tmp_path: Path
) -> None:
    outcome = make(route, german, tmp_path / "out", "--no-lower-case", *flags)
    assert outcome.status == 0
    lines = [line for line in outcome.err.splitlines() if "warning" in line]
    assert sum(CASING in line and "leave out --no-lower-case" in line for line in lines) == 1
    assert CASING in lines[0]
    for part in german:
        assert sum(f"{part}: " in line and CASED_UNKNOWN in line for line in lines) == 1


@pytest.mark.parametrize("route", ["create", "Beam"])
def test_a_dry_run_warns_of_the_casing(route: str, make, german: list[Path], tmp_path: Path) -> None:
    outcome = make(route, german, tmp_path / "out", "--no-lower-case", "--dry-run")
    (line,) = outcome.err.splitlines()
    assert CASING in line
    assert make(route, german, tmp_path / "out", "--dry-run").err == ""


def test_a_cased_vocabulary_under_lower_casing_warns(
    bertdata: Program, corpus: list[Path], german: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("tokenizers")
    vocabulary = tmp_path / "cased.txt"
    learned = ("train-vocab", *corpus, *german, "--no-lower-case", "--output", vocabulary, "--size", 1500)
    assert bertdata(*learned).status == 0
    flags = ("--output", tmp_path / "out", "--vocab", vocabulary, *SMALL)
    lowered = bertdata("create", *german, *flags)
    assert "tokens have a capital letter, but the text is lower-cased" in lowered.err
    assert "add --no-lower-case" in lowered.err
    assert "warning" not in bertdata("create", *german, *flags, "--no-lower-case", "--dry-run").err


def test_the_drop_in_warns_of_both(
    bertdata: Program, german: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    flags = ("--vocab_file", small_vocabulary_file, "--output_file", tmp_path / "out.tfrecord")
    inputs = ("--input_file", ",".join(map(str, german)))
    outcome = bertdata("create-pretraining-data", *inputs, *flags, "--do_lower_case=false")
    assert outcome.status == 0
    casing, unknown = [line for line in outcome.err.splitlines() if "warning" in line]
    assert CASING in casing
    assert "give --do_lower_case=true" in casing
    assert f"{german[0]}, {german[1]}: " in unknown
    assert CASED_UNKNOWN in unknown


def test_training_warns_of_both(make, german: list[Path], tmp_path: Path, request) -> None:
    pytest.importorskip("torch")
    trainer = request.getfixturevalue("trainer")
    assert make("create", german, tmp_path / "set", "--no-lower-case").status == 0
    run = ("--train-data", tmp_path / "set", "--output-dir", tmp_path / "run", "--config", "tiny")
    outcome = trainer("pretrain", *run, "--steps", 1, "--batch-size", 2, "--device", "cpu")
    assert outcome.status == 0, outcome.err
    warnings = [line for line in outcome.err.splitlines() if "warning" in line]
    assert sum(CASING in line and "without --no-lower-case" in line for line in warnings) == 1
    assert sum(f"{tmp_path / 'set'}: " in line and CASED_UNKNOWN in line for line in warnings) == 1


def test_stats_tells_the_share_of_the_inputs(
    make, bertdata: Program, german: list[Path], small_vocabulary_file: Path, tmp_path: Path
) -> None:
    assert make("create", german, tmp_path / "out", "--no-lower-case").status == 0
    counts = [own_count(part, small_vocabulary_file, False) for part in german]
    unknown, tokens = sum(count for count, _ in counts), sum(total for _, total in counts)
    (found,) = json.loads(bertdata("stats", tmp_path / "out", "--json").out)["datasets"]
    assert (found["unknown_tokens"], found["input_tokens"]) == (unknown, tokens)
    assert found["unknown_share"] == pytest.approx(unknown / tokens, abs=1e-6)
    text = bertdata("stats", tmp_path / "out").out
    assert f"{unknown / tokens:.2%} of the {tokens:,} tokens of the inputs" in text


def test_a_manifest_of_an_older_version_without_the_count_is_sound_and_goes_on(
    make, bertdata: Program, german: list[Path], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    assert make("create", german, output, "--no-lower-case").status == 0
    older = manifest(output)
    for entry in older["inputs"]:
        del entry["unknown_tokens"]
    path, sums = output / "manifest.json", output / "MD5SUMS"
    lines = sums.read_text().replace(compute_md5(path.read_bytes()), compute_md5(dump_json(older)))
    path.write_bytes(dump_json(older))
    sums.write_text(lines)
    assert bertdata("verify-md5", output).status == 0
    (found,) = json.loads(bertdata("stats", output, "--json").out)["datasets"]
    assert (found["unknown_tokens"], found["unknown_share"]) == (None, None)
    assert "[UNK]" not in bertdata("stats", output).out
    again = make("create", german, output, "--no-lower-case")
    assert again.status == 0
    assert "kept" in again.err
    assert manifest(output) == older

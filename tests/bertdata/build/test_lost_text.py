"""Text that no example holds is counted and told. Each word of these texts stands once: the ids say which."""

import json
from pathlib import Path

import pytest

from beam_pipelines import prepare
from bertdata import create, open_dataset
from tests.support.commands import Program
from tests.support.plain_objective import NAME as UNCOUNTED

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LINES = [[9, 70, 5], [40, 3, 66, 8], [120], [6, 7]]
"""Words of each line, by document. An example below has room for 29 or more."""
WORDS = sum(sum(document) for document in LINES)

OBJECTIVES = {
    "bert": ("--recipe=google", "--dupe-factor=1", "--max-predictions-per-seq=5"),
    "bert, several passes": ("--recipe=google", "--dupe-factor=4", "--max-predictions-per-seq=5"),
    "bert, lengths in bins": (
        "--recipe=google",
        "--dupe-factor=2",
        "--max-predictions-per-seq=5",
        "--bin-size=8",
    ),
    "bert, documents mixed": (
        "--recipe=google",
        "--dupe-factor=1",
        "--max-predictions-per-seq=5",
        "--shuffle=global",
        "--num-shards=2",
    ),
    "sop": ("--objective=sop", "--dupe-factor=2", "--max-predictions-per-seq=5"),
    "electra": ("--objective=electra",),
    "mlm": ("--objective=mlm",),
    "span": ("--objective=span",),
    "span as its program": ("--objective=span", "--as-original"),
}


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A text of distinct words, and beside it v.txt, a vocabulary of them."""
    words = iter([f"w{number}" for number in range(WORDS)])
    (tmp_path / "v.txt").write_text("\n".join([*SPECIAL, *(f"w{number}" for number in range(WORDS))]) + "\n")
    documents = ("".join(" ".join(next(words) for _ in range(size)) + "\n" for size in one) for one in LINES)
    (tmp_path / "part.txt").write_text("\n".join(documents))
    return tmp_path / "part.txt"


def words_in_no_example(made: Path) -> int:
    """Count the words of the text of which no example has the id, its masks taken back."""
    held: set[int] = set()
    for example in open_dataset(made, unverified=made.is_file()):
        ids = list(map(int, example.ids))
        for position, label in zip(
            getattr(example, "positions", ()), getattr(example, "labels", ()), strict=True
        ):
            ids[int(position)] = int(label)
        held.update(ids)
    return len(set(range(len(SPECIAL), len(SPECIAL) + WORDS)) - held)


def stats_of(bertdata: Program, directory: Path) -> dict:
    return json.loads(bertdata("stats", directory, "--json").out)["datasets"][0]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("flags", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_the_manifest_counts_the_tokens_that_no_example_holds(
    flags: tuple[str, ...], engine: str, part: Path, bertdata: Program, tmp_path: Path
) -> None:
    common = ("--vocab", tmp_path / "v.txt", "--max-seq-length=32", "--engine", engine)
    made = bertdata("create", part, "--output", tmp_path / "out", *common, *flags)
    assert made.status == 0, made.err
    lost = words_in_no_example(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["totals"]["lost_tokens"] == lost
    assert sum(shard["lost_tokens"] for shard in manifest["shards"]) == lost
    told = f"{lost / WORDS:.1%} of the text"
    assert (f", {told} in no example" in made.out) == (lost > 0)
    assert (f"{told} ({lost} of {WORDS} tokens) is in no example" in made.err) == (lost > WORDS / 3)


def test_what_must_be_lost_is_and_what_need_not_is_not(part: Path, tmp_path: Path) -> None:
    """The oracle itself: a block of masked words loses nothing, BERT's pairs most of a line of 120."""
    made = {
        name: create([part], tmp_path / name, vocab=tmp_path / "v.txt", max_seq_length=32, **settings)
        for name, settings in {
            "mlm": {"objective": "mlm"},
            "bert": {"dupe_factor": 1, "max_predictions_per_seq": 5},
        }.items()
    }
    assert words_in_no_example(tmp_path / "mlm") == 0
    assert words_in_no_example(tmp_path / "bert") > 120 - 29
    assert made["mlm"].warnings == ()
    assert any("is in no example" in warning for warning in made["bert"].warnings)


def test_a_run_dealt_to_the_files_of_a_program_counts_over_all_its_inputs(
    part: Path, bertdata: Program, tmp_path: Path
) -> None:
    common = ("--vocab", tmp_path / "v.txt", "--max-seq-length=32", "--objective=electra", "--as-original")
    assert bertdata("create", part, "--output", tmp_path / "out", *common).status == 0
    lost = words_in_no_example(tmp_path / "out")
    assert 0 < lost == json.loads((tmp_path / "out" / "manifest.json").read_text())["totals"]["lost_tokens"]


@pytest.fixture
def made(part: Path, bertdata: Program, tmp_path: Path) -> Path:
    flags = ("--vocab", tmp_path / "v.txt", "--max-seq-length=32", *OBJECTIVES["bert"])
    assert bertdata("create", part, "--output", tmp_path / "out", *flags).status == 0
    return tmp_path / "out"


def test_stats_and_report_tell_the_share(made: Path, bertdata: Program, tmp_path: Path) -> None:
    lost = words_in_no_example(made)
    assert f"in no example       {lost / WORDS:.2%} of the {WORDS} tokens" in bertdata("stats", made).out
    found = stats_of(bertdata, made)
    assert (found["lost_tokens"], found["lost_share"]) == (lost, round(lost / WORDS, 6))
    assert bertdata("report", made, "--output", tmp_path / "page.html").status == 0
    rows = (tmp_path / "page.html").read_text().split("<tr")
    row = next(row for row in rows if "tokens that are in no example<" in row)
    assert f">{lost}<" in row


@pytest.mark.parametrize("command", [("pack", "--output"), ("convert",)])
def test_a_dataset_made_of_another_says_what_that_one_lost(
    command: tuple[str, ...], made: Path, bertdata: Program, tmp_path: Path
) -> None:
    name, *before = command
    flags = () if name == "pack" else ("--to", "arrow")
    outcome = bertdata(name, made, *before, tmp_path / "other", *flags)
    assert outcome.status == 0, outcome.err
    assert "of the text in no example" in outcome.out.splitlines()[-1]
    assert stats_of(bertdata, tmp_path / "other")["lost_tokens"] == words_in_no_example(made)


def test_shards_kept_of_an_earlier_run_are_told_too(
    made: Path, part: Path, bertdata: Program, tmp_path: Path
) -> None:
    before = (made / "manifest.json").read_bytes()
    flags = ("--vocab", tmp_path / "v.txt", "--max-seq-length=32", *OBJECTIVES["bert"])
    again = bertdata("create", part, "--output", made, *flags)
    assert "of the text in no example" in again.out
    assert "is in no example" in again.err
    assert (made / "manifest.json").read_bytes() == before


def test_the_drop_in_script_warns_of_it(part: Path, bertdata: Program, tmp_path: Path) -> None:
    flags = (f"--input_file={part}", f"--output_file={tmp_path / 'o'}", f"--vocab_file={tmp_path / 'v.txt'}")
    outcome = bertdata(
        "create-pretraining-data",
        *flags,
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        "--dupe_factor=1",
    )
    assert outcome.status == 0, outcome.err
    assert "is in no example" in outcome.err
    assert "or raise --max_seq_length" in outcome.err


def test_the_drop_in_script_says_a_small_share_in_a_line(
    part: Path, bertdata: Program, tmp_path: Path
) -> None:
    flags = (f"--input_file={part}", f"--output_file={tmp_path / 'o'}", f"--vocab_file={tmp_path / 'v.txt'}")
    outcome = bertdata(
        "create-pretraining-data", *flags, "--max_seq_length=110", "--dupe_factor=20", "--random_seed=1"
    )
    held = words_in_no_example(tmp_path / "o")
    assert f"in no example: {held} of the {WORDS} tokens of the text" in outcome.out
    assert outcome.err == ""


def test_beam_tells_it_in_line_warning_and_manifest(made: Path, part: Path, tmp_path: Path, capsys) -> None:
    flags = [
        "--input",
        part,
        "--output",
        tmp_path / "beam",
        "--vocab",
        tmp_path / "v.txt",
        "--max-seq-length=32",
    ]
    assert prepare.main([str(flag) for flag in [*flags, *OBJECTIVES["bert"]]]) == 0
    told, lost = capsys.readouterr(), words_in_no_example(made)
    assert f", {lost / WORDS:.1%} of the text in no example" in told.out
    assert f"({lost} of {WORDS} tokens) is in no example" in told.err
    assert (tmp_path / "beam" / "manifest.json").read_bytes() == (made / "manifest.json").read_bytes()


def test_an_objective_of_a_user_s_own_that_does_not_count_says_nothing(
    part: Path, bertdata: Program, tmp_path: Path
) -> None:
    common = ("--vocab", tmp_path / "v.txt", "--max-seq-length=32", "--objective", UNCOUNTED)
    outcome = bertdata("create", part, "--output", tmp_path / "out", *common)
    assert outcome.status == 0, outcome.err
    assert "in no example" not in outcome.out + outcome.err + bertdata("stats", tmp_path / "out").out
    assert "lost_tokens" not in (tmp_path / "out" / "manifest.json").read_text()

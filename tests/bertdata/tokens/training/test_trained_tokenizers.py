"""``train-vocab``: a tokenizer.json of each kind."""

import json
import os
import pty
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bertdata.tokens.load import load_tokenizer
from bertdata.tokens.training.special_tokens import KINDS
from bertdata.unicode.tables import load_bert_normalizer_differences
from schemas import load_schema
from schemas.faults import first_fault
from tests.support.commands import Program, files_below, finish, start
from tests.support.record_files import make_documents, write

tokenizers = pytest.importorskip("tokenizers")

KIND = pytest.mark.parametrize("kind", KINDS)
TEXT = "The old harbour of Århus; 東京 and München!"


@pytest.fixture
def train(bertdata: Program, corpus: list[Path], tmp_path: Path) -> Any:
    """Trains on the sample corpus and reads the tokenizer.json."""

    def run(kind: str, *flags: object, size: int = 1200) -> dict[str, Any]:
        if kind == "unigram":
            pytest.importorskip("sentencepiece")
        path = tmp_path / f"{kind}.json"
        words = ("train-vocab", *corpus, "--output", path, "--size", size, "--kind", kind, *flags)
        assert bertdata(*words).status == 0
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    return run


def added(found: dict[str, Any]) -> dict[str, int]:
    return {token["content"]: token["id"] for token in found["added_tokens"]}


@KIND
@pytest.mark.thorough_after_first
def test_a_tokenizer_is_the_same_in_every_process(kind: str, corpus: list[Path], tmp_path: Path) -> None:
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    paths = [tmp_path / f"{seed}.json" for seed in (0, 1, 4242)]
    for path in paths:
        flags = ("--output", path, "--size=1200", "--kind", kind)
        environment = {"PYTHONHASHSEED": path.stem, "RAYON_NUM_THREADS": "2"}
        outcome = finish(start("train-vocab", *corpus, *flags, environment=environment))
        assert (outcome.status, outcome.out) == (0, f"{path}: 1200 tokens\n")
    assert len({path.read_bytes() for path in paths}) == 1


@KIND
def test_transformers_loads_the_file(kind: str, train: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    train(kind)
    path = tmp_path / "model" / "tokenizer.json"
    path.parent.mkdir()
    (tmp_path / f"{kind}.json").rename(path)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(path.parent)
    assert len(tokenizer) == 1200
    words = {"wordpiece": ("[CLS]", "[SEP]", "[SEP]")}.get(kind, ("<s>", "</s>", "</s></s>"))
    text = tokenizer.decode(tokenizer(TEXT, "b").input_ids).replace(" ", "")
    first = "theoldharbourofarhus;東京andmunchen!" if kind == "wordpiece" else TEXT.replace(" ", "")
    assert text == f"{words[0]}{first}{words[2]}b{words[1]}"


def test_layouts_of_roles(train: Any) -> None:
    roberta = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 1199}
    assert added(train("wordpiece")) == {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    found = train("bpe")
    assert added(found) == roberta
    assert [token["content"] for token in found["added_tokens"] if token["lstrip"]] == ["<mask>"]
    assert added(train("unigram")) == roberta


@KIND
def test_special_tokens_are_added_or_put_in_the_place_of_a_role(kind: str, train: Any) -> None:
    special = ("--special", "<city>", "mask=[M]", "--special", "sep=|", "a=b")
    found = train(kind, *special)
    first, last = (["<city>", "a=b"], ["[M]"]) if kind != "wordpiece" else (["[M]", "<city>", "a=b"], [])
    names = ["[PAD]", "[UNK]", "[CLS]", "|"] if kind == "wordpiece" else ["<s>", "<pad>", "|", "<unk>"]
    ids = {token: number for number, token in enumerate([*names, *first])}
    assert added(found) == ids | dict.fromkeys(last, 1199)
    encoded = tokenizers.Tokenizer.from_str(json.dumps(found)).encode("near <city> the [M]")
    assert [token.strip() for token in encoded.tokens if token.strip() in (*ids, *last)] == [
        names[2] if kind == "wordpiece" else "<s>",
        "<city>",
        "[M]",
        "|",
    ]


def test_a_wordpiece_tokenizer_has_the_tokens_of_the_vocabulary_where_both_read_the_text_alike(
    bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in corpus)
    alike = {
        point: None for first, last in load_bert_normalizer_differences() for point in range(first, last + 1)
    }
    text = re.sub(r"\S{101,}", "", text.translate(alike)).replace("Σ", "")
    (tmp_path / "text").write_text(text, encoding="utf-8")
    for name in ("vocab.txt", "vocab.json"):
        bertdata("train-vocab", tmp_path / "text", "--output", tmp_path / name, "--size", 1200)
    expected = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    found = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    assert list(found["model"]["vocab"]) == expected


def test_a_wordpiece_tokenizer_lower_cases_unless_told(train: Any) -> None:
    assert train("wordpiece")["normalizer"]["lowercase"] is True
    assert train("wordpiece", "--no-lower-case", size=1500)["normalizer"]["lowercase"] is False


def write_blob(path: Path, characters: int) -> None:
    """200 lines of prose, and one word that is none."""
    letters = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=characters))
    prose = "a cat sat on the mat and slept\n" * 200
    path.write_text(f"{prose}\n{letters}\n\n{prose}")


@pytest.mark.parametrize(
    ("kind", "name", "limit", "effect"),
    [
        ("wordpiece", "vocab.txt", 200, "such a word becomes [UNK]"),
        ("wordpiece", "vocab.json", 100, "such a word becomes [UNK]"),
        ("bpe", "vocab.json", 1000, "such a word is hardly text"),
    ],
    ids=["lines", "json", "bpe"],
)
def test_a_word_that_is_too_long_is_not_learned_from_and_told(
    kind: str, name: str, limit: int, effect: str, bertdata: Program, tmp_path: Path
) -> None:
    """A word as long as the limit counts; one that is a character longer leaves no trace."""
    made = []
    for characters in (limit, limit + 1, 60_000, 0):
        write_blob(tmp_path / "text", characters)
        words = ("train-vocab", tmp_path / "text", "--output", tmp_path / name, "--size=500", "--kind", kind)
        outcome = bertdata(*words)
        assert outcome.status == 0
        made.append((tmp_path / name).read_bytes())
        begins = (tmp_path / "text").read_text().split("\n")[201][:20]
        told = (
            f"bertdata: warning: {tmp_path / name}: does not learn from 1 word of more than {limit} "
            f"characters, as {effect}; the longest has {characters} and begins {begins!r}\n"
        )
        assert outcome.err == (told if characters > limit else "")
    assert made[0] != made[1]
    assert made[1] == made[2] == made[3]


def test_a_special_token_that_a_vocabulary_of_lines_never_gives_is_told(
    bertdata: Program, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("near the town\n")
    words = ("train-vocab", tmp_path / "text", "--size=60", "--special", "[CITY]", "city", "New York")
    outcome = bertdata(*words, "--output", tmp_path / "vocab.txt")
    assert outcome.status == 0
    assert [line.split(": ", 3)[3] for line in outcome.err.splitlines()] == [
        f"no text gives the special token {token}: with a vocabulary of lines it is split into {split}; a "
        "tokenizer.json finds it whole (--output NAME.json)"
        for token, split in (("[CITY]", "[ city ]"), ("New York", "new york"))
    ]
    tokenizer = load_tokenizer(str(tmp_path / "vocab.txt"), "google", lower_case=True)
    tokens = (tmp_path / "vocab.txt").read_text().split("\n")
    ids = tokenizer.encode_each(["[CITY] New York"]).ids
    assert not {tokens.index("[CITY]"), tokens.index("New York")} & set(ids)
    assert tokens.index("city") in ids
    assert bertdata(*words, "--output", tmp_path / "vocab.json").err == ""
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "vocab.json"))
    assert tokenizer.encode("[CITY] New York", add_special_tokens=False).tokens == ["[CITY]", "New York"]


@KIND
def test_a_special_token_that_the_text_holds_is_told(kind: str, bertdata: Program, tmp_path: Path) -> None:
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text("the MASK of the MASK\n")
    path = tmp_path / "vocab.json"
    flags = ("--output", path, "--size=300", "--kind", kind, "--special", "mask=MASK")
    outcome = bertdata("train-vocab", tmp_path / "text", *flags)
    assert outcome.status == 0
    assert outcome.err == (
        f"bertdata: warning: {path}: the text holds special tokens, written out (how often): MASK (2); there "
        "the tokeniser gives the special token's id, not a word's; --special takes others that the text does "
        "not hold\n"
    )
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    assert tokenizer.token_to_id("MASK") in tokenizer.encode("the MASK of").ids


def test_a_word_of_the_text_that_is_a_special_token_of_lines_is_told(
    bertdata: Program, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("the city near the City, not cities\n")
    path = tmp_path / "vocab.txt"
    flags = ("--output", path, "--size=60", "--special", "city", "town")
    outcome = bertdata("train-vocab", tmp_path / "text", *flags)
    assert (outcome.status, outcome.err.count("\n")) == (0, 1)
    assert f"{path}: the text holds special tokens, written out (how often): city (2); there" in outcome.err
    tokenizer = load_tokenizer(str(path), "google", lower_case=True)
    assert list(tokenizer.encode_each(["City"]).ids) == [path.read_text().split("\n").index("city")]


def test_a_unigram_of_a_long_text_learns_from_a_sample_and_says_so(
    bertdata: Program, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentencepiece")
    characters = 20_000
    monkeypatch.setattr("bertdata.tokens.training.unigram.MOST_CHARACTERS", characters)
    path = tmp_path / "vocab.json"
    outcome = bertdata("train-vocab", *corpus, "--output", path, "--size=1200", "--kind=unigram")
    manifest = json.loads((tmp_path / "vocab.json.manifest.json").read_bytes())
    text = manifest["text"]
    assert text["one_word_in"] > 1
    assert 2_000 < text["words"] < characters / 2
    assert outcome.err == (
        f"bertdata: warning: {path}: learns from a sample of the text, one word in {text['one_word_in']}, as "
        f"sentencepiece would hold every word in memory: {text['words']} words, {text['distinct_words']} of "
        "them distinct\n"
    )
    unknown = tokenizers.Tokenizer.from_file(str(path))
    text = "".join(path.read_text(encoding="utf-8") for path in corpus)
    assert unknown.token_to_id("<unk>") not in unknown.encode(text).ids


@pytest.mark.parametrize(
    ("name", "kind"), [("vocab.txt", "wordpiece"), ("vocab.json", "unigram"), ("vocab.json", "bpe")]
)
def test_a_manifest_beside_the_vocabulary_names_releases_and_is_verified(
    name: str, kind: str, bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    packages = ("tokenizers", "sentencepiece") if kind == "unigram" else ("tokenizers",)
    releases = {package: pytest.importorskip(package).__version__ for package in packages}
    path, beside = tmp_path / name, tmp_path / f"{name}.manifest.json"
    flags = ("--output", path, "--size=1200", "--kind", kind, "--special", "<city>")
    assert bertdata("train-vocab", *corpus, *flags).status == 0
    manifest = json.loads(beside.read_bytes())
    assert manifest["versions"] == releases
    assert manifest["settings"] == {
        "kind": kind, "size": 1200, "lower_case": kind == "wordpiece", "special": ["<city>"],
    }  # fmt: skip
    assert first_fault(manifest, load_schema("vocabulary_manifest")) is None
    outcome = bertdata("verify-md5", beside)
    assert (outcome.status, outcome.out) == (0, f"{beside}: 1 file right, sound\n")
    path.write_bytes(path.read_bytes().swapcase())
    outcome = bertdata("verify-md5", beside)
    assert outcome.status == 1
    assert outcome.out.startswith(f"{path}: wrong md5: found ")


def test_the_manifest_says_that_accents_are_kept(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Århus\n", encoding="utf-8")
    path, manifests = tmp_path / "vocab.txt", []
    for flags in (("--keep-accents",), ()):
        assert bertdata("train-vocab", tmp_path / "text", "--output", path, "--size=40", *flags).status == 0
        manifests.append(json.loads(Path(f"{path}.manifest.json").read_bytes()))
    assert [manifest["settings"].get("keep_accents") for manifest in manifests] == [True, None]
    assert first_fault(manifests[0], load_schema("vocabulary_manifest")) is None


def test_the_manifest_replaces_no_input_and_no_other_file(bertdata: Program, tmp_path: Path) -> None:
    output, beside = tmp_path / "vocab.txt", tmp_path / "vocab.txt.manifest.json"
    beside.write_text("a cat and a dog\n")
    flags = ("--output", output, "--size=40", "--special", "x")
    outcome = bertdata("train-vocab", beside, *flags)
    outcome.assert_one_error(2, f"{beside}: is an input")
    (tmp_path / "text").write_text("a cat and a dog\n")
    outcome = bertdata("train-vocab", tmp_path / "text", *flags)
    outcome.assert_one_error(2, f"{beside}: is there and is not the manifest of a vocabulary; ")
    assert (beside.read_text(), output.exists()) == ("a cat and a dog\n", False)
    for more in (("--overwrite",), ()):
        assert bertdata("train-vocab", tmp_path / "text", *flags, *more).status == 0


def test_a_long_training_tells_what_it_reads_and_learns_from(
    bertdata: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertdata.steps.vocabulary_progress._SMALL", 1000)
    monkeypatch.setattr("bertdata.tokens.training.texts._BLOCK_BYTES", 400)
    (tmp_path / "text").write_text("a cat sat on the mat\n" * 95)
    outcome = bertdata("train-vocab", tmp_path / "text", "--output", tmp_path / "v", "--size=50")
    assert [line.removeprefix(f"{tmp_path / 'v'}: ") for line in outcome.err.splitlines()] == [
        "read 400 of 1995 bytes",
        "read 800 of 1995 bytes",
        "read 1200 of 1995 bytes",
        "read 1600 of 1995 bytes",
        "read 1995 of 1995 bytes",
        "learning from 570 words, 6 of them distinct",
    ]


@pytest.mark.parametrize(
    ("kind", "name"), [("wordpiece", "vocab.txt"), *((kind, "t.json") for kind in KINDS)]
)
def test_the_libraries_write_nothing_to_a_terminal(
    kind: str, name: str, bertdata: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program shows its own progress. Here it goes to the captured ``sys.stderr``."""
    if kind == "unigram":
        pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text("a cat sat on the mat\n" * 95)
    flags = ("--output", tmp_path / name, "--kind", kind, "--size", "270" if kind == "bpe" else "22")
    monkeypatch.setenv("TERM", "xterm-256color")
    with terminal_as_stderr() as terminal:
        assert bertdata("train-vocab", tmp_path / "text", *flags).status == 0
        os.write(2, b"The end")
    assert os.read(terminal, 4096) == b"The end"
    os.close(terminal)


@contextmanager
def terminal_as_stderr() -> Iterator[int]:
    """Make a terminal the process's standard error in a block of code. Gives the file to read from."""
    terminal, end = pty.openpty()
    os.set_blocking(end, False)  # nothing is read during the block, so a full terminal must not stop it
    kept = os.dup(2)
    os.dup2(end, 2)
    try:
        yield terminal
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(end)


@pytest.mark.parametrize("package", ["tokenizers", "sentencepiece"])
def test_a_release_that_is_too_old_is_refused_in_one_line(
    package: str, bertdata: Program, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pytest.importorskip(package), "__version__", "0.19.1" if package == "tokenizers" else "0.1.99"
    )
    flags = ("--output", tmp_path / "t.json", "--size=1200", "--kind=unigram")
    outcome = bertdata("train-vocab", *corpus, *flags)
    outcome.assert_one_error(
        2, f"needs {package} 0.2", "or newer, found 0.1", "pip install --editable '.[vocab]'"
    )
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_other_kinds_keep_case_unless_told(kind: str, train: Any) -> None:
    def capitals(found: dict[str, Any]) -> list[str]:
        vocabulary = found["model"]["vocab"]
        tokens = [token if isinstance(token, str) else token[0] for token in vocabulary]
        words = [token.lstrip("Ġ▁") for token in tokens]
        return [word for word in words if len(word) > 1 and word.isascii() and word != word.lower()]

    assert capitals(train(kind))
    lower = train(kind, "--lower-case")
    assert not capitals(lower)
    encode = tokenizers.Tokenizer.from_str(json.dumps(lower)).encode
    assert encode("Harbour").ids == encode("harbour").ids


def test_a_unigram_splits_as_the_most_probable_pieces_and_knows_every_character(
    train: Any, corpus: list[Path]
) -> None:
    found = train("unigram", size=1500)
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(found))
    unknown = tokenizer.token_to_id("<unk>")
    text = "".join(path.read_text(encoding="utf-8") for path in corpus)
    assert unknown not in tokenizer.encode(text).ids
    scores = [score for piece, score in found["model"]["vocab"][4:]]
    assert scores == sorted(scores, reverse=True)
    assert max(scores) < 0


def test_words_of_a_document_are_joined_by_a_blank(bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"upon\r\nupon\r\n\r\nupon\nupon\n \nupon\n")
    bertdata("train-vocab", tmp_path / "text", "--output", tmp_path / "t.json", "--size=270", "--kind=bpe")
    vocabulary = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert [token for token, number in vocabulary.items() if number >= 260] == ["on", "pon", "upon", "Ġupon"]


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (
            ("--kind=bpe", "--size=260"),
            2,
            "size is 260, expected at least 261: 256 bytes and 5 special tokens",
        ),
        (("--kind=unigram", "--size=5"), 2, "size is 5, expected more than the 5 special tokens"),
        (
            ("--kind=unigram", "--size=20"),
            2,
            "size leaves 15 tokens beside the special ones, but the text has",
        ),
        (("--size=50",), 2, "size is 50, but the text has"),
        (("--size=900", "--special", "[PAD]"), 2, "--special [PAD]: is named twice"),
        (("--size=900", "--special", "mask="), 2, "--special '': expected a token of one line"),
    ],
)
def test_impossible_settings_are_refused_and_leave_no_file(
    flags: tuple[str, ...], status: int, message: str, bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    if "--kind=unigram" in flags:
        pytest.importorskip("sentencepiece")
    outcome = bertdata("train-vocab", *corpus, "--output", tmp_path / "tokenizer.json", *flags)
    outcome.assert_one_error(status, message)
    assert files_below(tmp_path) == []


@KIND
def test_text_without_words_is_refused(kind: str, bertdata: Program, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n \n")
    flags = ("--output", tmp_path / "t.json", "--size=300", "--kind", kind)
    bertdata("train-vocab", tmp_path / "text", *flags).assert_one_error(1, "text: no words to learn from")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--kind=bpe",), "--kind bpe makes a tokenizer.json: end the name"),
        (("--special", "mask=<mask>"), "a vocabulary of lines knows its roles by BERT's names"),
    ],
)
def test_a_vocabulary_of_lines_is_wordpiece_in_berts_layout(
    flags: tuple[str, ...], message: str, bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    outcome = bertdata("train-vocab", *corpus, "--output", tmp_path / "vocab.txt", "--size=900", *flags)
    outcome.assert_one_error(2, message)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.parquet", "a.txt"])
@pytest.mark.parametrize(
    "flags", [("wordpiece", "vocab.txt"), ("bpe", "tokenizer.json")], ids=["lines", "json"]
)
def test_records_give_the_vocabulary_of_their_parts(
    name: str, flags: tuple[str, str], bertdata: Program, tmp_path: Path
) -> None:
    kind, file = flags
    documents = make_documents(80)
    source = write(tmp_path / "in", name, documents)
    own = ["--input-kind", "blocks" if name == "a.txt" else name.split(".")[1]]
    words = ("--output", tmp_path / "parts", "--sentences", "none", "--workers", "1", *own)
    assert bertdata("segment", source, *words).status == 0
    for place, text in (("parts", (tmp_path / "parts",)), ("records", (source, *own))):
        (tmp_path / "made" / place).mkdir(parents=True)
        common = ("--output", tmp_path / "made" / place / file, "--size", "400", "--kind", kind)
        outcome = bertdata("train-vocab", *text, *common)
        assert outcome.status == 0, outcome.err
    made = [(tmp_path / "made" / place / file).read_bytes() for place in ("parts", "records")]
    assert made[0] == made[1]


def test_a_bad_record_is_named_or_left_out(bertdata: Program, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Some words here."}\n{"text": 7}\n{"text": "More words here."}\n')
    flags = ("--output", tmp_path / "vocab.txt", "--size", "40")
    bertdata("train-vocab", path, *flags).assert_one_error(1, f"{path}: record 2: its field 'text' is 7")
    assert not (tmp_path / "vocab.txt").exists()
    assert bertdata("train-vocab", path, *flags, "--skip-bad-records").status == 0
    assert "words" in (tmp_path / "vocab.txt").read_text().split()

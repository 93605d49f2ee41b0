"""``train-vocab``: a tokenizer.json of each kind."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.tokens.training.special_tokens import KINDS
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


def test_a_wordpiece_tokenizer_has_the_tokens_of_the_vocabulary(
    train: Any, bertdata: Program, corpus: list[Path], tmp_path: Path
) -> None:
    lines = tmp_path / "vocab.txt"
    bertdata("train-vocab", *corpus, "--output", lines, "--size", 1200)
    expected = lines.read_text(encoding="utf-8").split("\n")[:-1]
    assert list(train("wordpiece")["model"]["vocab"]) == expected
    assert train("wordpiece")["normalizer"]["lowercase"] is True
    assert train("wordpiece", "--no-lower-case", size=1500)["normalizer"]["lowercase"] is False


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

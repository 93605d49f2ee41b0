"""The global shuffle said plainly, over the whole sample corpus at once: ``python -m golden.shuffled``.

Writes ``shuffle/shards.txt``, which document goes where, and ``shuffle/expected.json``, what the shards
hold. Uses nothing of ``bertdata.build.shuffle``, whose twin it is.
"""

import hashlib
import json
import sys
from array import array
from dataclasses import dataclass, replace

from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.records import Documents
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import tokenize_text
from golden.cases import GOLDEN, VOCABULARY, as_expected

SETTINGS = BertSettings(max_seq_length=64, max_predictions_per_seq=10, dupe_factor=2)
SHARDS = 5
PREFIX_BITS = 12  # 256 prefixes a shard, rounded up to a power of two, at least 2 to the 12th


@dataclass(frozen=True)
class Document:
    """A document of a part, as lists of token ids."""

    part: str
    number: int
    sentences: list[list[int]]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sentences))

    @property
    def key(self) -> bytes:
        """BLAKE2b of sentence lengths (32 bits each), ids (16 bits each), part, NUL, number."""
        lengths = b"".join(len(sentence).to_bytes(4, "little") for sentence in self.sentences)
        ids = b"".join(token.to_bytes(2, "little") for sentence in self.sentences for token in sentence)
        place = f"{self.part}\0{self.number}".encode()
        return hashlib.blake2b(lengths + ids + place, digest_size=16).digest()

    @property
    def prefix(self) -> int:
        return int.from_bytes(self.key, "big") >> (128 - PREFIX_BITS)


def read_corpus() -> list[Document]:
    """All documents of the sample corpus."""
    vocabulary = parse_vocabulary(VOCABULARY.read_bytes(), "vocab.txt", SETTINGS.rules)
    found = []
    for part in sorted((GOLDEN / "corpus").glob("part-*")):
        text = tokenize_text(part.read_bytes(), vocabulary, SETTINGS.rules, engine="python")
        starts = [0, *text.sentence_ends]
        sentences = [
            list(text.ids[start:stop]) for start, stop in zip(starts, text.sentence_ends, strict=False)
        ]
        firsts = [0, *text.document_ends]
        for number, (first, last) in enumerate(zip(firsts, text.document_ends, strict=False)):
            found.append(Document(part.name, number, sentences[first:last]))
    return found


def cut(documents: list[Document]) -> list[list[Document]]:
    """The documents of each shard, in order.

    Candidates are the places between documents of different prefixes. Cut k is the candidate that
    leaves nearest to k/SHARDS of all tokens before it, the earlier of two.
    """
    ordered = sorted(documents, key=lambda document: document.key)
    total = sum(document.tokens for document in ordered)
    candidates = [
        place for place in range(1, len(ordered)) if ordered[place - 1].prefix != ordered[place].prefix
    ]
    cuts = [0]
    for shard in range(1, SHARDS):
        cuts.append(
            min(
                candidates,
                key=lambda place: abs(
                    sum(document.tokens for document in ordered[:place]) * SHARDS - shard * total
                ),
            )
        )
    return [ordered[start:stop] for start, stop in zip(cuts, [*cuts[1:], len(ordered)], strict=True)]


def seed(number: int) -> int:
    """The seed of a shard's random stream."""
    text = f"{SETTINGS.random_seed}/{number}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def as_text(shards: list[list[Document]]) -> str:
    """The place of each document, as readable lines."""
    lines = []
    for number, documents in enumerate(shards):
        tokens = sum(document.tokens for document in documents)
        lines.append(f"shard {number}: {len(documents)} documents, {tokens} tokens, seed {seed(number)}")
        lines += [
            f"  {document.key.hex()}  {document.part} document {document.number}: {document.tokens} tokens"
            for document in documents
        ]
    return "".join(f"{line}\n" for line in lines)


def flat(documents: list[Document]) -> Documents:
    """The documents as the example maker takes them."""
    ids, sentence_ends, document_ends = array("H"), array("I"), array("I")
    for document in documents:
        for sentence in document.sentences:
            ids.extend(sentence)
            sentence_ends.append(len(ids))
        document_ends.append(len(sentence_ends))
    return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends)


def main() -> int:
    vocabulary = parse_vocabulary(VOCABULARY.read_bytes(), "vocab.txt", SETTINGS.rules)
    shards = cut(read_corpus())
    expected = {}
    for number, documents in enumerate(shards):
        settings = replace(SETTINGS, random_seed=seed(number))
        examples = make_bert_examples(flat(documents), vocabulary, settings, engine="python")
        expected[f"shard-{number:05}-of-{SHARDS:05}.tfrecord"] = as_expected(examples, settings, "python")
    place = GOLDEN / "shuffle"
    place.mkdir(exist_ok=True)
    (place / "shards.txt").write_text(as_text(shards), encoding="utf-8")
    (place / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

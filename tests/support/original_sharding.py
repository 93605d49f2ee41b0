"""A plain implementation of NVIDIA's formatting and sharding of text, without regard to speed."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median


def format_books(books: Sequence[bytes]) -> str:
    """Return the file with one book per line, in the order of ``books``."""
    texts = [book.decode("utf-8-sig").split("\n") for book in books]
    lines = ["".join(line.strip() + " " for line in text if line.strip()) for text in texts]
    return "".join(line + "\n\n" for line in lines)


def format_articles(extracted: bytes) -> str:
    """Return the file with one article per line that NVIDIA's program makes of extracted articles.

    Titles are left out.
    """
    formatted, lines, is_open = "", list[str](), False
    for line in extracted.decode().split("\n"):
        if "<doc id=" in line:
            is_open = True
        elif "</doc>" in line:
            is_open = False
            formatted += "".join(text.rstrip() + " " for text in lines[1:] if text) + "\n\n"
            lines = []
        elif is_open:
            lines.append(line)
    return formatted


def shards_of(
    formatted: Sequence[str], split: Callable[[str], list[str]], training: int, test: int, fraction: float
) -> list[bytes]:
    """Return the training shards and then the test shards of these formatted files, books before articles."""
    articles = [line.rstrip() for text in formatted for line in text.split("\n") if line.strip()]
    sentences = [split(article) for article in articles]
    return [
        "".join("".join(one + "\n" for one in sentences[number]) + "\n" for number in shard).encode()
        for shard in deal_as_the_original(list(map(len, sentences)), training, test, fraction)
    ]


def deal_as_the_original(
    sentences: list[int], training_shards: int, test_shards: int, fraction: float
) -> list[list[int]]:
    """Assign articles to shards in the original's rounds, looking at every shard in every round."""
    stacks: dict[int, list[int]] = defaultdict(list)
    for number, count in enumerate(sentences):
        stacks[count].append(number)
    largest, total = max(sentences), sum(sentences)
    training_total = int((1 - fraction) * total)
    nominal = {"training": training_total // training_shards, "test": (total - training_total) // test_shards}
    kinds = ["training"] * training_shards + ["test"] * test_shards
    shards: list[list[int]] = []
    for kind in kinds:
        while not stacks[largest]:
            largest -= 1
        shards.append([stacks[largest].pop()])
        nominal[kind] = max(nominal[kind], largest)
    history: list[int] = []
    while unplaced := sum(map(len, stacks.values())):
        counts = [sum(sentences[number] for number in shard) for shard in shards]
        medians = {
            "training": median(counts[:training_shards]),
            "test": median(counts[training_shards:]),
        }
        for shard, kind, count in zip(shards, kinds, counts, strict=True):
            size = min(nominal[kind] - count, largest)
            while largest > 0 and not stacks[largest]:
                largest -= 1
            while size > 0 and not stacks[size]:
                size -= 1
            if size > 0 and count <= medians[kind]:
                shard.append(stacks[size].pop())
                unplaced -= 1
        history = [*history, unplaced][-4:]
        nominal["training"] += len(set(history)) == 1
    return shards

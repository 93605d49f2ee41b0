"""Split of a SQuAD file into two, such that no article is in both."""

import json
from pathlib import Path
from typing import Any

Articles = list[dict[str, Any]]


def split_articles(articles: Articles, wanted: int) -> tuple[Articles, Articles]:
    """Divide the articles into two lists, each in the file's order.

    The first list gets articles as long as they have at most ``wanted`` questions in total. An article that
    would exceed this number goes to the second list.
    """
    first, second, questions = [], [], 0
    for article in articles:
        count = sum(len(paragraph["qas"]) for paragraph in article["paragraphs"])
        fits = questions + count <= wanted
        questions += count * fits
        (first if fits else second).append(article)
    return first, second


def write_split(source: Path, wanted: int, directory: Path) -> tuple[Path, Path]:
    """Write both parts of a SQuAD file into the directory, under SQuAD's usual names. Return their paths."""
    value = json.loads(source.read_text(encoding="utf-8"))
    paths = directory / "train-v1.1.json", directory / "dev-v1.1.json"
    directory.mkdir(parents=True, exist_ok=True)
    for path, articles in zip(paths, split_articles(value["data"], wanted), strict=True):
        path.write_text(json.dumps({**value, "data": articles}), encoding="utf-8")
    return paths

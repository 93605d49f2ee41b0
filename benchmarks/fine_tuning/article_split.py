"""A file of SQuAD cut in two, so that no article is in both parts."""

import json
from pathlib import Path
from typing import Any

Articles = list[dict[str, Any]]


def split_articles(articles: Articles, wanted: int) -> tuple[Articles, Articles]:
    """Two lists of whole articles: the first that have at most ``wanted`` questions together, and the others.

    In their order; an article that is too large for what is wanted yet goes to the second list.
    """
    first, second, questions = [], [], 0
    for article in articles:
        count = sum(len(paragraph["qas"]) for paragraph in article["paragraphs"])
        fits = questions + count <= wanted
        questions += count * fits
        (first if fits else second).append(article)
    return first, second


def write_split(source: Path, wanted: int, directory: Path) -> tuple[Path, Path]:
    """Write both parts of a file into the directory, as SQuAD's programs name them. Returns their paths."""
    value = json.loads(source.read_text(encoding="utf-8"))
    paths = directory / "train-v1.1.json", directory / "dev-v1.1.json"
    directory.mkdir(parents=True, exist_ok=True)
    for path, articles in zip(paths, split_articles(value["data"], wanted), strict=True):
        path.write_text(json.dumps({**value, "data": articles}), encoding="utf-8")
    return paths

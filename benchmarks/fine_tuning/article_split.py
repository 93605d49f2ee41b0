"""Split of a SQuAD file into two files that have no article in common."""

import json
from pathlib import Path
from typing import Any

Articles = list[dict[str, Any]]


def split_articles(articles: Articles, wanted: int) -> tuple[Articles, Articles]:
    """Divide the articles into two lists. Both lists keep the file's order.

    The first list gets as many articles as have at most ``wanted`` questions in total. An article with which
    there would be more questions goes to the second list.
    """
    first, second, questions = [], [], 0
    for article in articles:
        count = sum(len(paragraph["qas"]) for paragraph in article["paragraphs"])
        fits = questions + count <= wanted
        questions += count * fits
        (first if fits else second).append(article)
    return first, second


def write_split(source: Path, wanted: int, directory: Path) -> tuple[Path, Path]:
    """Divide a SQuAD file into a training file and an evaluation file, and return the paths of the two files.

    They are written into the directory, under SQuAD's usual names.

    wanted: largest number of questions of the first file.
    """
    value = json.loads(source.read_text(encoding="utf-8"))
    paths = directory / "train-v1.1.json", directory / "dev-v1.1.json"
    directory.mkdir(parents=True, exist_ok=True)
    for path, articles in zip(paths, split_articles(value["data"], wanted), strict=True):
        path.write_text(json.dumps({**value, "data": articles}), encoding="utf-8")
    return paths

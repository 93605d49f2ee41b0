"""Fine-tuned runs that several modules try."""

import pytest

from tests.support.fine_tuning import finetune_words, squad_file, table
from trainer.__main__ import main


@pytest.fixture(scope="session")
def labelled(pretrained, tmp_path_factory):
    """A run that has learned labels a little, and its files."""
    place = tmp_path_factory.mktemp("labelled")
    train, dev = table(place / "train.tsv"), table(place / "dev.tsv", 20)
    files = (f"--train-file={train}", f"--eval-file={dev}", "--steps=72", "--eval-every=0")
    assert main(finetune_words("classification", pretrained, place / "run", *files)) == 0
    return place


@pytest.fixture(scope="session")
def answering(pretrained, tmp_path_factory):
    """The same of questions, version 2.0, with settings that are not the usual ones."""
    place = tmp_path_factory.mktemp("answering")
    data = squad_file(place / "train.json")
    more = ("--version-2-with-negative", "--doc-stride=7", "--n-best-size=5", "--max-seq-length=24")
    files = (f"--train-file={data}", f"--eval-file={data}", "--steps=4", "--eval-every=0")
    assert main(finetune_words("squad", pretrained, place / "run", *files, *more)) == 0
    return place

"""Features to fine-tune on whose manifest is of version 2."""

import shutil
from pathlib import Path

from bertdata.tokens.load import load_tokenizer
from tests.support.commands import contents
from tests.support.paths import ROOT
from trainer.tasks.data_file import read_file
from trainer.tasks.feature_set import make_feature_set
from trainer.tasks.squad.features import SquadSettings, make_squad_examples

OLDER = ROOT / "tests" / "bertdata" / "dataset" / "older_manifests"
VERSION_2 = OLDER / "version_2"


def test_features_of_version_2_are_kept(tmp_path):
    directory = Path(shutil.copytree(VERSION_2 / "squad", tmp_path / "squad"))
    tokenizer = load_tokenizer(str(directory / "vocab.txt"), "google", True)
    settings = SquadSettings(max_seq_length=32, doc_stride=12, max_query_length=8, training=True)
    before = contents(directory)
    source = read_file(str(OLDER / "squad.json"))
    found = make_feature_set(str(directory), source, tokenizer, settings, make_squad_examples)
    assert found.kept
    assert contents(directory) == before

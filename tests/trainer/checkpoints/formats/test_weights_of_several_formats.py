"""A directory with weights in several formats: the record names the files that were read."""

from pathlib import Path

import pytest

import bertdata
from tests.support.lineages import compute_md5
from tests.support.made_checkpoints import made
from trainer.checkpoints.formats.convert import convert
from trainer.checkpoints.formats.kinds import WRITERS


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in TensorFlow 1's, NVIDIA's and Hugging Face's form in the same directory."""
    place = tmp_path_factory.mktemp("source")
    for form in ("tf1", "nvidia", "huggingface"):
        WRITERS[form](made(), str(place))
    return place


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (None, "*.index"),
        ("tf1", "*.index"),
        ("nvidia", "*.pt"),
        ("huggingface", "*.safetensors"),
    ],
)
def test_the_record_of_an_export_has_the_md5s_of_the_weights_that_were_read(source, tmp_path, kind, pattern):
    convert(str(source), str(tmp_path / "model"), kind=kind, to="bertdata")
    [export] = bertdata.lineage(tmp_path / "model").list_steps()
    listed = {file.md5 for file in export.inputs[0].files}
    endings = (".index", ".pt", ".safetensors")
    weights = {compute_md5(path): path.name for path in source.iterdir() if path.suffix in endings}
    [expected] = source.glob(pattern)
    assert [weights[md5] for md5 in listed if md5 in weights] == [expected.name]

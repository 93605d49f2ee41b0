"""Files whose contents travel with the pipeline to workers on other machines."""

import pickle
from pathlib import Path

from beam_pipelines.transport.bundled_file import BundledFile
from bertdata.io import storage
from bertdata.tokens.load import tokenizer_of
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from tests.support.model_directories import german_directory


def send(path: Path) -> BundledFile:
    """Return what a worker gets."""
    found: BundledFile = pickle.loads(pickle.dumps(BundledFile(path)))
    assert pickle.loads(pickle.dumps(found)) == found, "schedulers pickle it again"
    return found


def test_a_worker_has_the_contents_without_the_file(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\nword\n")
    packed = pickle.dumps(BundledFile(tmp_path / "vocab.txt"))
    (tmp_path / "vocab.txt").unlink()
    found = pickle.loads(packed)
    assert storage.is_remote(found)
    assert storage.get_base_name(found) == "vocab.txt"
    assert storage.read_bytes(found) == b"[PAD]\nword\n"


def test_a_models_directory_is_sent_as_the_tokenizer_that_it_means(tmp_path: Path) -> None:
    directory = german_directory(tmp_path / "model")
    (directory / "model.safetensors").write_bytes(bytes(1000))
    expected = tokenizer_of(find_tokenizer_json(str(directory), {}))
    found = send(directory)
    assert storage.get_base_name(found) == "tokenizer.json"
    text = "Er möchte covid19."
    assert list(tokenizer_of(find_tokenizer_json(found, {})).encode_each([text]).ids) == list(
        expected.encode_each([text]).ids
    )

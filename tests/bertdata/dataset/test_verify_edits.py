"""Manifests and md5sum lists edited by hand: no edit passes as sound, no name leads out of the directory."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertdata.dataset.manifest import parse_manifest
from tests.support.commands import SMALL
from tests.support.paths import ROOT

PARTS = sorted((ROOT / "golden" / "corpus").glob("part-*"))[:2]


VERSION_2 = Path(__file__).parent / "older_manifests" / "version_2" / "bert"


@pytest.fixture(scope="module", params=["tfrecord", "hdf5", "parquet", "version 2"])
def made(request, tmp_path_factory, small_vocabulary_file) -> Path:
    """A small dataset in one of the containers, or one with an older manifest."""
    from bertdata.cli.main import main

    if request.param == "version 2":
        return VERSION_2
    directory = tmp_path_factory.mktemp("made") / "shards"
    flags = ["--recipe=google", "--vocab", str(small_vocabulary_file), f"--format={request.param}", *SMALL]
    assert main(["create", *map(str, PARTS), "--output", str(directory), *flags]) == 0
    return directory


@pytest.fixture
def shards(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "shards"))


def rewrite(directory: Path, value: dict[str, Any], *, listed: bool) -> None:
    """Write the manifest; listed: MD5SUMS is made to suit it, as a forger would."""
    manifest = directory / "manifest.json"
    manifest.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if listed:
        lines = [f"{shard['md5']}  {shard['name']}\n" for shard in value["shards"]]
        for shard in value["shards"]:
            if "lengths_md5" in shard:
                lines.append(f"{shard['lengths_md5']}  lengths/{shard['name']}.u16\n")
        lines.append(f"{hashlib.md5(manifest.read_bytes()).hexdigest()}  manifest.json\n")
        (directory / "MD5SUMS").write_text("".join(lines), encoding="utf-8")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value that holds no others."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    yield from inner or [path]


def edited(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return {"a": 1} if isinstance(value, dict) else [1]


def test_no_edit_of_a_manifest_passes(bertdata, shards):
    whole = (shards / "manifest.json").read_text(encoding="utf-8")
    paths = list(leaves(json.loads(whole)))
    assert len(paths) > 50
    for path in paths:
        value = json.loads(whole)
        place = value
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = edited(place[path[-1]])
        rewrite(shards, value, listed=False)
        outcome = bertdata("verify-md5", shards)
        assert outcome.status == 1, (path, outcome)
    (shards / "manifest.json").write_text(whole, encoding="utf-8")
    assert bertdata("verify-md5", shards).status == 0


def test_examples_are_counted(bertdata, shards):
    """The forger has made everything fit but the shard itself."""
    value = json.loads((shards / "manifest.json").read_text(encoding="utf-8"))
    true = value["shards"][0]["examples"]
    value["shards"][0]["examples"] += 1
    value["totals"]["examples"] += 1
    rewrite(shards, value, listed=True)
    outcome = bertdata("verify-md5", shards)
    assert outcome.status == 1
    assert f"wrong number of examples: found {true} examples, expected {true + 1} examples" in outcome.out


@pytest.mark.parametrize(
    "name", ["../secret", "/dev/zero", "http://localhost:1/a", "a/../../b", ".", "a//b", "a\0b"]
)
def test_a_manifest_lists_no_file_outside_of_its_directory(bertdata, shards, name):
    value = json.loads((shards / "manifest.json").read_text(encoding="utf-8"))
    value["shards"][0]["name"] = name
    rewrite(shards, value, listed=False)
    for words in (["verify-md5"], ["stats"], ["verify-md5", "--chain"]):
        outcome = bertdata(*words, shards)
        assert outcome.status == 1
        assert f"manifest.json: lists {name!r}, expected a file in its own directory" in outcome.err


@pytest.mark.parametrize("name", ["../secret", "/dev/zero", "http://localhost:1/a"])
def test_an_md5sum_list_leads_out_of_its_directory_only_if_allowed(bertdata, tmp_path, name):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "inner").mkdir()
    md5 = hashlib.md5(b"secret").hexdigest()
    (tmp_path / "inner" / "sums").write_text(f"{md5}  {name}\n")
    outcome = bertdata("verify-md5", tmp_path / "inner" / "sums")
    assert outcome.status == 1
    assert outcome.out.startswith(f"{name}: outside; not in the list's own directory; --anywhere checks it")
    allowed = bertdata("verify-md5", tmp_path / "inner" / "sums", "--anywhere")
    assert allowed.status == (0 if name == "../secret" else 1)
    assert "outside" not in allowed.out


def test_training_refuses_a_manifest_that_md5sums_contradicts(shards):
    from bertdata.dataset.discover import find_datasets
    from bertdata.errors import ManifestError

    value = json.loads((shards / "manifest.json").read_text(encoding="utf-8"))
    value["settings"].get("tokenizer", value)["vocabulary"]["md5"] = "0" * 32
    rewrite(shards, value, listed=False)
    assert parse_manifest((shards / "manifest.json").read_bytes(), "manifest.json")
    with pytest.raises(ManifestError, match="was edited: it is not what its own entries, or MD5SUMS, say"):
        find_datasets(str(shards), exact=True)

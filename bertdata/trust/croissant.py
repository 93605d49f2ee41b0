"""Description of a dataset in Croissant 1.1, MLCommons' format for metadata of datasets.

It is JSON-LD: the files with their digests, the columns with their types, the licence, and how the dataset
was made (in PROV-O, as Croissant 1.1 recommends). The package mlcroissant validates it, and reads the records
of Parquet files through it. The specification is at https://docs.mlcommons.org/croissant/docs/.
"""

import fnmatch
import glob
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from bertdata.dataset.companion_files import FILES_BESIDE
from bertdata.dataset.manifest import Manifest
from bertdata.dataset.verify import list_own_files
from bertdata.errors import DataError, ShardError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.lineages.read import read_lineage
from bertdata.lineages.step import Input, Step
from bertdata.shards.containers import ARROW, LDDL, NVIDIA_MLPERF
from bertdata.trust.columns import StoredColumn, list_columns
from bertdata.trust.described_dataset import find_described_dataset
from bertdata.trust.licences import find_languages, find_licences

_VERSION = "http://mlcommons.org/croissant/1.1"
_RESPONSIBLE_AI = "http://mlcommons.org/croissant/RAI/1.0"

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The terms of Croissant 1.1 and PROV-O. mlcroissant warns about a context that lacks one of its terms."""

_SHARD_FORMATS = {
    "parquet": "application/x-parquet",
    LDDL: "application/x-parquet",
    "hdf5": "application/x-hdf5",
    NVIDIA_MLPERF: "application/x-hdf5",
    ARROW: "application/vnd.apache.arrow.stream",
    "tfrecord": "https://www.tensorflow.org/tutorials/load_data/tfrecord",
    "mds": "https://docs.mosaicml.com/projects/streaming",
    "fairseq": "https://fairseq.readthedocs.io",
}
"""MIME types of shards, by file format. For formats without a MIME type, Croissant wants a URL about them."""

_FILE_FORMATS = {".json": "application/json", ".md": "text/markdown", ".txt": "text/plain"}
_OTHER_FILE = "application/octet-stream"

_TYPES = {
    "bool": "sc:Boolean",
    "string": "sc:Text",
    "binary": "sc:Text",
    "float16": "cr:Float16",
    "float32": "cr:Float32",
    "float64": "cr:Float64",
    **{f"int{bits}": f"cr:Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"cr:UInt{bits}" for bits in (8, 16, 32, 64)},
}
"""Croissant's types of values, by our names."""

_SHARDS, _EXAMPLES = "shards", "examples"
"""Ids of the set of all shards, and of the set of all records."""


def describe_in_croissant(path: str) -> dict[str, Any]:
    """Return the description of a dataset in Croissant 1.1, as JSON.

    Every file of the dataset is read, because Croissant wants SHA-256 digests. Their md5s are compared with
    the manifest on the way. What no manifest tells is left out: the dataset's URL, its creator and the day of
    its publication. Croissant requires them of a published dataset.

    path: directory of a dataset with a manifest.

    Raises ShardError for a file that does not match the manifest.
    """
    directory, manifest = find_described_dataset(path)
    lineage = read_lineage(directory)
    files = [name for name in list_own_files(directory) if name not in FILES_BESIDE]
    shards = [shard.name for shard in manifest.shards]
    expected = {file.name: file.md5 for file in manifest.listed}
    distribution = [_describe_file(directory, name, expected.get(name)) for name in files]
    for name in shards:
        distribution[files.index(name)]["encodingFormat"] = _find_shard_format(manifest)
    source = (
        {"fileObject": {"@id": _make_id(shards[0])}} if len(shards) == 1 else {"fileSet": {"@id": _SHARDS}}
    )
    if len(shards) > 1:
        distribution.append(_describe_shard_set(shards, files, manifest))
    columns = list_columns(directory, manifest)
    licences, languages = find_licences(lineage), find_languages(lineage)
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": f"{manifest.plan.title}, manifest {lineage.results[0].record}",
        "description": _describe_dataset(manifest),
        "conformsTo": [_VERSION, _RESPONSIBLE_AI],
        **({"license": [licence.url for licence in licences]} if licences else {}),
        **({"inLanguage": languages} if languages else {}),
        "rai:dataPreprocessingProtocol": [_describe_step(step) for step in lineage.list_steps()],
        **_describe_making(lineage.results[0]),
        "distribution": distribution,
        **({"recordSet": [_describe_records(columns, source)]} if columns else {}),
    }


def dump_croissant(description: dict[str, Any]) -> str:
    """Return the text of a description, for the file ``croissant.json`` next to the shards."""
    return f"{json.dumps(description, indent=2)}\n"


def _make_id(name: str) -> str:
    """Return the id of a file in JSON-LD, where an id must not contain blanks."""
    return quote(name, safe="/")


def _describe_dataset(manifest: Manifest) -> str:
    """Return a sentence about a dataset."""
    examples = sum(shard.examples for shard in manifest.shards)
    tokens = sum(shard.tokens for shard in manifest.shards)
    objective = manifest.plan.objective or "not recorded"
    return (
        f"{examples} examples with {tokens} tokens for the training of an encoder, made by bertdata; "
        f"objective: {objective}."
    )


def _describe_file(directory: str, name: str, expected: str | None) -> dict[str, Any]:
    """Return the description of a file, with its size and digests.

    expected: md5 of the file in the manifest. None if the manifest does not list the file.
    """
    path, sha256 = storage.join(directory, name), hashlib.sha256()
    md5 = compute_file_md5(path, sha256.update)
    if expected not in (None, md5):
        remedy = f"bertdata verify-md5 {directory} lists all faults"
        raise ShardError(f"{path}: found md5 {md5}, expected {expected}; {remedy}")
    ending = next((ending for ending in _FILE_FORMATS if name.endswith(ending)), "")
    return {
        "@type": "cr:FileObject",
        "@id": _make_id(name),
        "name": name,
        "contentUrl": name,
        "contentSize": f"{storage.read_size(path)} B",
        "encodingFormat": _FILE_FORMATS.get(ending, _OTHER_FILE),
        "sha256": sha256.hexdigest(),
        "md5": md5,
    }


def _find_shard_format(manifest: Manifest) -> str:
    """Return the MIME type of a dataset's shards, or a URL about their file format."""
    return _SHARD_FORMATS.get(manifest.plan.settings.container["format"], _OTHER_FILE)


def _describe_shard_set(shards: Sequence[str], files: Sequence[str], manifest: Manifest) -> dict[str, Any]:
    """Return the description of the set of all shards.

    shards: names of the shards.
    files: names of all files of the dataset.
    """
    pattern = f"*.{shards[0].rpartition('.')[2]}"
    is_exact = sorted(fnmatch.filter(files, pattern)) == sorted(shards)
    return {
        "@type": "cr:FileSet",
        "@id": _SHARDS,
        "name": _SHARDS,
        "description": "All shards. Their digests are with the files.",
        "encodingFormat": _find_shard_format(manifest),
        "includes": pattern if is_exact else [glob.escape(name) for name in shards],
    }


def _describe_records(columns: Sequence[StoredColumn], source: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the records in the shards.

    source: the shards, in Croissant's form of a source.
    """
    return {
        "@type": "cr:RecordSet",
        "@id": _EXAMPLES,
        "name": _EXAMPLES,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{_EXAMPLES}/{_make_id(column.name)}",
                "name": column.name,
                "dataType": _find_type(column),
                **_describe_length(column.length),
                "source": {**source, "extract": {"column": column.name}},
            }
            for column in columns
        ],
    }


def _find_type(column: StoredColumn) -> str:
    """Return Croissant's type of a column's values."""
    if column.type not in _TYPES:
        raise DataError(f"column {column.name} has the type {column.type}, which is not described here")
    return _TYPES[column.type]


def _describe_length(length: int | None) -> dict[str, Any]:
    """Return the properties of a field that say how many values it has in each record."""
    return {} if length is None else {"isArray": True, "arrayShape": str(length)}


def _describe_step(step: Step) -> str:
    """Return a line about a step of the lineage."""
    read = ", ".join(one.role for one in step.inputs)
    return f"{step.program}: read {read}; md5 of its record {step.record}"


def _describe_making(step: Step) -> dict[str, Any]:
    """Return how the outputs of a step were made, with all steps before it, in the terms of PROV-O."""
    activity: dict[str, Any] = {
        "@type": "prov:Activity",
        "prov:label": step.program,
        "description": json.dumps(dict(step.settings)),
    }
    agents = [
        {"@type": "prov:SoftwareAgent", "prov:label": f"{name} {version}"}
        for name, version in step.versions.items()
    ]
    if agents:
        activity["prov:wasAssociatedWith"] = agents
    origins = [entity for one in step.inputs for entity in _describe_input(one)]
    return {"prov:wasGeneratedBy": activity, **({"prov:wasDerivedFrom": origins} if origins else {})}


def _describe_input(given: Input) -> Iterator[dict[str, Any]]:
    """Yield the entities that an input of a step consists of.

    An input of an earlier step is one entity, with the steps before it. Other inputs are an entity per file.
    """
    if given.made_by is not None:
        yield {
            "@type": "prov:Entity",
            "@id": f"urn:md5:{given.made_by.record}",
            "prov:label": given.role,
            **_describe_making(given.made_by),
        }
        return
    for file in given.files:
        yield {
            "@type": "prov:Entity",
            **({"@id": f"urn:md5:{file.md5}"} if file.md5 else {}),
            "prov:label": f"{given.role}: {file.name}",
        }
    if not given.files:
        yield {"@type": "prov:Entity", "prov:label": given.role, "description": given.remark}

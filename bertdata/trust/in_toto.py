"""Lineages as statements of in-toto, one for each step, with SLSA's provenance v1 as their predicate.

The specifications are https://github.com/in-toto/attestation/tree/main/spec/v1 and
https://slsa.dev/spec/v1.0/provenance. The digests are the md5s that the records of the steps contain.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.lineages.exported_model import LINEAGE_NAME
from bertdata.lineages.run_state import STATE_NAME
from bertdata.lineages.step import EXPORT, TRAIN_VOCAB, Input, Lineage, Step
from bertdata.tokens.training.manifest import make_manifest_path
from bertdata.trust.packages import load_package

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"

_BUILD_TYPE = "urn:bertdata:step:"
"""Beginning of the URIs for the types of steps. The name of the step follows, such as ``create``."""

_BUILDER = "urn:bertdata:local"
"""URI of the builder: whoever runs the program on a machine. SLSA calls this the lowest level of trust."""


def make_statements(lineage: Lineage) -> list[dict[str, Any]]:
    """Return a statement for each step of a lineage, each after the statements of earlier steps.

    Each statement is checked by the package in-toto-attestation. Raises MissingExtraError without it.
    """
    statements = [_make_statement(step) for step in lineage.list_steps()]
    for statement in statements:
        check_statement(statement)
    return statements


def dump_statements(statements: list[dict[str, Any]]) -> str:
    """Return statements as JSON lines, one line for each statement."""
    return "".join(f"{json.dumps(statement)}\n" for statement in statements)


def check_statement(statement: Mapping[str, Any]) -> None:
    """Check a statement with SLSA's provenance as its predicate by the package in-toto-attestation.

    Raises ManifestError, which says what does not match the specification.
    """
    asked_by = "a lineage in in-toto's form"
    messages = load_package("in_toto_attestation.v1.statement_pb2", asked_by)
    wrapper = load_package("in_toto_attestation.v1.statement", asked_by)
    provenance = load_package("in_toto_attestation.predicates.provenance.v1.provenance_pb2", asked_by)
    json_format = load_package("google.protobuf.json_format", asked_by)
    try:
        wrapper.Statement.copy_from_pb(json_format.ParseDict(statement, messages.Statement())).validate()
        json_format.ParseDict(statement["predicate"], provenance.Provenance())
    except (ValueError, KeyError, json_format.ParseError) as error:
        raise ManifestError(f"a statement is not in in-toto's form: {error}") from None


def _make_statement(step: Step) -> dict[str, Any]:
    """Return the statement of a step: what it wrote, from what, with which settings."""
    subjects = [_describe_file(file.name, file.md5) for file in step.outputs if file.md5 is not None]
    subjects.append(_describe_file(_name_record(step), step.record))
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{_BUILD_TYPE}{step.name}",
                "externalParameters": dict(step.settings),
                "resolvedDependencies": [one for given in step.inputs for one in _list_dependencies(given)],
            },
            "runDetails": {
                "builder": {"id": _BUILDER, "version": dict(step.versions)},
                "metadata": {"invocationId": step.record},
            },
        },
    }


def _name_record(step: Step) -> str:
    """Return the file name of the record that a step has written."""
    if step.name == TRAIN_VOCAB:
        return make_manifest_path(step.outputs[0].name)
    if "updates" in step.facts:  # the state of a checkpoint, also of one that was converted
        return STATE_NAME
    return LINEAGE_NAME if step.name == EXPORT else MANIFEST_NAME


def _describe_file(name: str, md5: str) -> dict[str, Any]:
    """Return a file as a descriptor of a resource."""
    return {"name": name, "digest": {"md5": md5}}


def _list_dependencies(given: Input) -> Iterator[dict[str, Any]]:
    """Yield an input of a step as descriptors: its files, and the record of the step that wrote them.

    The annotation ``role`` says what the step used the files for. An input without any digest is a descriptor
    with its role alone, and the reason as a remark.
    """
    notes = {"role": given.role, **({"remark": given.remark} if given.remark else {})}
    for file in given.files:
        digest = {} if file.md5 is None else {"digest": {"md5": file.md5}}
        yield {"name": file.name, **digest, "annotations": notes}
    if given.record is not None:
        name = f"record of the {given.role}"
        yield {**_describe_file(name, given.record), "annotations": notes}
    elif not given.files:
        yield {"name": given.role, "annotations": notes}

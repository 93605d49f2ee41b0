"""Statements of in-toto: the library of the specification validates ours, and refuses manipulated ones."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict, ParseError
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

import bertdata as toolkit
from bertdata.errors import ManifestError
from bertdata.lineages.read import read_lineage
from bertdata.trust.in_toto import check_statement, dump_statements, make_statements
from tests.support.data_chains import make_chain
from tests.support.paths import DUMP, GOLDEN


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def parse(statement: dict) -> tuple[Statement, Provenance]:
    """Parse and validate a statement with the library alone."""
    found = Statement.copy_from_pb(ParseDict(statement, StatementMessage()))
    found.validate()
    return found, ParseDict(statement["predicate"], Provenance())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``extracted``, ``results`` and ``shards`` of the golden dump."""
    place = tmp_path_factory.mktemp("chain")
    make_chain(DUMP, place)
    return place


@pytest.fixture(scope="module")
def statements(made: Path) -> list[dict]:
    """The statements, written and read again."""
    lines = dump_statements(make_statements(read_lineage(str(made / "shards")))).splitlines()
    return [json.loads(line) for line in lines]


def test_the_library_validates_a_statement_for_each_step(statements: list[dict]) -> None:
    types = [parse(statement)[1].build_definition.build_type for statement in statements]
    assert types == [f"urn:bertdata:step:{name}" for name in ("extract", "segment", "create")]
    assert {statement["predicateType"] for statement in statements} == {"https://slsa.dev/provenance/v1"}


def test_subjects_are_what_the_step_wrote_and_its_record(made: Path, statements: list[dict]) -> None:
    for statement, name in zip(statements, ("extracted", "results", "shards"), strict=True):
        found, _ = parse(statement)
        subjects = {subject.name: subject.digest["md5"] for subject in found.pb.subject}
        assert subjects == {file: md5(made / name / file) for file in subjects}
        assert "manifest.json" in subjects
        assert len(subjects) > 1


def test_dependencies_are_what_the_step_read(made: Path, statements: list[dict]) -> None:
    first, second, third = (parse(one)[1].build_definition.resolved_dependencies for one in statements)
    assert [(one.name, one.digest["md5"]) for one in first] == [(DUMP.name, md5(DUMP))]
    read = {one.name: one.digest["md5"] for one in second}
    assert read.pop("record of the articles") == md5(made / "extracted" / "manifest.json")
    assert read == {name: md5(made / "extracted" / name) for name in read}
    read = {one.name: one.digest["md5"] for one in third}
    assert read.pop("record of the parts") == md5(made / "results" / "manifest.json")
    assert read.pop("vocab.txt") == md5(GOLDEN / "vocab.txt")
    assert read == {name: md5(made / "results" / name) for name in read}


def test_settings_are_the_external_parameters(made: Path, statements: list[dict]) -> None:
    _, provenance = parse(statements[2])
    objective = provenance.build_definition.external_parameters["objective"]
    assert objective["max_seq_length"] == 64
    manifest = json.loads((made / "shards" / "manifest.json").read_text())
    given = statements[2]["predicate"]["buildDefinition"]["externalParameters"]
    assert {name: given[name] for name in manifest["settings"]} == manifest["settings"]


def drop_digest(statement: dict) -> None:
    statement["subject"][0]["digest"] = {}


def drop_subjects(statement: dict) -> None:
    statement["subject"] = []


def change_type(statement: dict) -> None:
    statement["_type"] = "https://in-toto.io/Statement/v2"


def drop_predicate(statement: dict) -> None:
    statement["predicate"] = {}


def misspell_dependencies(statement: dict) -> None:
    definition = statement["predicate"]["buildDefinition"]
    definition["resolvedDependency"] = definition.pop("resolvedDependencies")


@pytest.mark.parametrize(
    "manipulate", [drop_digest, drop_subjects, change_type, drop_predicate, misspell_dependencies]
)
def test_the_library_and_we_refuse_a_manipulated_statement(
    statements: list[dict], manipulate: Callable[[dict], None]
) -> None:
    statement = json.loads(json.dumps(statements[2]))
    check_statement(statement)
    manipulate(statement)
    with pytest.raises((ValueError, ParseError)):
        parse(statement)
    with pytest.raises(ManifestError, match="not in in-toto's form"):
        check_statement(statement)


def test_the_record_of_a_vocabulary_is_named_after_it(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocab.txt"
    toolkit.train_vocab([GOLDEN / "odd.txt"], vocabulary, size=300)
    (statement,) = make_statements(read_lineage(str(vocabulary)))
    found, _ = parse(statement)
    subjects = {subject.name: subject.digest["md5"] for subject in found.pb.subject}
    assert subjects == {name: md5(tmp_path / name) for name in ("vocab.txt", "vocab.txt.manifest.json")}

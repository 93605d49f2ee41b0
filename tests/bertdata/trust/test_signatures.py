"""Signatures by OpenSSF Model Signing: its own command verifies ours, and ours verifies what it signed."""

import base64
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import model_signing.hashing
import model_signing.signing
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

import bertdata as toolkit
from tests.support.commands import SMALL, Program
from tests.support.paths import GOLDEN

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
PLAIN = serialization.NoEncryption()


def write_keys(place: Path, name: str, curve: ec.EllipticCurve | None = None) -> None:
    """Write NAME.pem and NAME.pub, as OpenSSL does."""
    key = ec.generate_private_key(curve or ec.SECP256R1())
    (place / f"{name}.pem").write_bytes(key.private_bytes(PEM, PKCS8, PLAIN))
    public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (place / f"{name}.pub").write_bytes(public)


@pytest.fixture
def bertdata(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of keys, and a dataset ``shards`` that is signed with the first."""
    place = tmp_path_factory.mktemp("signed")
    write_keys(place, "key")
    write_keys(place, "other")
    toolkit.create(
        GOLDEN / "single.txt",
        place / "shards",
        vocab=GOLDEN / "vocab.txt",
        max_seq_length=64,
        max_predictions_per_seq=10,
        workers=1,
    )
    toolkit.sign(place / "shards", place / "key.pem")
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(made, tmp_path / "place"))


def run_model_signing(*words: object) -> tuple[int, str]:
    """Run the package's command in this process. Return its exit status and all that it prints."""
    [command] = entry_points(group="console_scripts", name="model_signing")
    done = CliRunner().invoke(command.load(), list(map(str, words)))
    return done.exit_code, done.output


def verify_with_model_signing(place: Path) -> tuple[int, str]:
    signature, key = place / "shards" / "model.sig", place / "key.pub"
    return run_model_signing("verify", "key", place / "shards", "--signature", signature, "--public_key", key)


def read_statement(signature: Path) -> dict:
    """Return the in-toto statement in a sigstore bundle."""
    return json.loads(base64.b64decode(json.loads(signature.read_text())["dsseEnvelope"]["payload"]))


def test_model_signings_command_verifies_what_we_sign(made: Path) -> None:
    assert verify_with_model_signing(made) == (0, "Verification succeeded\n")


def test_the_signature_lists_the_sha256_of_every_other_file(made: Path) -> None:
    files = {path for path in (made / "shards").rglob("*") if path.is_file() and path.name != "model.sig"}
    expected = {
        path.relative_to(made / "shards").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    resources = read_statement(made / "shards" / "model.sig")["predicate"]["resources"]
    assert {item["name"]: item["digest"] for item in resources} == expected
    assert "manifest.json" in expected


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()], ids=["P-384", "P-521"])
def test_keys_on_the_larger_curves_sign_too(place: Path, bertdata: Program, curve: ec.EllipticCurve) -> None:
    write_keys(place, "key", curve)
    assert bertdata("sign", place / "shards", "--private-key", place / "key.pem", "--overwrite").status == 0
    assert verify_with_model_signing(place)[0] == 0
    assert bertdata("verify-md5", place / "shards", "--public-key", place / "key.pub").status == 0


def test_a_signed_dataset_is_sound_with_and_without_its_key(made: Path, bertdata: Program) -> None:
    shards = made / "shards"
    assert bertdata("verify-md5", shards).status == 0
    outcome = bertdata("verify-md5", shards, "--public-key", made / "key.pub")
    assert outcome.status == 0, outcome.out
    files = len(read_statement(shards / "model.sig")["predicate"]["resources"])
    told = f"{shards / 'model.sig'}: {files} files are as signed with the key of {made / 'key.pub'}"
    assert outcome.out.splitlines()[0] == told


def test_we_verify_what_model_signings_command_signed(place: Path, bertdata: Program) -> None:
    shards, signature = place / "shards", place / "theirs.sig"
    (shards / "model.sig").unlink()
    words = ("--private_key", place / "key.pem", "--signature", signature)
    assert run_model_signing("sign", "key", shards, *words)[0] == 0
    flags = ("--public-key", place / "key.pub", "--signature", signature)
    assert bertdata("verify-md5", shards, *flags).status == 0
    (shards / "vocab.txt").write_text("[PAD]\n")
    outcome = bertdata("verify-md5", shards, *flags)
    assert outcome.status == 1
    assert outcome.out.startswith(f"{shards / 'vocab.txt'}: changed: found digest ")


def test_signatures_over_pieces_of_files_and_other_digests_are_verified(
    place: Path, bertdata: Program
) -> None:
    shards, signature = place / "shards", place / "shards" / "model.sig"
    signature.unlink()
    hashing = model_signing.hashing.Config().use_shard_serialization(
        hashing_algorithm="blake2", shard_size=1000
    )
    signing = model_signing.signing.Config().use_elliptic_key_signer(private_key=place / "key.pem")
    signing.set_hashing_config(hashing).sign(shards, signature)
    flags = ("--public-key", place / "key.pub")
    assert bertdata("verify-md5", shards, *flags).status == 0
    shard = next(shards.glob("*.tfrecord"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"\0")
    outcome = bertdata("verify-md5", shards, *flags)
    assert outcome.status == 1
    assert f"{shard.name}:" in outcome.out


def change(shards: Path) -> str:
    path = shards / "vocab.txt"
    path.write_bytes(path.read_bytes() + b"x\n")
    return f"{path}: changed: found digest {hashlib.sha256(path.read_bytes()).hexdigest()}, expected "


def add(shards: Path) -> str:
    (shards / "more.txt").write_text("more")
    return f"{shards / 'more.txt'}: extra; it was not signed"


def remove(shards: Path) -> str:
    (shards / "MD5SUMS").unlink()
    return f"{shards / 'MD5SUMS'}: missing; it was signed"


def rename(shards: Path) -> str:
    (shards / "vocab.txt").rename(shards / "vocabulary.txt")
    return f"{shards / 'vocab.txt'}: missing; it was signed"


def replace_by_link(shards: Path) -> str:
    (shards / "vocab.txt").rename(shards.parent / "vocab.txt")
    (shards / "vocab.txt").symlink_to("../vocab.txt")
    return f"{shards / 'vocab.txt'}: not plain"


@pytest.mark.parametrize("manipulate", [change, add, remove, rename, replace_by_link])
def test_a_manipulated_copy_is_refused_and_the_file_named(
    place: Path, bertdata: Program, manipulate: Callable[[Path], str]
) -> None:
    line = manipulate(place / "shards")
    outcome = bertdata("verify-md5", place / "shards", "--public-key", place / "key.pub")
    assert outcome.status == 1
    assert any(found.startswith(line) for found in outcome.out.splitlines()), outcome.out
    assert verify_with_model_signing(place)[0] == 1


def test_the_signature_of_another_key_is_refused(place: Path, bertdata: Program) -> None:
    outcome = bertdata("verify-md5", place / "shards", "--public-key", place / "other.pub")
    assert outcome.status == 1
    assert outcome.out.startswith(
        f"{place / 'shards' / 'model.sig'}: wrong key; it was not made with the key"
    )


def forge_manifest(bundle: dict) -> None:
    """Sign other digests: the payload is replaced, the signature kept."""
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    statement["predicate"]["resources"][0]["digest"] = "0" * 64
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()


def drop_signatures(bundle: dict) -> None:
    bundle["dsseEnvelope"]["signatures"] = []


def drop_key(bundle: dict) -> None:
    bundle["verificationMaterial"] = {"certificate": {"rawBytes": "AAAA"}}


@pytest.mark.parametrize(
    ("damage", "status"),
    [
        (forge_manifest, "wrong signature"),
        (drop_signatures, "damaged"),
        (drop_key, "damaged; ValueError: it was made with a certificate"),
        (dict.clear, "damaged"),
    ],
)
def test_a_damaged_signature_is_refused(
    place: Path, bertdata: Program, damage: Callable[[dict], None], status: str
) -> None:
    path = place / "shards" / "model.sig"
    bundle = json.loads(path.read_text())
    damage(bundle)
    path.write_text(json.dumps(bundle))
    outcome = bertdata("verify-md5", place / "shards", "--public-key", place / "key.pub")
    assert outcome.status == 1
    assert outcome.out.startswith(f"{path}: {status}"), outcome.out


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\x00", b"[]", b"null"])
def test_a_signature_that_is_no_bundle_is_refused(place: Path, bertdata: Program, data: bytes) -> None:
    path = place / "shards" / "model.sig"
    path.write_bytes(data)
    outcome = bertdata("verify-md5", place / "shards", "--public-key", place / "key.pub")
    assert outcome.status == 1
    assert outcome.out.startswith(f"{path}: damaged; ")
    assert len(outcome.out.splitlines()) == 2  # and the summary


def test_faults_of_the_md5s_are_told_too(place: Path, bertdata: Program) -> None:
    shards = place / "shards"
    (shards / "vocab.txt").write_text("[PAD]\n")
    toolkit.sign(shards, place / "key.pem", overwrite=True)
    outcome = bertdata("verify-md5", shards, "--public-key", place / "key.pub")
    assert outcome.status == 1
    assert f"{shards / 'vocab.txt'}: wrong md5" in outcome.out


def test_a_directory_without_md5s_is_checked_by_its_signature_alone(place: Path, bertdata: Program) -> None:
    model = place / "model"
    (model / "inner").mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "inner" / "weights").write_bytes(bytes(100))
    assert bertdata("sign", model, "--private-key", place / "key.pem").status == 0
    outcome = bertdata("verify-md5", model, "--public-key", place / "key.pub")
    told = f"{model / 'model.sig'}: 2 files are as signed with the key of {place / 'key.pub'}"
    assert outcome.out.splitlines() == [told, f"{model}: 1 file right, sound"]
    (model / "inner" / "weights").write_bytes(bytes(99))
    assert bertdata("verify-md5", model, "--public-key", place / "key.pub").status == 1


@pytest.mark.parametrize("flag", ["--chain", "--content"])
def test_a_check_that_needs_a_manifest_is_not_left_out_silently(
    place: Path, bertdata: Program, flag: str
) -> None:
    model = place / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    toolkit.sign(model, place / "key.pem")
    outcome = bertdata("verify-md5", model, "--public-key", place / "key.pub", flag)
    assert outcome.status == 1
    assert "manifest.json" in outcome.err


def test_a_signature_may_lie_elsewhere(place: Path, bertdata: Program) -> None:
    shards, signature = place / "shards", place / "apart.sig"
    flags = ("--private-key", place / "key.pem", "--signature", signature)
    outcome = bertdata("sign", shards, *flags)
    assert outcome.status == 0, outcome.err
    command = outcome.out.split("check it: bertdata ")[1].replace("FILE", str(place / "key.pub")).split()
    assert bertdata(*command).status == 0
    assert {item["name"] for item in read_statement(signature)["predicate"]["resources"]} >= {"model.sig"}


def test_the_python_face_signs_and_verifies(place: Path) -> None:
    assert toolkit.sign(place / "shards", place / "key.pem", overwrite=True) == str(
        place / "shards/model.sig"
    )
    assert toolkit.verify(place / "shards", public_key=place / "key.pub").sound
    assert not toolkit.verify(place / "shards", public_key=place / "other.pub").sound


# --- wrong usage ---------------------------------------------------------------------------------


def test_an_existing_signature_is_replaced_only_on_request(place: Path, bertdata: Program) -> None:
    words = ("sign", place / "shards", "--private-key", place / "key.pem")
    before = (place / "shards" / "model.sig").read_bytes()
    bertdata(*words).assert_one_error(2, "model.sig: is there already", "--overwrite")
    assert (place / "shards" / "model.sig").read_bytes() == before
    assert bertdata(*words, "--overwrite").status == 0
    assert (place / "shards" / "model.sig").read_bytes() != before


def test_overwrite_replaces_no_other_file(place, bertdata):
    manifest = (place / "shards" / "manifest.json").read_bytes()
    words = ("sign", place / "shards", "--private-key", place / "key.pem", "--overwrite", "--signature")
    outcome = bertdata(*words, place / "shards" / "manifest.json")
    outcome.assert_one_error(2, "manifest.json: is no signature, and would be lost")
    assert (place / "shards" / "manifest.json").read_bytes() == manifest
    key = (place / "key.pem").read_bytes()
    bertdata(*words, place / "key.pem").assert_one_error(2, "key.pem: is an input")
    assert (place / "key.pem").read_bytes() == key


def test_wrong_private_keys_are_refused_in_one_line(place: Path, bertdata: Program) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    secret = serialization.BestAvailableEncryption(b"secret")
    (place / "encrypted.pem").write_bytes(key.private_bytes(PEM, PKCS8, secret))
    (place / "text.pem").write_text("no key")
    (place / "rsa.pem").write_bytes(rsa.generate_private_key(65537, 1024).private_bytes(PEM, PKCS8, PLAIN))
    (place / "ed.pem").write_bytes(ed25519.Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, PLAIN))
    write_keys(place, "koblitz", ec.SECP256K1())
    for name, *told in (
        ("encrypted.pem", "is encrypted", "openssl pkey -in"),
        ("text.pem", "is no private key in PEM form"),
        ("rsa.pem", "is a key of the kind RSA"),
        ("ed.pem", "is a key of the kind Ed25519"),
        ("koblitz.pem", "is a key on the curve secp256k1"),
        ("key.pub", "is a public key, expected the private key"),
        ("missing.pem", "no such file"),
        ("shards", "is a directory, expected a file"),
    ):
        outcome = bertdata("sign", place / "shards", "--private-key", place / name, "--overwrite")
        outcome.assert_one_error(2, f"{place / name}: ", *told)


def test_wrong_public_keys_are_refused_in_one_line(place: Path, bertdata: Program) -> None:
    write_keys(place, "koblitz", ec.SECP256K1())
    (place / "text.pub").write_text("no key")
    for name, told in (
        ("key.pem", "is a private key, expected the public key"),
        ("text.pub", "is no public key in PEM form"),
        ("koblitz.pub", "is a key on the curve secp256k1"),
        ("missing.pub", "no such file"),
    ):
        outcome = bertdata("verify-md5", place / "shards", "--public-key", place / name)
        outcome.assert_one_error(2, f"{place / name}: ", told)


def test_what_cannot_be_signed_is_refused_in_one_line(place: Path, bertdata: Program) -> None:
    shards, key = place / "shards", ("--private-key", place / "key.pem")
    (place / "empty").mkdir()
    (place / "begun" / "unfinished").mkdir(parents=True)
    (place / "begun" / "unfinished" / "plan.json").write_text("{}")
    (place / "linked").mkdir()
    (place / "linked" / "link").symlink_to(shards / "vocab.txt")
    shutil.copy(place / "key.pem", shards / "inside.pem")
    bertdata("sign", place / "none", *key).assert_one_error(2, "none: no such directory")
    bertdata("sign", shards / "vocab.txt", *key).assert_one_error(2, "is a file, expected a directory")
    bertdata("sign", "memory://shards", *key).assert_one_error(2, "is a URL", "on this machine")
    bertdata("sign", place / "empty", *key).assert_one_error(2, "holds no files")
    bertdata("sign", place / "begun", *key).assert_one_error(1, "is unfinished")
    bertdata("sign", place / "linked", *key).assert_one_error(2, "link: is a link")
    inside = ("--private-key", shards / "inside.pem", "--overwrite")
    bertdata("sign", shards, *inside).assert_one_error(2, "inside.pem: lies in", "would publish it")
    unsigned = ("verify-md5", place / "empty", "--public-key", place / "key.pub")
    bertdata(*unsigned).assert_one_error(2, "model.sig: no such file", "bertdata sign")
    assert bertdata("verify-md5", shards, "--signature", shards / "model.sig").status == 2


def deny(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the system refuse to open files with this beginning of their name, as it does without rights."""
    opened = open

    def open_unless_denied(file: object, *arguments: object, **others: object) -> object:
        if Path(str(file)).name.startswith(name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return opened(file, *arguments, **others)

    monkeypatch.setattr("builtins.open", open_unless_denied)


@pytest.mark.parametrize("name", ["vocab.txt", "model.sig", "key.pem"])
def test_missing_rights_are_told_in_one_line(
    place: Path, bertdata: Program, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    deny(monkeypatch, name)
    outcome = bertdata("sign", place / "shards", "--private-key", place / "key.pem", "--overwrite")
    outcome.assert_one_error(1, f"{name}: Permission denied")


def test_a_signature_that_cannot_be_written_is_one_line(place: Path, bertdata: Program) -> None:
    words = ("sign", place / "shards", "--private-key", place / "key.pem")
    where = place / "nowhere" / "model.sig"
    bertdata(*words, "--signature", where).assert_one_error(2, "there is no directory")
    bertdata(*words, "--signature", place / "shards").assert_one_error(2, "is a directory")


def test_parts_and_articles_that_are_signed_are_read_as_before(place: Path, bertdata: Program) -> None:
    text = place / "text"
    toolkit.segment(GOLDEN / "single.txt", text, input_kind="text", sentences="lines")
    part = str(next(text.glob("part-*")))
    flags = ("--vocab", GOLDEN / "vocab.txt", *SMALL)
    assert bertdata("create", part, "--output", place / "before", *flags).status == 0
    toolkit.sign(text, place / "key.pem")
    assert bertdata("create", text, "--output", place / "after", *flags).status == 0
    assert (place / "before" / "manifest.json").read_text() == (place / "after" / "manifest.json").read_text()


def test_without_the_extra_one_line_says_what_to_install(
    place: Path, bertdata: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "model_signing.signing",
        "model_signing.verifying",
        "in_toto_attestation.v1.statement_pb2",
    ):
        monkeypatch.setitem(sys.modules, module, None)
    told = "pip install --editable '.[trust]'"
    sign = ("sign", place / "shards", "--private-key", place / "key.pem", "--overwrite")
    bertdata(*sign).assert_one_error(2, "signing needs the package model_signing", told)
    verify = ("verify-md5", place / "shards", "--public-key", place / "key.pub")
    bertdata(*verify).assert_one_error(2, "checking a signature needs the package model_signing", told)
    lineage = ("lineage", place / "shards", "--format", "in-toto")
    bertdata(*lineage).assert_one_error(2, "needs the package in_toto_attestation", told)

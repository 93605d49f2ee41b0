"""Verification of a directory against its signature, with a finding for each file that differs."""

import base64
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertdata.dataset.companion_files import SIGNATURE_NAME
from bertdata.dataset.findings import EXTRA, MISSING, Finding, make_right_finding
from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.io.terminal import shorten
from bertdata.trust.keys import check_public_key
from bertdata.trust.packages import load_package
from bertdata.trust.signing import find_signed_directory, make_hashing_config, make_reading_error

_FILES_DIFFER = "Signature mismatch"
"""Beginning of model-signing's message if the signature is good, but the files are not as it lists them."""

_OTHER_KEY = "Key mismatch"
"""Beginning of model-signing's message for a signature that names another public key."""

_NOT_PLAIN = "Cannot use '"
"""Beginning of model-signing's message about a link or a special file. The path follows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureCheck:
    """Result of comparing a directory with its signature.

    findings: a finding for each file that differs, or for the signature if the fault is there. If there is no
        fault, one finding for the signature.
    summary: line that says how many files are as they were signed. None if there is a fault.
    """

    findings: tuple[Finding, ...]
    summary: str | None = None


def check_signature(path: str, public_key: str, signature: str | None = None) -> SignatureCheck:
    """Compare all files of a directory with its signature. Faults are returned, and not raised as errors.

    path: a local directory.
    public_key: PEM file with the public key that belongs to the key that signed.
    signature: file with the signature. None: ``model.sig`` in the directory.
    """
    directory = find_signed_directory(path)
    key = check_public_key(public_key)
    where = signature or storage.join(path, SIGNATURE_NAME)
    if not storage.exists(where):
        made = f"bertdata sign {path} --private-key FILE makes it"
        raise MissingInputError(f"{where}: no such file, expected the signature; {made}")
    config = load_package("model_signing.verifying", "checking a signature").Config()
    config.use_elliptic_key_verifier(public_key=key)
    try:
        # Nothing here may be trusted before config.verify has checked the signature. It only says how the
        # files were hashed.
        predicate = _read_predicate(where)
        hashing = make_hashing_config(directory, where, predicate["serialization"])
        config.set_hashing_config(hashing)
        with contextlib.redirect_stdout(sys.stderr):  # the package prints warnings about older signatures
            config.verify(Path(directory), Path(where))
    except OSError as error:
        raise make_reading_error(path, error) from None
    except Exception as error:  # a damaged bundle leads to exceptions of any class
        if not str(error).startswith(_FILES_DIFFER):
            return SignatureCheck(findings=(_describe_fault(where, public_key, error),))
        signed = {item["name"]: item["digest"] for item in predicate["resources"]}
        found = hashing.hash(Path(directory)).resource_descriptors()
        present = {item.identifier: item.digest.digest_hex for item in found}
        differing = tuple(_compare_digests(path, present, signed))
        # Files may have changed between both readings. Without any finding the report would be sound.
        return SignatureCheck(findings=differing or (_describe_fault(where, public_key, error),))
    files = len(predicate["resources"])
    told = (
        f"{where}: {files} {'file is' if files == 1 else 'files are'} as signed with the key of {public_key}"
    )
    return SignatureCheck(findings=(make_right_finding(where),), summary=told)


def _read_predicate(where: str) -> dict[str, Any]:
    """Return the part of a signature that lists the signed files and says how they were hashed.

    Raises ValueError, KeyError or TypeError for a damaged signature.
    """
    bundle = parse_json_text(storage.read_bytes(where))
    if "publicKey" not in bundle["verificationMaterial"]:
        raise ValueError("it was made with a certificate or an identity, expected one made with a key pair")
    predicate: dict[str, Any] = parse_json_text(base64.b64decode(bundle["dsseEnvelope"]["payload"]))[
        "predicate"
    ]
    return predicate


def _compare_digests(path: str, present: Mapping[str, str], signed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each file that was changed, removed or added after the directory was signed.

    present: digest of each file in the directory, by name.
    signed: digest of each file in the signature, by name.
    """
    for name in sorted({*present, *signed}):
        file = storage.join(path, name)
        if name not in present:
            yield Finding(file=file, status=MISSING, detail="it was signed")
        elif name not in signed:
            yield Finding(file=file, status=EXTRA, detail="it was not signed")
        elif present[name] != signed[name]:
            yield Finding(
                file=file,
                status="changed",
                found=f"digest {present[name]}",
                expected=signed[name],
                detail="it was signed with other contents",
            )


def _describe_fault(where: str, public_key: str, error: Exception) -> Finding:
    """Return the finding for a signature that cannot be accepted.

    error: the exception of model-signing or of a package that it uses.
    """
    # The class of cryptography's exception is compared by its name, so that the package need not be imported.
    if type(error).__name__ == "InvalidSignature":
        told = f"it was changed, or it was made with another key than that of {public_key}"
        return Finding(file=where, status="wrong signature", detail=told)
    message = " ".join(str(error).split())
    if message.startswith(_NOT_PLAIN):
        return Finding(
            file=message.split("'")[1], status="not plain", detail="expected a file, as was signed"
        )
    if message.startswith(_OTHER_KEY):
        return Finding(file=where, status="wrong key", detail=f"it was not made with the key of {public_key}")
    return Finding(file=where, status="damaged", detail=shorten(f"{type(error).__name__}: {message}"))

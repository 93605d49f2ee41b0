"""Keys for signatures: PEM files with a private or a public key on an elliptic curve.

OpenSSL makes such a pair::

    openssl ecparam -name prime256v1 -genkey -noout -out key.pem
    openssl ec -in key.pem -pubout -out key.pub
"""

from typing import Any

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.real_paths import find_local_path
from bertdata.trust.packages import load_package

_CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
"""Curves that model-signing supports. The keys are the names that the package cryptography uses."""

_EXPECTED = "on the curve P-256, P-384 or P-521; docs/trust.md says how to make a pair of keys"


def check_private_key(path: str) -> str:
    """Return the local path of a private key in a PEM file. Raises SettingsError if it cannot sign."""
    local, data = _read_key(path)
    serialization = load_package("cryptography.hazmat.primitives.serialization", "signing")
    try:
        key = serialization.load_pem_private_key(data, None)
    except TypeError:
        remedy = f"decrypt it for this run: openssl pkey -in {path} -out plain.pem"
        raise SettingsError(f"{path}: is encrypted, expected a key without a password; {remedy}") from None
    except Exception:
        found = "is a public key" if _is_public_key(serialization, data) else "is no private key in PEM form"
        raise SettingsError(f"{path}: {found}, expected the private key {_EXPECTED}") from None
    _check_curve(path, key)
    return local


def check_public_key(path: str) -> str:
    """Return the local path of a public key in a PEM file. Raises SettingsError if it cannot verify."""
    local, data = _read_key(path)
    serialization = load_package("cryptography.hazmat.primitives.serialization", "checking a signature")
    if not _is_public_key(serialization, data):
        found = "is a private key" if b"PRIVATE KEY-----" in data else "is no public key in PEM form"
        raise SettingsError(f"{path}: {found}, expected the public key {_EXPECTED}")
    _check_curve(path, serialization.load_pem_public_key(data))
    return local


def _read_key(path: str) -> tuple[str, bytes]:
    """Return the local path of a key file, and the contents of the file."""
    local = find_local_path(path)
    if local is None:
        raise MissingInputError(f"{path}: is a URL, expected a key file on this machine")
    return local, storage.read_bytes(local)


def _is_public_key(serialization: Any, data: bytes) -> bool:
    """Return True if the bytes are a public key in PEM form, on whatever curve.

    serialization: the module of that name of the package cryptography.
    """
    try:
        serialization.load_pem_public_key(data)
    except Exception:  # the package's errors have no common base class
        return False
    return True


def _check_curve(path: str, key: Any) -> None:
    """Raise SettingsError unless a key is on a curve that model-signing supports.

    key: a private or public key, as the package cryptography loads it.
    """
    curve = getattr(key, "curve", None)
    if curve is None:
        kind = type(key).__name__.removeprefix("_").replace("PrivateKey", "").replace("PublicKey", "")
        raise SettingsError(f"{path}: is a key of the kind {kind}, expected one {_EXPECTED}")
    if curve.name not in _CURVES:
        raise SettingsError(f"{path}: is a key on the curve {curve.name}, expected one {_EXPECTED}")

"""Signatures by OpenSSF Model Signing: one file that signs all files of a directory.

The signature is a sigstore bundle. It holds the SHA-256 and the name of every file, signed with a private key
on this machine. No server is asked. The command ``model_signing`` of the package model-signing verifies it.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertdata.dataset.companion_files import SIGNATURE_NAME
from bertdata.dataset.discover import refuse_unfinished
from bertdata.errors import DatasetError, MissingInputError, SettingsError, StorageError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.real_paths import find_local_path, resolve_path
from bertdata.trust.keys import check_private_key
from bertdata.trust.packages import load_package


def sign_directory(
    path: str, private_key: str, signature: str | None = None, *, overwrite: bool = False
) -> str:
    """Sign all files of a directory with a private key. Return the path of the signature.

    Files of git (.git, .gitattributes, .github, .gitignore) are not signed, as model-signing's command leaves
    them out too.

    path: a local directory, such as a dataset, a run or an exported model.
    private_key: PEM file with a private key. It must not lie in the directory, which may be published.
    signature: file to write. None: ``model.sig`` in the directory.
    overwrite: replace an existing signature.
    """
    directory = find_signed_directory(path)
    target = signature or storage.join(path, SIGNATURE_NAME)
    if not storage.is_directory(private_key):  # that is refused below, in other words
        refuse_input_as_output(target, [private_key])
    key = check_private_key(private_key)
    if f"{resolve_path(key)}/".startswith(f"{resolve_path(directory)}/"):
        raise SettingsError(f"{private_key}: lies in {path}, which would publish it; keep it elsewhere")
    if storage.is_directory(target):
        raise SettingsError(f"{target}: is a directory, expected the name of a file to write")
    if storage.exists(target) and not overwrite:
        raise DatasetError(f"{target}: is there already; give --overwrite to replace it, or --signature FILE")
    if storage.exists(target) and not _is_signature(target):
        raise SettingsError(f"{target}: is no signature, and would be lost; give another --signature FILE")
    names = storage.list_files(directory)
    refuse_unfinished(path, names)
    if not set(names) - {os.path.relpath(target, directory)}:
        raise DatasetError(f"{path}: holds no files, expected files to sign")
    config = load_package("model_signing.signing", "signing").Config()
    config.use_elliptic_key_signer(private_key=key)
    config.set_hashing_config(make_hashing_config(directory, target))
    with tempfile.TemporaryDirectory() as place:
        written = Path(place) / SIGNATURE_NAME
        try:
            config.sign(Path(directory), written)
        except (OSError, ValueError) as error:
            raise make_reading_error(path, error) from None
        with storage.open_output(target) as file:
            file.write(written.read_bytes())
    return target


def _is_signature(path: str) -> bool:
    """Return True if a file is a sigstore bundle, as every signature is."""
    try:
        values = parse_json_text(storage.read_bytes(path))
    except ValueError:
        return False
    return isinstance(values, dict) and "sigstore" in str(values.get("mediaType"))


def find_signed_directory(path: str) -> str:
    """Return the local path of a directory to sign or to verify.

    Raises MissingInputError or SettingsError for anything else.
    """
    directory = find_local_path(path)
    if directory is None:
        raise SettingsError(f"{path}: is a URL; signatures are of directories on this machine, so copy it")
    if not storage.exists(directory):
        raise MissingInputError(f"{path}: no such directory")
    if not storage.is_directory(directory):
        raise SettingsError(
            f"{path}: is a file, expected a directory: a dataset, a run, or an exported model"
        )
    return directory


def make_hashing_config(
    directory: str, signature: str, serialization: Mapping[str, Any] | None = None
) -> Any:
    """Return model-signing's settings for hashing a directory's files, which leave the signature itself out.

    directory: the directory, a local path.
    signature: path of the signature, in the directory or elsewhere.
    serialization: how the files of a signature were hashed, in model-signing's form. None: SHA-256 of each
        file.
    """
    config = load_package("model_signing.hashing", "signing").Config()
    told = serialization or {"method": "files", "hash_type": "sha256"}
    algorithm = _ALGORITHMS.get(told["hash_type"], told["hash_type"])
    if told["method"] == "shards":
        config.use_shard_serialization(hashing_algorithm=algorithm, shard_size=int(told["shard_size"]))
    else:
        config.use_file_serialization(hashing_algorithm=algorithm)
    inside = os.path.relpath(resolve_path(signature), resolve_path(directory))
    config.set_ignored_paths(paths=[] if inside.startswith("..") else [inside])
    return config.set_allow_symlinks(bool(told.get("allow_symlinks")))


_ALGORITHMS = {"blake2b": "blake2"}
"""Names of algorithms in the settings of model-signing, if signatures name them otherwise."""


def make_reading_error(path: str, error: OSError | ValueError) -> StorageError | SettingsError:
    """Return the error for a directory of which model-signing cannot read a file.

    error: the package's exception. A ValueError is about a link or a special file.
    """
    if isinstance(error, OSError):
        return StorageError(f"{error.filename or path}: {error.strerror or error}")
    file = next((part for part in str(error).split("'")[1::2]), path)
    found = "is a link" if os.path.islink(file) else "is neither a file nor a directory"
    return SettingsError(f"{file}: {found}, which no signature can cover; replace it by the file itself")

"""File systems behind URLs, through fsspec: opened, asked what went wrong, given files whole.

fsspec is imported only for a path that needs it: its import takes longer than a small part takes to
prepare.
"""

import re
from contextlib import suppress
from typing import Any, BinaryIO

from bertdata.errors import MissingExtraError, MissingInputError, install_extra

_PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "s3a": "s3fs"}
_EXTRAS = {"gcsfs": "gcs", "s3fs": "s3"}
_REFUSED = r"^Forbidden|\((401|403|AccessDenied)\)"
"""Text by which gcsfs and botocore mark a refusal that they raise as a plain OSError."""
_CHUNK_BYTES = 8 << 20
"""Of an upload: some of them are held in memory."""


def scheme(path: str) -> str:
    """The part of a URL before ``://``."""
    return path.partition("://")[0]


def is_object_store(path: str) -> bool:
    """True for a path in an object store: no directories, and files that appear whole or not at all."""
    return scheme(path) in _PACKAGES


def open_file_system(path: str) -> tuple[Any, str]:
    """fsspec's file system for the path, and the path within it.

    MissingExtraError names the package to install. Listings of object stores are never kept: other
    workers write there.
    """
    import fsspec

    options = {"use_listings_cache": False} if is_object_store(path) else {}
    try:
        file_system, inner = fsspec.core.url_to_fs(path, **options)
    except ImportError as error:
        package = _PACKAGES.get(scheme(path))
        if package is None:
            raise MissingExtraError(f"{path}: {error}") from None
        raise MissingExtraError(
            f"{path}: {scheme(path)}:// needs the package {package}: pip install {package}, "
            f"or {install_extra(_EXTRAS[package])}"
        ) from None
    except ValueError as error:
        raise MissingInputError(f"{path}: {error}") from None
    if package := _PACKAGES.get(scheme(path)):
        _silence(package)
    return file_system, inner


def _silence(package: str) -> None:
    """Leave it to us to tell of an error. The package's log still reaches whoever set up logging."""
    import logging  # slow to import, as all that only remote files need

    logger = logging.getLogger(package)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def upload(file: BinaryIO, path: str, growing: str) -> None:
    """Send a whole file of this machine to the path, where it appears at once or not at all.

    An object store shows an upload when it is complete. Elsewhere it grows as ``growing``, on the
    same file system, and is renamed.
    """
    file.flush()
    local = f"/dev/fd/{file.fileno()}"  # it has no name, so that even a killed process leaves nothing
    file_system, inner = open_file_system(path)
    if is_object_store(path):
        # gcsfs ends the file's part of a request with a bare LF; who takes CR LF for an end loses a last CR.
        checked = {"consistency": "md5"} if _PACKAGES[scheme(path)] == "gcsfs" else {}
        try:
            file_system.put_file(local, inner, chunksize=_CHUNK_BYTES, **checked)
        except Exception as error:
            if type(error).__name__ == "ChecksumError":  # other bytes than the file's are there
                with suppress(Exception):
                    file_system.rm_file(inner)
            raise
        return
    temporary = open_file_system(growing)[1]
    try:
        file_system.put_file(local, temporary)
        file_system.mv(temporary, inner)
    except BaseException:
        with suppress(Exception):  # whatever made it fail is more worth telling
            file_system.rm_file(temporary)
        raise


def missing_bucket(path: str) -> str | None:
    """The bucket of a path that was not found, if it is the bucket that is not there."""
    if not is_object_store(path):
        return None
    file_system, inner = open_file_system(path)
    bucket = inner.partition("/")[0]
    try:
        file_system.info(bucket)
    except FileNotFoundError:
        return bucket
    except Exception:
        return None  # it may be there, and its properties not ours to read
    return None


def reason(error: Exception) -> str:
    """The message of a back end's exception in one line. Most of them are no OSError."""
    plain = type(error).__module__ == "builtins"  # others know more than their strerror: the host, say
    text = " ".join(str((plain and getattr(error, "strerror", None)) or error).split())
    if type(error).__name__ in ("NoCredentialsError", "DefaultCredentialsError", "RefreshError"):
        return f"no credentials that are accepted ({text})"
    if isinstance(error, PermissionError) or _status(error) in (401, 403) or re.search(_REFUSED, text):
        return f"permission denied ({text})"
    return text if isinstance(error, OSError) and text else f"{type(error).__name__}: {text}"


def _status(error: Exception) -> int | None:
    """The HTTP status that gcsfs (``code``) and aiohttp (``status``) put into their exceptions."""
    found = str(getattr(error, "code", None) or getattr(error, "status", None))
    return int(found) if found.isdecimal() else None

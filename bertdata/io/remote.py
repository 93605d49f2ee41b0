"""Remote file systems through fsspec: opening, uploading whole files, and readable errors.

fsspec is imported only when a path needs it, because the import takes longer than many small jobs.
"""

import re
from contextlib import suppress
from typing import Any, BinaryIO

from bertdata.errors import MissingExtraError, MissingInputError, install_extra

_PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "s3a": "s3fs"}
_EXTRAS = {"gcsfs": "gcs", "s3fs": "s3"}
_REFUSED = r"^Forbidden|\((401|403|AccessDenied)\)"
"""Pattern for the message of an access error that gcsfs or botocore raises as a plain OSError."""
_EXISTS = "PreconditionFailed|ConditionalRequestConflict|pre-conditions"
"""Pattern for the message of a conditional write that was refused because the file exists."""
_EXISTS_STATUSES = (409, 412)
"""HTTP statuses of a conditional write that was refused because the file exists."""
_NO_CONDITION = "NotImplemented"
"""Pattern for the message of a store that knows no conditional writes."""
_CHUNK_BYTES = 8 << 20
"""Bytes per request of an upload. Several chunks are in memory at once."""


def find_scheme(path: str) -> str:
    """Return the part of a URL before ``://``."""
    return path.partition("://")[0]


def is_object_store(path: str) -> bool:
    """Return True for a path in an object store (Google Cloud Storage, S3).

    Object stores have no directories, and an uploaded file appears only when it is complete.
    """
    return find_scheme(path) in _PACKAGES


def open_file_system(path: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path inside that file system.

    Raises MissingExtraError, which names the package to install. Directory listings of object stores are not
    cached, because other workers write there at the same time.
    """
    import fsspec

    options = {"use_listings_cache": False} if is_object_store(path) else {}
    try:
        file_system, inner = fsspec.core.url_to_fs(path, **options)
    except ImportError as error:
        package = _PACKAGES.get(find_scheme(path))
        if package is None:
            raise MissingExtraError(f"{path}: {error}") from None
        raise MissingExtraError(
            f"{path}: {find_scheme(path)}:// needs the package {package}: pip install {package}, "
            f"or {install_extra(_EXTRAS[package])}"
        ) from None
    except ValueError as error:
        raise MissingInputError(f"{path}: {error}") from None
    if package := _PACKAGES.get(find_scheme(path)):
        _silence_logging(package)
    return file_system, inner


def _silence_logging(package: str) -> None:
    """Keep the package's log messages off the terminal, since its errors are reported by this program.

    A user who has configured logging still gets them.
    """
    import logging  # imported here because it is slow to import

    logger = logging.getLogger(package)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def upload_file(file: BinaryIO, path: str, growing: str) -> None:
    """Send a complete local file to a remote path, so that it appears there whole or not at all.

    An object store shows an upload only when it is complete. On other file systems the file is uploaded as
    ``growing`` and then renamed.

    file: open local file, which may be nameless.
    growing: temporary path on the same file system.
    """
    file.flush()
    # The local file was deleted right after it was created, so that even a killed process leaves nothing
    # behind. fsspec needs a file name, and /dev/fd/N is a name for an open file descriptor.
    local = f"/dev/fd/{file.fileno()}"
    file_system, inner = open_file_system(path)
    if is_object_store(path):
        # In its multipart request, gcsfs ends the file's bytes with LF instead of CR LF. If the file's last
        # byte is CR, a server takes this CR for a part of the line end and drops it. gcsfs's md5 check
        # notices the missing byte.
        checked = {"consistency": "md5"} if _PACKAGES[find_scheme(path)] == "gcsfs" else {}
        try:
            file_system.put_file(local, inner, chunksize=_CHUNK_BYTES, **checked)
        except Exception as error:
            if type(error).__name__ == "ChecksumError":  # the remote file is damaged: delete it
                with suppress(Exception):
                    file_system.rm_file(inner)
            raise
        return
    # On file systems other than object stores (for example HDFS or memory://), a half-written file is
    # visible. So upload under a temporary name and rename.
    temporary = open_file_system(growing)[1]
    try:
        file_system.put_file(local, temporary)
        file_system.mv(temporary, inner)
    except BaseException:
        with suppress(Exception):  # the error that made it fail is more important
            file_system.rm_file(temporary)
        raise


def create_file_once(path: str, data: bytes) -> bool | None:
    """Write a small file only if there is none at the path. Return whether it was written.

    Returns None, and writes nothing, if the file system cannot do this in one step.
    """
    file_system, inner = open_file_system(path)
    try:
        file_system.pipe_file(inner, data, mode="create")
    except FileExistsError:
        return False
    except (NotImplementedError, TypeError):
        return None
    except Exception as error:
        if _find_status(error) in _EXISTS_STATUSES or re.search(_EXISTS, str(error)):
            return False
        if re.search(_NO_CONDITION, str(error)):
            return None
        raise
    return True


def find_missing_bucket(path: str) -> str | None:
    """Return the name of the bucket in the path if no such bucket exists, otherwise None."""
    if not is_object_store(path):
        return None
    file_system, inner = open_file_system(path)
    bucket = inner.partition("/")[0]
    try:
        file_system.info(bucket)
    except FileNotFoundError:
        return bucket
    except Exception:
        return None  # the bucket may exist without permission to read its properties
    return None


def describe_error(error: Exception) -> str:
    """Return a one-line message for a file system's exception, which is often not an OSError."""
    # str() of a library's exception often says more than its strerror, for example the host name.
    plain = type(error).__module__ == "builtins"
    text = " ".join(str((plain and getattr(error, "strerror", None)) or error).split())
    if type(error).__name__ in ("NoCredentialsError", "DefaultCredentialsError", "RefreshError"):
        return f"no credentials that are accepted ({text})"
    if isinstance(error, PermissionError) or _find_status(error) in (401, 403) or re.search(_REFUSED, text):
        return f"permission denied ({text})"
    return text if isinstance(error, OSError) and text else f"{type(error).__name__}: {text}"


def _find_status(error: Exception) -> int | None:
    """Return the HTTP status in an exception of gcsfs (``code``) or aiohttp (``status``).

    Returns None if the exception has no status.
    """
    found = str(getattr(error, "code", None) or getattr(error, "status", None))
    return int(found) if found.isdecimal() else None

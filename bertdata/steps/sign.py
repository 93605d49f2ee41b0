"""The step that signs all files of a directory."""

from bertdata.steps.values import AnyPath, convert_optional_path, convert_path
from bertdata.trust.signing import sign_directory


def sign(
    path: AnyPath, private_key: AnyPath, *, signature: AnyPath | None = None, overwrite: bool = False
) -> str:
    """Sign all files of a local directory, as ``bertdata sign`` does. Return the path of the signature.

    path: a dataset, a run or an exported model.
    private_key: PEM file with a private key on the curve P-256, P-384 or P-521, without a password.
    signature: file to write. None: ``model.sig`` in the directory.
    overwrite: replace an existing signature.
    """
    return sign_directory(
        convert_path(path),
        convert_path(private_key),
        convert_optional_path(signature),
        overwrite=overwrite,
    )

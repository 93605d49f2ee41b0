"""The paths that a key of the configuration names."""

from bertdata.io import storage


def split_paths(paths: str) -> list[str]:
    """The paths that commas or ``+`` separate; a ``+`` in a path that exists separates nothing."""
    pieces = [piece.strip() for piece in paths.split(",")]
    return [
        path
        for piece in pieces
        for path in ([piece] if "+" not in piece or storage.exists(piece) else piece.split("+"))
    ]

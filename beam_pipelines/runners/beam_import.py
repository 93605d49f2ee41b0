"""The import of Apache Beam, made a third faster."""

import gc

from beam_pipelines.options import PROGRAM
from bertdata.errors import MissingExtraError, install_extra


def import_beam() -> None:
    """Import Beam with the garbage collector switched off. MissingExtraError where it is not installed.

    The collector would walk the growing heap again and again and find nothing. Freezing the imported
    objects saves another walk when the process exits.
    """
    gc.disable()
    try:
        import apache_beam  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"{PROGRAM} needs the package apache-beam: {install_extra('beam')}") from None
    finally:
        gc.enable()
    gc.freeze()

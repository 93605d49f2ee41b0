"""The step that reads the lineage of an artefact: every step that led to it."""

from bertdata.lineages.read import read_lineage
from bertdata.lineages.step import Lineage
from bertdata.steps.values import AnyPath, convert_path


def lineage(path: AnyPath) -> Lineage:
    """Return the lineage of an artefact, as ``bertdata lineage`` shows it.

    Its steps go back to the dump or the user's files, as far as their records are at hand. Where a step
    cannot be followed, its input says why. Faults, such as a damaged copy of a manifest, are listed in the
    result (``lineage.faults``), and not raised as errors.

    path: a dataset, parts, articles, a vocabulary, a run, a checkpoint, an exported model, or a file of one
        of them. It may be a URL.

    Raises MissingInputError if there is nothing at the path, and ManifestError if there is no record of how
    it was made, or if the record is damaged.
    """
    return read_lineage(convert_path(path))

"""The step that a record describes, whatever kind of record it is: a manifest, a state or lineage.json."""

from bertdata.errors import ManifestError
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import parse_json
from bertdata.lineages.data_steps import make_data_step
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.export_steps import make_export_step
from bertdata.lineages.exported_model import is_export_record
from bertdata.lineages.run_state import is_run_state
from bertdata.lineages.run_steps import make_run_step
from bertdata.lineages.step import Step

_MOST_NESTED = 100
"""Largest number of steps that follow one another. A record cannot cite itself, so this is only reached by
files that were made to exhaust the memory.
"""


class StepMaker:
    """Object that turns records into steps, each record once.

    documents: the records that are at hand.
    """

    def __init__(self, documents: RecordDocuments) -> None:
        self.documents = documents
        self._made: dict[tuple[str, str], Step] = {}
        self._depth = 0

    def make(self, data: bytes, where: str, directory: str = "", run: str = "") -> Step:
        """Return the step that wrote a record, with all steps before it.

        data: the record.
        where: path of the record, for error messages.
        directory: the directory that the step wrote. Empty if only a copy of the record is at hand.
        run: for a checkpoint, the directory of its run. Empty if it is not known.

        Raises ManifestError if the record cannot be read.
        """
        key = (compute_md5(data), directory)
        if key not in self._made:
            self.documents.add(data, where)
            if self._depth >= _MOST_NESTED:
                raise ManifestError(f"{where}: more than {_MOST_NESTED} steps follow one another")
            self._depth += 1
            try:
                self._made[key] = self._make(data, where, directory, run)
            finally:
                self._depth -= 1
        return self._made[key]

    def _make(self, data: bytes, where: str, directory: str, run: str) -> Step:
        value = parse_json(data, where)
        if is_export_record(value):
            return make_export_step(data, where, self.documents, self.make, directory)
        if is_run_state(value):
            return make_run_step(data, where, self.documents, self.make, directory, run)
        return make_data_step(data, where, self.documents, directory)

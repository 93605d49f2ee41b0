"""The stage that writes the manifest of the text parts when all parts are written."""

import logging
from collections.abc import Iterable, Iterator, Mapping

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters
from beam_pipelines.stages.text_stage import TextStage
from bertdata.dataset.provenance import Provenance
from bertdata.io.changed_inputs import make_changed_warnings
from bertdata.io.file_check import FileEntry
from bertdata.text.directory import count_warnings, read_input_md5s
from bertdata.text.manifest import TextInput, TextManifest, make_text_input
from bertdata.text.mlperf import MlperfText
from bertdata.text.nvidia import NvidiaText
from bertdata.text.settings import RUN_COUNTERS

_LOGGER = logging.getLogger(__name__)

Entry = tuple[int, TextInput] | FileEntry
"""Piece of information for the manifest of the text parts.

It is (file number, TextInput) for an input file, or FileEntry for a file that was written.
"""


def make_input_entry(
    stage: TextStage, number: int, text: MlperfText | NvidiaText
) -> beam.pvalue.TaggedOutput:
    """Return an input file's entry for the manifest, as an element of the output "entries".

    Raises ChangedInputError if the file has changed since the run was planned.

    number: the file's number.
    text: the result of splitting the file into sentences.
    """
    plan = stage.plan
    plan.identities[number]._replace(md5=text.md5).check()
    entry = make_text_input(plan.inputs[number], text.md5, text.counts, plan.kinds[number])
    return beam.pvalue.TaggedOutput("entries", (0, (number, entry)))


class WriteTextManifest(beam.PTransform):  # type: ignore[misc]
    """Write the manifest of the text parts from the elements (0, entry).

    The output is what the manifest of a dataset says about the origin of its text.
    """

    def __init__(self, stage: TextStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, entries: tuple[beam.PCollection[tuple[int, Entry]], ...]
    ) -> beam.PCollection[Provenance]:
        """Connect the stages from entries to the manifest."""
        return (
            entries
            | "all entries" >> beam.Flatten()
            | "gather entries" >> beam.GroupByKey()
            | "write manifest of the parts" >> beam.ParDo(FinishText(self._stage))
        )


def report_counts(directory: str, manifest: TextManifest, before: Mapping[str, str]) -> None:
    """Add to Beam's counters the counts of the whole run, and log warnings about these counts and the inputs.

    directory: directory of the text parts, for the messages.
    before: md5 of each input by name, in the manifest that the directory had before this run.
    """
    counts = manifest.counts
    add_to_counters({f"text_{name}": getattr(counts, name) or 0 for name in RUN_COUNTERS})
    now = {entry.name: entry.md5 for entry in manifest.inputs}
    for warning in (*make_changed_warnings(directory, before, now), *count_warnings(directory, counts)):
        _LOGGER.warning("%s", warning)


class FinishText(beam.DoFn):  # type: ignore[misc]
    """Write the manifest of the directory of text parts (see ``TextDirectory.finish``).

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, stage: TextStage) -> None:
        self._text = stage.text

    def process(self, gathered: tuple[int, Iterable[Entry]]) -> Iterator[Provenance]:
        """Write the manifest.

        gathered: the key 0, and the entries of all input files and written files.
        """
        entries = list(gathered[1])
        files = [entry for entry in entries if isinstance(entry, FileEntry)]
        inputs = dict(entry for entry in entries if not isinstance(entry, FileEntry))
        ordered = [inputs[number] for number in sorted(inputs)]
        before = read_input_md5s(self._text.commit.directory)
        manifest = self._text.finish(ordered, files, release=False)
        report_counts(self._text.commit.directory, manifest, before)
        yield Provenance(parts=manifest.dump(), articles=self._text.plan.articles)

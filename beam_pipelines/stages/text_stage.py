"""The plan for making text parts from articles or plain text: input files, settings, and output directory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from beam_pipelines.report.counters import add_to_counters, count_text
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.transport.spill_files import SpillFiles
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, compute_file_md5
from bertdata.text.directory import TextDirectory
from bertdata.text.load_splitter import LoadSplitter, make_splitter_loader
from bertdata.text.manifest import TextManifest
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.text_plan import TextPlan, plan_text


@dataclass(frozen=True, kw_only=True, slots=True)
class TextStage:
    """The plan for making text parts from articles or plain text. It is pickled and sent to all workers.

    files: number of input files.
    text: the output directory, with the plan of the parts.
    load_splitter: function that loads the splitter of sentences in a worker.
    """

    files: int
    text: TextDirectory[TextPlan]
    load_splitter: LoadSplitter

    @property
    def plan(self) -> TextPlan:
        """The plan of the text parts: input files, settings, and names of the parts."""
        return self.text.plan

    @property
    def parts(self) -> list[str]:
        """Paths of the parts, or of NVIDIA's text shards."""
        return [self.text.commit.path(name) for name in self.plan.names]

    @property
    def spill_files(self) -> SpillFiles:
        """Temporary files that store texts on disk between two stages."""
        return SpillFiles.in_directory(self.text.commit.unfinished)

    def write(self, name: str, blocks: Iterable[bytes]) -> FileEntry:
        """Write a file of the output directory, and return its entry for the manifest.

        The file appears only when it is complete.

        name: name of the file in the directory.
        blocks: the contents, in the order of writing.
        """
        with add_path_to_errors(self.text.commit.path(name)), self.text.open(name) as file:
            for block in blocks:
                file.write(block)
        add_to_counters(count_text(SegmentCounts(bytes_out=file.bytes)))
        return file.entry(name)

    def clean_up(self) -> None:
        """Delete temporary files and half-written files.

        If no file was finished, the plan is deleted too, so that a run with other settings may use the
        directory.
        """
        self.text.commit.give_up()


def plan_text_stage(
    files: Sequence[str],
    directory: str,
    settings: SegmentSettings,
    engine: Engine | None,
    punkt_tables: str | None = None,
    kinds: Sequence[str] = (),
) -> TextStage:
    """Return the plan for making text parts from these files of articles or plain text.

    Raises InputError if a file does not have the expected format, and DatasetError if the output directory
    was made with other settings.

    directory: output directory of the parts.
    kinds: kind of each file, articles or plain text (see ``bertdata.text.input_kinds``).
    """
    text = TextDirectory(directory, plan_text(files, settings, kinds))
    text.commit.refuse_others()
    return TextStage(
        files=len(files),
        text=text,
        load_splitter=make_splitter_loader(settings, engine, punkt_tables),
    )


def find_finished_text(stage: TextStage, files: Sequence[str]) -> TextManifest | None:
    """Return the manifest of a finished earlier run with the same plan and the same input files.

    Returns None if there is no such run.
    """
    finished = stage.text.finished()
    if finished is None or storage.map_paths(list(files), compute_file_md5) != [
        entry.md5 for entry in finished.inputs
    ]:
        return None
    return finished

"""The text stage of a run: its inputs, its settings, and how it writes its files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from beam_pipelines.report.counters import count, text_amounts
from beam_pipelines.report.errors import naming
from beam_pipelines.transport.spill_files import SpillFiles
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.plan import TextPlan, plan_text
from bertdata.text.punkt.boundaries import Variant
from bertdata.text.settings import SegmentCounts, SegmentSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TextStage:
    """Plan and settings of a text stage over ``files`` extracted files, written to ``directory``."""

    files: int
    directory: str
    plan: TextPlan
    settings: SegmentSettings
    load_splitter: LoadSplitter

    @property
    def parts(self) -> list[str]:
        """The paths of the parts, or of NVIDIA's text shards."""
        return [storage.join(self.directory, name) for name in self.plan.names]

    @property
    def unfinished(self) -> str:
        """The directory of files that are not whole yet; removed when the run is done."""
        return storage.join(self.directory, "unfinished")

    @property
    def spill_files(self) -> SpillFiles:
        """The spill files of text between stages."""
        return SpillFiles.below(self.unfinished)

    def write(self, name: str, blocks: Iterable[bytes]) -> str:
        """Write a file of the directory, whole or not at all; its path."""
        path = storage.join(self.directory, name)
        storage.make_directory(self.unfinished)  # an attempt that outlives the run needs it again
        with naming(path), storage.open_output(path, temporary=self.unfinished) as file:
            count(text_amounts(SegmentCounts(bytes_out=sum(map(file.write, blocks)))))
        return path

    def clean_up(self) -> None:
        """Remove files that did not become whole."""
        storage.remove_directory(self.unfinished)


def plan_text_stage(
    files: Sequence[str],
    directory: str,
    settings: SegmentSettings,
    engine: Engine | None,
    punkt_tables: str | None = None,
) -> TextStage:
    """Plan the text stage for these extracted files.

    InputError as from plan_text; DatasetError where the directory holds parts that this run
    would not replace.
    """
    plan = plan_text(files, settings)
    plan.refuse_leftovers(directory)
    return TextStage(
        files=len(files),
        directory=directory,
        plan=plan,
        settings=settings,
        load_splitter=LoadSplitter(cast(Variant, settings.punkt), engine, punkt_tables),
    )

"""The text stage of a run from records: its files, its settings, and the directory it writes to."""

from dataclasses import dataclass

from beam_pipelines.transport.spill_files import SpillFiles
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.file_check import file_md5
from bertdata.steps.record_source import plan_record_parts
from bertdata.text.directory import TextDirectory
from bertdata.text.load_splitter import LoadSplitter, load_splitter_of
from bertdata.text.manifest import TextManifest
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordStage:
    """The directory of parts to make. Picklable, shared by all workers."""

    text: TextDirectory[RecordPlan]
    load_splitter: LoadSplitter

    @property
    def plan(self) -> RecordPlan:
        return self.text.plan

    @property
    def spill_files(self) -> SpillFiles:
        """The spill files of pieces and text between stages."""
        return SpillFiles.below(self.text.commit.unfinished)

    def finished(self) -> TextManifest | None:
        """The manifest of an earlier run of the same plan on the same files, if it is finished."""
        manifest = self.text.finished()
        if manifest is None:
            return None
        md5s = storage.each(list(self.plan.files), file_md5)
        return manifest if md5s == [entry.md5 for entry in manifest.inputs] else None


def plan_record_stage(
    sources: list[str],
    directory: str,
    kind: str,
    settings: PartSettings,
    *,
    engine: Engine | None,
    punkt_tables: str | None,
) -> RecordStage:
    """Plan the parts of the sources' records. DatasetError for a directory of other settings."""
    plan = plan_record_parts(sources, directory, kind, settings, punkt_tables)
    text = TextDirectory(directory, plan)
    text.commit.refuse_others()
    return RecordStage(text=text, load_splitter=load_splitter_of(plan.settings, engine, punkt_tables))

"""The plan for making text parts from records: input files, settings, and output directory."""

from dataclasses import dataclass

from beam_pipelines.transport.spill_files import SpillFiles
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.steps.record_source import plan_record_parts
from bertdata.text.directory import TextDirectory
from bertdata.text.load_splitter import LoadSplitter, make_splitter_loader
from bertdata.text.manifest import TextManifest
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordStage:
    """The plan for making text parts from records. It is pickled and sent to all workers.

    text: the output directory, with the plan of the parts.
    load_splitter: function that loads the splitter of sentences in a worker.
    """

    text: TextDirectory[RecordPlan]
    load_splitter: LoadSplitter

    @property
    def plan(self) -> RecordPlan:
        """The plan of the text parts: input files, settings, and how the parts are named."""
        return self.text.plan

    @property
    def spill_files(self) -> SpillFiles:
        """Temporary files that store values on disk between two stages."""
        return SpillFiles.in_directory(self.text.commit.unfinished)

    def find_finished(self) -> TextManifest | None:
        """Return the manifest of a finished earlier run with the same plan and the same input files.

        Returns None if there is no such run.
        """
        manifest = self.text.finished()
        if manifest is None:
            return None
        md5s = storage.map_paths(list(self.plan.files), compute_file_md5)
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
    """Return the plan for making text parts from these files of records.

    Raises DatasetError if the output directory was made with other settings.

    directory: output directory of the parts.
    kind: kind of the files, such as "jsonl".
    """
    plan = plan_record_parts(sources, directory, kind, settings, punkt_tables)
    text = TextDirectory(directory, plan)
    text.commit.refuse_others()
    return RecordStage(text=text, load_splitter=make_splitter_loader(plan.settings, engine, punkt_tables))

"""Write MLPerf's parts or NVIDIA's shards from files of articles or plain text."""

from collections.abc import Callable, Sequence

from bertdata.errors import MissingInputError, SettingsError, TooFewArticles
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.grouped_run import GroupedRun
from bertdata.text.mlperf_evaluation import add_remedy
from bertdata.text.mlperf_writing import write_parts
from bertdata.text.nvidia_writing import write_shards
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import TextPlan, plan_text

OnFileDone = Callable[[int], None]
"""Function called after each file with its size in bytes."""


def segment_files(
    files: Sequence[str],
    directory: str,
    settings: SegmentSettings,
    load_splitter: SplitterLoader,
    *,
    kinds: Sequence[str] = (),
    workers: int = 1,
    progress: OnFileDone | None = None,
) -> SegmentCounts:
    """Write the sentences of text files, in the order of the files, into a directory.

    The recipe mlperf makes a part from each file. The recipes nvidia and habana distribute the articles over
    shards.

    The output has the same bytes for any number of workers. A run after a crash keeps what is finished. If
    the directory is already finished with the same plan and inputs, nothing is done. Raises InputError for
    faulty data, and DatasetError if the directory holds files that ``segment`` does not write.

    kinds: kind of each file, a key of ``input_kinds.KINDS``. Empty: all files are extracted articles.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected 1 or more")
    if not files:
        raise MissingInputError("no extracted files given")
    text = TextDirectory(directory, plan_text(files, settings, kinds))
    try:
        return _run_stage(files, text, load_splitter, workers, progress or (lambda size: None))
    except TooFewArticles as error:
        raise add_remedy(error, files, text.plan.kinds, workers) from None


def _run_stage(
    files: Sequence[str],
    text: TextDirectory[TextPlan],
    load_splitter: SplitterLoader,
    workers: int,
    progress: OnFileDone,
) -> SegmentCounts:
    """Process the files by the settings' recipe, write the directory, and return the counts."""
    with ProcessPool(min(workers, len(files))) as pool:
        run = GroupedRun(files, text, load_splitter, pool, progress)
        if (finished := text.finished()) is not None and run.has_same_inputs(finished):
            text.keep_finished(finished)
            return finished.counts
        with text.commit.run():
            made = write_parts(run) if text.plan.settings.recipe == "mlperf" else write_shards(run)
            return text.finish(run.inputs, made, in_order=pool.in_order).counts

"""The text stage as a whole: articles or other documents in, parts or shards out."""

from collections.abc import Callable, Sequence

from bertdata.errors import MissingInputError, SettingsError, TooFewArticles
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.evaluation import with_remedy
from bertdata.text.grouped_run import GroupedRun
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.splitter import SplitterLoader
from bertdata.text.text_plan import TextPlan, plan_text
from bertdata.text.write_parts import write_parts
from bertdata.text.write_shards import write_shards

OnFileDone = Callable[[int], None]
"""Called after each file with its bytes."""


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
    """Write the parts, or the shards, of the files, in their order, into a directory.

    kinds: of the files, as in ``input_kinds``; all are extracted articles where none is given.
    The same bytes for any number of workers. A run that goes on after a crash keeps what is finished; a
    finished directory of the same plan and the same inputs is known by its manifest, and nothing is
    done. InputError and its like for data at fault; DatasetError when the directory holds something else.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected 1 or more")
    if not files:
        raise MissingInputError("no extracted files given")
    text = TextDirectory(directory, plan_text(files, settings, kinds))
    try:
        return _run(files, text, load_splitter, workers, progress or (lambda size: None))
    except TooFewArticles as error:
        raise with_remedy(error, files, text.plan.kinds, workers) from None


def _run(
    files: Sequence[str],
    text: TextDirectory[TextPlan],
    load_splitter: SplitterLoader,
    workers: int,
    progress: OnFileDone,
) -> SegmentCounts:
    with ProcessPool(min(workers, len(files))) as pool:
        run = GroupedRun(files, text, load_splitter, pool, progress)
        if (finished := text.finished()) is not None and run.has_same_inputs(finished):
            text.commit.release_finished()
            return finished.counts
        with text.commit.run():
            made = write_parts(run) if text.plan.settings.recipe == "mlperf" else write_shards(run)
            return text.finish(run.inputs, made, in_order=pool.in_order).counts

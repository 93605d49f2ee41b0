"""The step that extracts articles from a Wikipedia dump."""

import datetime
from collections.abc import Iterable, Sequence

from bertdata._native import Engine
from bertdata.config.recipes import find_recipe
from bertdata.errors import SettingsError
from bertdata.io.patterns import expand_patterns
from bertdata.steps.progress import GivenProgress, StepProgress, choose_progress
from bertdata.steps.values import AnyPath, convert_path, count_workers
from bertdata.wiki import extract as wiki
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.settings import ExtractorName, ExtractSettings

STAGES = {"templates": "collecting templates", "articles": "extracting articles"}


def extract(
    dump: AnyPath,
    output: AnyPath,
    *,
    recipe: str | None = None,
    extractor: ExtractorName | None = None,
    date: datetime.date | str | None = None,
    templates: bool | None = None,
    skip_page: int | str | Iterable[int | str] = (),
    engine: Engine | None = None,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> ExtractReport:
    """Extract the dump's articles into ``output/AA/wiki_00`` and so on, as ``bertdata extract`` does.

    If the directory is already finished for the same dump and settings, nothing is done. Raises InputError
    for a damaged dump, or for a page that takes too much work (``--help`` says how much). Raises DatasetError
    if the directory holds something else.

    recipe: name of the recipe that ``create`` will use on the articles.
    extractor: version of WikiExtractor whose text is reproduced: "3.1.0", or "mlperf" (the same as "2.75").
        None: 2.75 for the recipes mlperf, nvidia and habana, 3.1.0 for all others.
    date: the day that ``{{CURRENTDAY}}`` and similar templates show, a date or YYYY-MM-DD. None: the dump's
        date.
    templates: whether to expand templates. None: as the reproduced program does.
    skip_page: id or ids of pages to leave out.
    engine: "native" or "python". None: native if the kernels are built.
    workers: number of processes. None: one per core.
    progress: function called with a StepProgress.
    """
    pages = [skip_page] if isinstance(skip_page, int | str) else skip_page
    settings = ExtractSettings(
        extractor=extractor or find_recipe_extractor(recipe),
        date=parse_day(date),
        templates=templates,
        skip_pages=tuple(map(str, pages)),
    )
    on_progress = choose_progress(progress)

    def report_stage(stage: str, done: int, total: int) -> None:
        on_progress(StepProgress(stage=STAGES[stage], done=done, total=total))

    return wiki.extract_dump(
        convert_path(dump),
        convert_path(output),
        settings,
        engine=engine,
        workers=count_workers(workers),
        progress=report_stage,
    )


def find_single_dump(names: Sequence[str], taker: str) -> str:
    """Return the path of the only dump that the names or patterns stand for.

    Raises SettingsError if there are several, since Wikipedia publishes large dumps in parts.

    taker: the command or function that reads the dump, for the error message.
    """
    found = list(names) if len(names) > 1 else expand_patterns(list(names))
    if len(found) > 1:
        more = ", ..." if len(found) > 2 else ""
        raise SettingsError(
            f"{taker} takes one dump, not {len(found)} ({found[0]}, {found[1]}{more}); extract each into a "
            "directory of its own, bertdata extract DUMP --output DIR, and go on with the articles of all: "
            "--input-kind articles and these directories"
        )
    return found[0]


def find_recipe_extractor(recipe: str | None) -> ExtractorName:
    """Return the extractor that the recipe uses. Raises SettingsError if the recipe is unknown."""
    return "3.1.0" if recipe is None else find_recipe(recipe).extractor


def parse_day(date: datetime.date | str | None) -> datetime.date | None:
    """Return the date as a ``datetime.date``. Raises SettingsError for a text that is not a date."""
    if isinstance(date, datetime.datetime):
        return date.date()
    if date is None or isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(date)
    except (TypeError, ValueError):
        raise SettingsError(f"date is {date!r}, expected YYYY-MM-DD") from None

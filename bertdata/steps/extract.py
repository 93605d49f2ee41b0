"""A Wikipedia dump to extracted articles."""

import datetime
from collections.abc import Iterable, Sequence

from bertdata._native import Engine
from bertdata.config.recipes import find_recipe
from bertdata.errors import SettingsError
from bertdata.io.patterns import expand
from bertdata.steps.progress import OnProgress, StepProgress, silent
from bertdata.steps.values import AnyPath, path_of, workers_of
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
    progress: OnProgress | None = None,
) -> ExtractReport:
    """Write the dump's articles into ``output/AA/wiki_00`` and so on, as ``bertdata extract`` does.

    recipe: that the articles are meant for, as create takes it. extractor: the program whose text it is,
    "3.1.0", or "mlperf", also spelt "2.75"; None: the recipe's, 2.75 for mlperf, nvidia and habana, else
    3.1.0. date: the day that
    ``{{CURRENTDAY}}`` and its relatives expand to, a date or YYYY-MM-DD; None: the dump's own. templates:
    whether they are expanded; None: as the program does. skip_page: id of a page to leave out, or several.
    engine: "native" or "python"; None: native where the kernels are built. A finished directory of the same
    dump and settings is left as it is. InputError for a damaged dump, or for a page that takes too much work
    (``--help`` says how much); DatasetError for a directory that holds something else.
    """
    pages = [skip_page] if isinstance(skip_page, int | str) else skip_page
    settings = ExtractSettings(
        extractor=extractor or extractor_of(recipe),
        date=day_of(date),
        templates=templates,
        skip_pages=tuple(map(str, pages)),
    )
    tell = progress or silent

    def show(stage: str, done: int, total: int) -> None:
        tell(StepProgress(stage=STAGES[stage], done=done, total=total))

    return wiki.extract_dump(
        path_of(dump),
        path_of(output),
        settings,
        engine=engine,
        workers=workers_of(workers),
        progress=show,
    )


def one_dump(names: Sequence[str], taker: str) -> str:
    """Return the path of the dump that the names, of which one may be a pattern, stand for.

    taker: of the dump, for the error. SettingsError for several: Wikipedia publishes big dumps in parts.
    """
    found = list(names) if len(names) > 1 else expand(list(names))
    if len(found) > 1:
        more = ", ..." if len(found) > 2 else ""
        raise SettingsError(
            f"{taker} takes one dump, not {len(found)} ({found[0]}, {found[1]}{more}); extract each into a "
            "directory of its own, bertdata extract DUMP --output DIR, and go on with the articles of all: "
            "--input-kind articles and these directories"
        )
    return found[0]


def extractor_of(recipe: str | None) -> ExtractorName:
    """Return the extractor for the recipe. SettingsError for a recipe that is not known."""
    return "3.1.0" if recipe is None else find_recipe(recipe).extractor


def day_of(date: datetime.date | str | None) -> datetime.date | None:
    """The day. SettingsError for a text that is no date."""
    if isinstance(date, datetime.datetime):
        return date.date()
    if date is None or isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(date)
    except (TypeError, ValueError):
        raise SettingsError(f"date is {date!r}, expected YYYY-MM-DD") from None

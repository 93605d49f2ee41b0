"""The extraction of a run: the dump's ranges, its settings, and the directory of the articles."""

import datetime
import os
from dataclasses import dataclass

from beam_pipelines.transport.spill_files import SUFFIX
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.directory_protocol import FOR_ONE_RUN
from bertdata.io.file_identity import FileIdentity, identify
from bertdata.io.outputs import refuse_inputs
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.articles.directory import ArticlesDirectory
from bertdata.wiki.dump.dump import open_dump
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.dump.text import open_file
from bertdata.wiki.extractor import ExtractorSettings
from bertdata.wiki.open_extractor import check_engine
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.ranges.ranges import DumpRanges, dump_kind, fitting_range_bytes
from bertdata.wiki.ranges.shared_templates import SharedTemplates, fetched_templates
from bertdata.wiki.settings import ExtractSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Definitions:
    """The first pass's result, small: where the templates are, and the day that dates are frozen at.

    pages: template pages met; left_out: ids of those that were left out. digests: of each range's text, None
    where there was no first pass.
    """

    day: datetime.date
    templates: SharedTemplates | None = None
    pages: int = 0
    left_out: tuple[str, ...] = ()
    digests: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionStage:
    """The articles to extract from a dump. Picklable, shared by all workers.

    identity: of the dump's file, in which all workers read it.
    """

    ranges: DumpRanges
    identity: FileIdentity
    site: SiteInfo
    articles: ArticlesDirectory
    engine: Engine | None

    @property
    def known(self) -> Definitions | None:
        """The first pass's result where none is needed: no templates, and a day that is known."""
        day = self.articles.day
        return None if day is None or self.articles.settings.templates else Definitions(day=day)

    def settings(self, definitions: Definitions | None = None) -> ExtractorSettings:
        """A worker's settings, with the templates fetched. definitions: None in the first pass."""
        settings = self.articles.settings
        templates = None if definitions is None else definitions.templates
        return ExtractorSettings(
            extractor=settings.extractor,
            engine=check_engine(settings.extractor, self.engine),
            site=self.site,
            day=self.articles.day if definitions is None else definitions.day,
            templates=None if templates is None else fetched_templates(templates),
            max_page_bytes=settings.max_page_bytes,
            rules=PageRules(dump=self.ranges.path, skip_pages=settings.skip_pages),
        )

    def new_path(self) -> str:
        """The path of a new file for a later stage of this run, which all workers share."""
        unfinished = self.articles.commit.unfinished
        storage.make_directory(unfinished)
        return storage.join(unfinished, f"{os.urandom(12).hex()}{SUFFIX}")

    def templates_path(self, md5: str) -> str:
        """The path of the template file of that md5."""
        return storage.join(self.articles.commit.unfinished, f"templates-{md5}{FOR_ONE_RUN}")


def plan_extraction(
    dump: str, directory: str, settings: ExtractSettings, engine: Engine | None
) -> ExtractionStage:
    """Plan the extraction of the dump, whose head is read.

    InputError for what is no dump, DatasetError for a directory of other settings.
    """
    refuse_inputs(directory, [dump])
    identity = identify(dump)
    with open_dump(
        dump, ProcessPool(1), settings.extractor, max_page_bytes=settings.max_page_bytes
    ) as opened:
        site = opened.site
    with open_file(dump) as file:
        kind = dump_kind(file.read(4))
    size = identity.state.bytes
    ranges = DumpRanges(path=dump, bytes=size, kind=kind, range_bytes=fitting_range_bytes(size))
    articles = ArticlesDirectory(directory, dump, size, settings)
    articles.commit.refuse_others()
    return ExtractionStage(ranges=ranges, identity=identity, site=site, articles=articles, engine=engine)

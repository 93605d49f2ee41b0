"""The plan of an extraction from a dump: its byte ranges, the settings, and the directory of the articles."""

import datetime
import os
from dataclasses import dataclass

from beam_pipelines.transport.spill_files import SUFFIX
from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.directory_protocol import ONE_RUN_ENDING
from bertdata.io.file_identity import FileIdentity, identify_file
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.articles.directory import ArticlesDirectory
from bertdata.wiki.dump.dump import open_dump
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.dump.text import open_file
from bertdata.wiki.extractor import ExtractorSettings
from bertdata.wiki.open_extractor import check_engine
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.ranges.ranges import DumpRanges, choose_range_bytes, recognise_dump
from bertdata.wiki.ranges.shared_templates import SharedTemplates, fetch_templates
from bertdata.wiki.settings import ExtractSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Definitions:
    """Results of the first pass over the dump, which collects its template definitions.

    day: the date that date templates show.
    templates: path of the file with all templates. None if no templates are expanded.
    pages: number of template pages.
    left_out: ids of the template pages that were left out because of errors.
    digests: digest of the text of each byte range. None if there was no first pass.
    """

    day: datetime.date
    templates: SharedTemplates | None = None
    pages: int = 0
    left_out: tuple[str, ...] = ()
    digests: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionStage:
    """The plan of an extraction from a dump. It is pickled and sent to all workers.

    ranges: the byte ranges that the dump is divided into.
    identity: the dump file in the state in which the run first saw it, to notice a later change.
    site: description of the wiki from the beginning of the dump, such as the names of its namespaces.
    articles: the output directory.
    engine: the engine that the user chose. None for the usual one.
    """

    ranges: DumpRanges
    identity: FileIdentity
    site: SiteInfo
    articles: ArticlesDirectory
    engine: Engine | None

    @property
    def known(self) -> Definitions | None:
        """The results of the first pass, if they are known without reading the dump, otherwise None.

        They are known if no templates are expanded and the date for date templates is set.
        """
        day = self.articles.day
        return None if day is None or self.articles.settings.templates else Definitions(day=day)

    def make_settings(self, definitions: Definitions | None = None) -> ExtractorSettings:
        """Return the settings for a worker's extractor, and load the templates.

        definitions: results of the first pass. None during the first pass.
        """
        settings = self.articles.settings
        templates = None if definitions is None else definitions.templates
        return ExtractorSettings(
            extractor=settings.extractor,
            engine=check_engine(settings.extractor, self.engine),
            site=self.site,
            day=self.articles.day if definitions is None else definitions.day,
            templates=None if templates is None else fetch_templates(templates),
            max_page_bytes=settings.max_page_bytes,
            rules=PageRules(dump=self.ranges.path, skip_pages=settings.skip_pages),
        )

    def make_temporary_path(self) -> str:
        """Return a random path for a temporary file in the output directory, which all workers share."""
        unfinished = self.articles.commit.unfinished
        storage.make_directory(unfinished)
        return storage.join(unfinished, f"{os.urandom(12).hex()}{SUFFIX}")

    def find_templates_path(self, md5: str) -> str:
        """Return the path of the file with all templates. Its name contains the md5 of its contents."""
        return storage.join(self.articles.commit.unfinished, f"templates-{md5}{ONE_RUN_ENDING}")


def plan_extraction(
    dump: str, directory: str, settings: ExtractSettings, engine: Engine | None
) -> ExtractionStage:
    """Plan the extraction of a dump's articles into a directory. This reads the beginning of the dump.

    Raises InputError if the file is not a dump, and DatasetError if the directory was made with other
    settings.
    """
    refuse_input_as_output(directory, [dump])
    identity = identify_file(dump)
    with open_dump(
        dump, ProcessPool(1), settings.extractor, max_page_bytes=settings.max_page_bytes
    ) as opened:
        site = opened.site
    with open_file(dump) as file:
        kind = recognise_dump(file.read(4))
    size = identity.state.bytes
    ranges = DumpRanges(path=dump, bytes=size, kind=kind, range_bytes=choose_range_bytes(size))
    articles = ArticlesDirectory(directory, dump, size, settings)
    articles.commit.refuse_others()
    return ExtractionStage(ranges=ranges, identity=identity, site=site, articles=articles, engine=engine)

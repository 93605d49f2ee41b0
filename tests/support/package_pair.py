"""A comparison of the C++ kernel of wikiextractor 3.1.0 with the original package on the same dump."""

import datetime
from pathlib import Path
from typing import Any

from bertdata._native import kernels
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.extractor import BlockState, ExtractorSettings
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.wikiextractor.package_extractor import PackageExtractor
from tests.support.wiki_extraction import START, template_file

DAY = "2020-01-01"
LIMITS: dict[str, Any] = {"max_page_bytes": 1 << 24, "max_work": 1 << 26, "skip_pages": []}
"""A page with more work may be one that the package never ends on."""


class PackagePair:
    """The kernel and the package, both loaded with the dump's definitions, which must be equal."""

    def __init__(self, head: dict[str, Any], data: bytes, directory: str) -> None:
        kernel = kernels.Wikiextractor(**head, **LIMITS, day=DAY, templates=None)
        definitions, pages, left_out, *_ = kernel.definitions(data, START)
        file = template_file(definitions)
        path = Path(directory) / "templates"
        path.write_bytes(file)
        self.package = PackageExtractor(
            ExtractorSettings(
                extractor="3.1.0",
                engine="python",
                site=SiteInfo(**{**head, "namespaces": tuple(head["namespaces"])}),
                day=datetime.date.fromisoformat(DAY),
                templates=str(path),
                max_page_bytes=LIMITS["max_page_bytes"],
                rules=PageRules(dump="dump"),
            )
        )
        assert self.package.definitions(data, BlockState(*START))[:3] == (definitions, pages, left_out)
        self.kernel = kernels.Wikiextractor(**head, **LIMITS, day=DAY, templates=file)

    def check_block(self, data: bytes) -> None:
        """Fail unless the kernel and the package agree on the block.

        A block that the kernel gives up is skipped.
        """
        ours = self.kernel.extract(data, START)
        if not {"unknown", "limit"} & {outcome[0] for outcome in ours[1]}:
            articles, outcomes, first_id, leaving, _ = self.package.extract(data, BlockState(*START))
            assert ours == (articles, outcomes, first_id, leaving)

    def check_pages(self, data: bytes) -> None:
        """Fail unless the kernel and the package agree on each page, taken as a separate block."""
        _, outcomes, _, _ = self.kernel.extract(data, START)
        behind = 0
        for *_, end in outcomes:
            self.check_block(data[behind:end])
            behind = end

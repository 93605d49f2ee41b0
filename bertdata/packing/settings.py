"""Settings of packed rows."""

from dataclasses import dataclass

from bertdata.config.settings import check
from bertdata.packing.methods import METHODS
from bertdata.shards.packed.layouts import Layout, find_layout


@dataclass(frozen=True, kw_only=True, slots=True)
class PackSettings:
    """What, besides the examples, decides the bytes of packed shards.

    layout: name in LAYOUTS; format: its container, None: the layout's default; most: examples a row at most;
    method: name in METHODS; seed: of the order of examples and rows; num_shards: None: the layout's
    own, or as many as the source has.
    """

    layout: str = "flat"
    format: str | None = None
    most: int = 3
    method: str = "lp"
    seed: int = 12345
    num_shards: int | None = None

    def __post_init__(self) -> None:
        formats = find_layout(self.layout).formats
        check(
            self.format is None or self.format in formats,
            f"format is {self.format!r}, layout {self.layout} has {' or '.join(formats)}",
        )
        check(self.method in METHODS, f"method is {self.method!r}, expected one of {', '.join(METHODS)}")
        check(self.most >= 1, f"max_sequences_per_pack is {self.most}, expected 1 or more")
        check(
            self.num_shards is None or self.num_shards >= 1,
            f"num_shards is {self.num_shards}, expected 1 or more",
        )

    @property
    def rows(self) -> Layout:
        """The layout."""
        return find_layout(self.layout)

    @property
    def container(self) -> str:
        """The format."""
        return self.format or self.rows.default_format

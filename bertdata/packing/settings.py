"""The settings that describe how a dataset is packed into rows."""

from dataclasses import dataclass

from bertdata.config.settings import require
from bertdata.packing.methods import METHODS
from bertdata.shards.packed.layouts import Layout, find_layout


@dataclass(frozen=True, kw_only=True, slots=True)
class PackSettings:
    """Settings of a packed dataset. Together with the examples they determine the bytes of the packed shards.

    layout: name of the layout of packed rows, a key of LAYOUTS.
    format: container of the packed shards. None means the layout's default.
    most: most examples in a row (--max-sequences-per-pack).
    method: name of the method that plans the rows, a key of METHODS.
    seed: decides the order of examples and rows.
    num_shards: number of shards. None means the fixed number of rows per shard that the layout has. If it has
        none, there are as many shards as in the source.
    """

    layout: str = "flat"
    format: str | None = None
    most: int = 3
    method: str = "lp"
    seed: int = 12345
    num_shards: int | None = None

    def __post_init__(self) -> None:
        formats = find_layout(self.layout).formats
        require(
            self.format is None or self.format in formats,
            f"format is {self.format!r}, layout {self.layout} has {' or '.join(formats)}",
        )
        require(self.method in METHODS, f"method is {self.method!r}, expected one of {', '.join(METHODS)}")
        require(self.most >= 1, f"max_sequences_per_pack is {self.most}, expected 1 or more")
        require(
            self.num_shards is None or self.num_shards >= 1,
            f"num_shards is {self.num_shards}, expected 1 or more",
        )

    @property
    def rows(self) -> Layout:
        """The layout with the name ``layout``."""
        return find_layout(self.layout)

    @property
    def container(self) -> str:
        """File format of the packed shards. It is the layout's default format if none was chosen."""
        return self.format or self.rows.default_format

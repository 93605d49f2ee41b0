"""The arguments of ``pack`` as a dataclass (the request)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from bertdata.shards.packed.layouts import LAYOUTS
from bertdata.steps.keywords import OBJECTIVE_HELP, GivenProcesses, convert_paths
from bertdata.steps.open_dataset import require_package
from bertdata.steps.values import AnyPath, check_positive_integer

if TYPE_CHECKING:
    from bertdata.packing.settings import PackSettings


@dataclass(frozen=True, kw_only=True)
class GivenPackSettings:
    """Settings for the packed rows, and for reading the dataset.

    None stands for the default that the setting's help names. Each field is a flag of ``bertdata pack`` and
    of the Beam pipeline for packing.
    """

    layout: str | None = setting(
        None, f"layout of the rows: {', '.join(LAYOUTS)} (default: flat, bertdata's own)", metavar="NAME"
    )
    format: str | None = setting(
        None, "file format of the shards, if the layout allows several formats", metavar="NAME"
    )
    max_sequences_per_pack: int | None = setting(
        None, "most examples in a row (default: 3)", least=1, metavar="N"
    )
    method: str | None = setting(
        None,
        "how rows are planned. lp (default): linear program; lpfhp: longest pack first; nnls: non-negative "
        "least squares, as in Habana's and Graphcore's programs",
        metavar="NAME",
    )
    num_shards: int | None = setting(
        None,
        "number of shards to make. Default: as many as DIR has; with --layout habana one for every 4480 "
        "rows, with --layout graphcore one for every 500000 rows",
        least=1,
        metavar="N",
    )
    seed: int | None = setting(None, "seed for the order of examples and rows (default: 12345)", metavar="N")
    unverified: bool = setting(
        False, "read files that other tools wrote and that have no manifest; needs --vocab"
    )
    vocab: AnyPath | None = setting(None, "vocabulary that the examples were made with", metavar="FILE|NAME")
    objective: str | None = setting(None, OBJECTIVE_HELP, metavar="NAME")


@dataclass(frozen=True)
class PackRequest(GivenProcesses, GivenPackSettings):
    """All arguments of ``pack``.

    path: directory of the dataset. With ``unverified`` it may also be files without a manifest.
    output: directory of the packed dataset. Not needed if only the plan is asked for.
    """

    path: AnyPath
    output: AnyPath | None = None
    _: KW_ONLY
    plan_only: bool = setting(False, "print how full the rows would be, and write nothing")

    def __post_init__(self) -> None:
        GivenProcesses.__post_init__(self)
        convert_paths(self, paths=("path", "output", "vocab"))

    def settings(self) -> PackSettings:
        """Return the settings of the rows. Raises SettingsError if one is wrong."""
        require_package("numpy", "pack", "packing")
        from bertdata.packing.settings import PackSettings

        for name in ("max_sequences_per_pack", "num_shards"):
            if getattr(self, name) is not None:
                check_positive_integer(name, getattr(self, name))
        if self.seed is not None and type(self.seed) is not int:
            raise SettingsError(f"seed is {self.seed!r}, expected an integer")
        given: dict[str, Any] = {
            "layout": self.layout,
            "format": self.format,
            "most": self.max_sequences_per_pack,
            "method": self.method,
            "seed": self.seed,
            "num_shards": self.num_shards,
        }
        return PackSettings(**{name: value for name, value in given.items() if value is not None})

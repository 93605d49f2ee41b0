"""Layouts of packed rows by name, each with its writers and readers; ``pack --layout`` offers them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from bertdata.errors import SettingsError, ShardError
from bertdata.records import ShardLayout
from bertdata.shards.packed.packs import PackReader, PackWriter
from bertdata.shards.parquet_file import file_metadata, load_pyarrow
from bertdata.shards.protocol import Sink


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A layout: the containers that it exists in, and the masked positions that one of its rows can hold.

    mask_room: of a ShardLayout with its packing; None: as many as its sequences have.
    has_index: an index of its records lies beside each TFRecord file.
    """

    name: str
    formats: tuple[str, ...]
    mask_room: Callable[[ShardLayout], int | None] = lambda layout: None
    has_index: bool = False

    @property
    def default_format(self) -> str:
        return self.formats[0]


LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Layout(name="flat", formats=("parquet",)),)}


def make_pack_writer(layout: ShardLayout, format: str, sink: Sink) -> PackWriter:
    """A writer of the layout's rows into a container of that format.

    SettingsError where the layout or the format is not known; HDF5 and Parquet need their extras.
    """
    found = find_layout(layout.packing)
    if format not in found.formats:
        expected = " or ".join(found.formats)
        raise SettingsError(f"layout {found.name} has no form in {format}, expected {expected}")
    if found.name == "flat":
        load_pyarrow()
        from bertdata.shards.packed.flat import FlatWriter

        return FlatWriter(sink, layout)
    raise AssertionError(found.name)


def find_layout(name: str | None) -> Layout:
    """The layout of that name; SettingsError where there is none."""
    if name not in LAYOUTS:
        raise SettingsError(f"layout {name!r} is not known, expected one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def make_pack_reader(file: IO[bytes], name: str, format: str) -> PackReader | None:
    """A reader of the packed rows in a container of that format; None where its rows are not packed.

    Our own files say so in their metadata; others are known by their fields.
    """
    if format == "parquet":
        return _parquet_reader(file, name)
    return None


def _parquet_reader(file: Any, name: str) -> PackReader | None:
    packing = file_metadata(file, "packing")
    if packing is None:
        return None
    if packing != "flat":
        raise ShardError(f"{name}: bertdata.packing is {packing!r} in the metadata, expected 'flat'")
    from bertdata.shards.packed.flat import FlatReader

    return FlatReader(file, name)

"""The layouts of packed rows by name, with their writers and readers. ``pack --layout`` offers these
names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

from bertdata._native import Engine
from bertdata.errors import MissingExtraError, SettingsError, ShardError, install_extra
from bertdata.examples.groups import PAIRS, check_groups
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.records import DEFAULT_OBJECTIVE, ColumnGroup, ShardLayout
from bertdata.shards.example_proto import NotAnExample, decode_example
from bertdata.shards.framing import read_payloads
from bertdata.shards.hdf5_datasets import read_dataset_types, read_objective
from bertdata.shards.hdf5_file import load_h5py
from bertdata.shards.packed.fields import load_row_fields
from bertdata.shards.packed.packs import PackReader, PackWriter, count_grid_mask_slots
from bertdata.shards.parquet_file import load_pyarrow, read_metadata
from bertdata.shards.protocol import Sink


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A layout of packed rows.

    name: name of the layout.
    formats: containers in which it can be stored. The first is the default.
    groups: column groups that its examples must have. None allows any.
    mask_room: function that returns the most masked positions of a row. None allows any number.
    has_index: True if each TFRecord file has an index file (``bertdata.shards.packed.record_index``).
    """

    name: str
    formats: tuple[str, ...]
    groups: tuple[ColumnGroup, ...] | None = PAIRS
    mask_room: Callable[[ShardLayout], int | None] = lambda layout: None
    has_index: bool = False

    @property
    def default_format(self) -> str:
        return self.formats[0]

    def check_objective(self, name: str) -> None:
        """Raise SettingsError if the layout cannot hold examples of the objective with this name."""
        if self.groups is not None:
            remedy = "; the layout flat holds any"
            check_groups(f"layout {self.name}", self.groups, name, find_objective(name).batch_type, remedy)


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout(name="flat", formats=("parquet",), groups=None),
        Layout(name="habana", formats=("hdf5", "tfrecord"), mask_room=count_grid_mask_slots),
        Layout(name="graphcore", formats=("tfrecord",), mask_room=count_grid_mask_slots, has_index=True),
        Layout(name="nvidia", formats=("hdf5",)),
    )
}


def make_pack_writer(
    layout: ShardLayout, format: str, sink: Sink, engine: Engine | None = None
) -> PackWriter:
    """Return an object that writes packed rows to a shard.

    Raises SettingsError if the layout or the container is unknown. HDF5 and Parquet need optional packages.

    layout: names the layout of packed rows and its sizes.
    format: name of the container.
    sink: receives the shard's bytes.
    """
    found = find_layout(layout.packing)
    if format not in found.formats:
        expected = " or ".join(found.formats)
        raise SettingsError(f"layout {found.name} has no form in {format}, expected {expected}")
    found.check_objective(layout.objective)
    if format == "parquet":
        load_pyarrow()
        from bertdata.shards.packed.flat import FlatWriter

        return FlatWriter(sink, layout)
    if format == "tfrecord":
        _load_numpy(found.name)
        from bertdata.shards.packed.grid_tfrecord import GridRecordWriter

        return GridRecordWriter(sink, layout, _find_arrangement(found.name), engine)
    load_h5py()
    if found.name == "nvidia":
        from bertdata.shards.packed.nvidia import NvidiaWriter

        return NvidiaWriter(sink, layout)
    from bertdata.shards.packed.grid_hdf5 import GridHdf5Writer

    return GridHdf5Writer(sink, layout, _find_arrangement(found.name))


def find_layout(name: str | None) -> Layout:
    """Return the layout of packed rows with this name. Raises SettingsError for an unknown name."""
    if name not in LAYOUTS:
        raise SettingsError(f"layout {name!r} is not known, expected one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def make_pack_reader(
    file: IO[bytes],
    name: str,
    format: str,
    engine: Engine | None = None,
    objective: Objective | None = None,
) -> PackReader | None:
    """Return an object that reads the packed rows of a file. Returns None if the file's rows are not packed.

    bertdata's Parquet files name their layout in the metadata. Other files are recognised by their fields.

    format: name of the container.
    objective: the examples' objective. None takes the objective that the file names.
    """
    make = _READERS.get(format)
    return None if make is None else make(file, name, engine, objective)


def _open_parquet(
    file: IO[bytes], name: str, engine: Engine | None, objective: Objective | None
) -> PackReader | None:
    """Return a reader for a Parquet file whose metadata name the layout flat.

    Returns None if they name no layout.

    Raises ShardError if they name another layout.
    """
    packing = read_metadata(file, "packing")
    if packing is None:
        return None
    if packing != "flat":
        raise ShardError(f"{name}: bertdata.packing is {packing!r} in the metadata, expected 'flat'")
    from bertdata.shards.packed.flat import FlatReader

    return FlatReader(file, name, objective)


def _open_hdf5(
    file: IO[bytes], name: str, engine: Engine | None, objective: Objective | None
) -> PackReader | None:
    """Return a reader for an HDF5 file whose datasets are the fields of a packed layout.

    Returns None for other files.
    """
    names = set(read_dataset_types(file))
    named = read_objective(file)
    if objective is None and named is not None:
        objective = find_objective_of_file(named, name)
    packing = _recognise_packing(names, "hdf5", objective)
    if packing is None:
        return None
    checked = _choose_objective(packing, objective)
    if packing == "nvidia":
        from bertdata.shards.packed.nvidia import NvidiaReader

        return NvidiaReader(file, name, checked)
    from bertdata.shards.packed.grid_hdf5 import GridHdf5Reader

    return GridHdf5Reader(file, name, _find_arrangement(packing), checked)


def _open_tfrecord(
    file: IO[bytes], name: str, engine: Engine | None, objective: Objective | None
) -> PackReader | None:
    """Return a reader for a TFRecord file whose first record has the fields of a packed layout.

    Returns None for other files.
    """
    packing = _recognise_packing(_read_field_names(file, name), "tfrecord", objective)
    if packing is None:
        return None
    _load_numpy(packing)
    from bertdata.shards.packed.grid_tfrecord import GridRecordReader

    return GridRecordReader(
        file, name, _find_arrangement(packing), _choose_objective(packing, objective), engine
    )


_READERS = {"tfrecord": _open_tfrecord, "hdf5": _open_hdf5, "parquet": _open_parquet}
"""For each container that can hold packed rows, the function that opens a file of packed rows."""


def _choose_objective(packing: str, objective: Objective | None) -> Objective:
    """Return the objective, or the default objective if it is None.

    Raises SettingsError if the layout cannot hold the objective's examples.

    packing: name of the layout of packed rows.
    """
    found = objective or find_objective(DEFAULT_OBJECTIVE)
    find_layout(packing).check_objective(found.name)
    return found


def _read_field_names(file: IO[bytes], name: str) -> set[str]:
    """Return the names of the fields in a TFRecord's first record.

    The result is empty if the record cannot be read.
    """
    try:
        return set(decode_example(next(read_payloads(file, name), b"")))
    except (ShardError, NotAnExample):
        return set()  # If the file is damaged, opening it as a shard reports it later.
    finally:
        file.seek(0)


def _recognise_packing(names: set[str], format: str, objective: Objective | None) -> str | None:
    """Return the name of the packed layout whose rows have these fields.

    Returns None if the rows are not packed.

    If the fields are neither those of a layout nor of plain examples, the layout with the most similar fields
    is returned. Its reader then raises an error that names the fields that differ.

    names: names of the fields.
    format: name of the container.
    """
    try:
        of_examples = set((objective or find_objective(DEFAULT_OBJECTIVE)).fields(format))
    except SettingsError:
        of_examples = set()
    found, fewest = None, len(names ^ of_examples)
    for layout in LAYOUTS.values():
        if layout.groups is not None and format in layout.formats:
            differing = len(names ^ set(load_row_fields(layout.name, format)))
            if names and differing < fewest:
                found, fewest = layout.name, differing
    return found


def _find_arrangement(packing: str) -> Any:
    if packing == "habana":
        from bertdata.shards.packed.habana import HABANA

        return HABANA
    from bertdata.shards.packed.graphcore import GRAPHCORE

    return GRAPHCORE


def _load_numpy(packing: str) -> None:
    """Raise MissingExtraError if NumPy is not installed. The message names the layout ``packing``."""
    try:
        import_module("numpy")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"layout {packing} needs the package {error.name}: {install_extra('numpy')}"
        ) from error

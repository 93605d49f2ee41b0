"""Shards, which are files of examples, in file formats (containers) such as TFRecord, HDF5, Parquet and
MDS.
"""

from bertdata.shards.containers import open_reader

__all__ = ["open_reader"]

"""Containers of examples (TFRecord, HDF5, Parquet, MDS) behind one writer and one reader."""

from bertdata.shards.containers import open_reader

__all__ = ["open_reader"]

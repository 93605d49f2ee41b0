"""Containers of examples (TFRecord, HDF5, Parquet) behind one writer and one reader."""

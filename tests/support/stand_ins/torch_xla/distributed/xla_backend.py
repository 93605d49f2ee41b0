"""A stand-in for torch_xla.distributed.xla_backend 2.9.0, which is imported to register the backend."""

from recording import record

record("import torch_xla.distributed.xla_backend")

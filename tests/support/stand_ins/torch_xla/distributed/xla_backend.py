"""A stand-in for torch_xla.distributed.xla_backend 2.9.0: imported for what it registers."""

from recording import record

record("import torch_xla.distributed.xla_backend")

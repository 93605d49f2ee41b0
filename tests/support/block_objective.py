"""A user-defined objective whose examples have ids and masks, so that the built-in task can train on them."""

from bertdata.examples.mlm.objective import MlmObjective
from schemas import load_schema

NAME = "tests.support.block_objective:BLOCKS"
BLOCKS = MlmObjective(NAME, load_schema("example")["mlm"])

"""An objective of one's own with ids and masks, which the trainer's own task learns."""

from bertdata.examples.mlm.objective import MlmObjective
from schemas import load_schema

NAME = "tests.support.block_objective:BLOCKS"
BLOCKS = MlmObjective(NAME, load_schema("example")["mlm"])

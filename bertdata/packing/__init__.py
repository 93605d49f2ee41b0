"""Examples to packed rows: histogram, plan, place of each example. Nothing here reads or writes a shard."""

"""Descriptions of datasets and models in the field's standards, and signatures: what others' tools can check."""

"""Recorded training runs of original programs, which this trainer repeats to compare the losses."""

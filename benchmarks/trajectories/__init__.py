"""Recorded training runs of original programs, trained again with this trainer and compared loss by loss."""

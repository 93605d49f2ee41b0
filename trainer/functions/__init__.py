"""The functions that ``import trainer`` offers, one module for each, and what the functions share."""

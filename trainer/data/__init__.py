"""Training data: opening, random examples, and the order of the examples."""

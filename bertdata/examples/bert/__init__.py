"""BERT's objective of 2018: masked words in two segments, and whether the second follows the first."""

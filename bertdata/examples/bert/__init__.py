"""BERT's objective of 2018: predict masked words, and whether the second segment follows the first."""

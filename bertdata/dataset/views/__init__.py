"""A dataset's examples in the forms that other libraries take: NumPy, torch, Hugging Face's datasets."""

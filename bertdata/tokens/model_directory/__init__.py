"""Reads the tokeniser of a model's directory in Hugging Face's form, with the ids of transformers'
AutoTokenizer.

``files`` reads the files of the directory. ``tokenizer_class`` finds the class that AutoTokenizer would use.
``classes`` makes the pipeline steps of each class. ``added_tokens`` collects the tokens that are added to the
vocabulary. ``reader`` puts all of this together to a tokenizer.json. The program
``tests/soak/tokenizer_fuzz.py`` compares the results with transformers 5.23.
"""

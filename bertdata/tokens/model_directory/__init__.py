"""A model's directory in Hugging Face's form: the tokeniser that transformers' AutoTokenizer makes of it.

``files`` reads the directory's JSON files; ``tokenizer_class`` finds the class that AutoTokenizer takes;
``classes`` has the steps that each class makes; ``added_tokens`` the tokens that are added to them;
``reader`` puts them together as a tokenizer.json. ``tests/soak/tokenizer_fuzz.py`` holds it against
transformers 5.23.
"""

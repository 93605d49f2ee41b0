"""Finds the class of tokeniser that AutoTokenizer of transformers 5 uses for a model's directory."""

from bertdata.errors import VocabularyError
from bertdata.tokens.model_directory.files import CONFIG_NAME, TOKENIZER_CONFIG_NAME, ModelFiles

BACKEND = "TokenizersBackend"
"""Name of the class in transformers that uses a tokenizer.json unchanged.

``_BACKEND_NAMES`` lists other names of this class.
"""

_BACKEND_NAMES = ("PreTrainedTokenizer", "PythonBackend", "Bloom", "BloomTokenizer")

_ALIASES = {
    **dict.fromkeys(
        (
            "DistilBertTokenizer",
            "ElectraTokenizer",
            "LayoutLMTokenizer",
            "LxmertTokenizer",
            "MobileBertTokenizer",
            "SqueezeBertTokenizer",
        ),
        "BertTokenizer",
    ),
    **dict.fromkeys(
        ("BartTokenizer", "LEDTokenizer", "LongformerTokenizer", "MvpTokenizer"), "RobertaTokenizer"
    ),
    **dict.fromkeys(_BACKEND_NAMES, BACKEND),
}
"""Name of a class that gives the same tokeniser, by the name of the other class."""

_CLASSES_BY_MODEL_TYPE = {
    **dict.fromkeys(
        (
            "bert",
            "distilbert",
            "electra",
            "ernie",
            "layoutlm",
            "megatron-bert",
            "nezha",
            "nomic_bert",
            "squeezebert",
        ),
        "BertTokenizer",
    ),
    "mobilebert": "MobileBertTokenizer",
    **dict.fromkeys(
        ("roberta", "roberta-prelayernorm", "bart", "longformer", "lilt", "ibert"), "RobertaTokenizer"
    ),
    "gpt2": "GPT2Tokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    **dict.fromkeys(("modernbert", "modernbert-decoder", "xlm-roberta-xl", "nystromformer"), BACKEND),
}
"""Class that is used if the directory does not name a class, by ``model_type`` in config.json."""

_PYTHON_CLASSES = (
    "BertGenerationTokenizer",
    "BertJapaneseTokenizer",
    "BertweetTokenizer",
    "ByT5Tokenizer",
    "CanineTokenizer",
    "EsmTokenizer",
    "FlaubertTokenizer",
    "MarianTokenizer",
    "PhobertTokenizer",
    "RoCBertTokenizer",
    "TapasTokenizer",
    "XLMTokenizer",
)
"""Names of classes that are implemented in Python and therefore cannot be written as a tokenizer.json."""


def _advise_saving(directory: str) -> str:
    """Return the remedy for an error message: save the tokeniser as a single tokenizer.json."""
    return (
        f"AutoTokenizer.from_pretrained({directory!r}).backend_tokenizer.save('tokenizer.json') of "
        "transformers makes one file of it, which can be given"
    )


def find_class(files: ModelFiles) -> str | None:
    """Return the name of the tokeniser's class, or None if the directory names neither a class nor a type of
    model whose class is known here.

    If the name is an alias of another class, the result is the name of that class.
    Raises VocabularyError if the tokeniser is a program in the directory itself.
    """
    settings = files.tokenizer_config
    _refuse_own_program(files)
    # The class may be named in tokenizer_config.json or config.json. If it is not, the type of the model
    # decides.
    named = settings.get("tokenizer_class") or files.config.get("tokenizer_class")
    model = files.config.get("model_type")
    for value, where in ((named, "tokenizer_class"), (model, "model_type")):
        if value is not None and not isinstance(value, str):
            raise VocabularyError(f"{files.directory}: its {where} is {value!r}, expected a name")
    of_model = _CLASSES_BY_MODEL_TYPE.get(model or "")
    if named is None:
        return None if of_model is None else _ALIASES.get(of_model, of_model)
    if of_model == BACKEND:
        return BACKEND  # Directories of these models name wrong classes. transformers ignores them too.
    # transformers 5 makes no difference between a class and the class with the same name and the suffix
    # "Fast".
    name = "PreTrainedTokenizer" if named == "PreTrainedTokenizerFast" else named.removesuffix("Fast")
    return _ALIASES.get(name, name)


def _refuse_own_program(files: ModelFiles) -> None:
    """Raise VocabularyError if the tokeniser is a program in the directory, which the key ``auto_map``
    names.
    """
    auto_map = files.tokenizer_config.get("auto_map")
    chooses_program = "AutoTokenizer" in auto_map if isinstance(auto_map, dict) else bool(auto_map)
    if chooses_program:
        raise VocabularyError(
            f"{files.make_path(TOKENIZER_CONFIG_NAME)}: its tokeniser is a program of its own (auto_map), "
            f"which no file may choose to run; if you trust it, {_advise_saving(files.directory)}"
        )


def make_unknown_class_error(files: ModelFiles, name: str, known: tuple[str, ...]) -> VocabularyError:
    """Make the error for a tokeniser class of transformers that this package cannot rebuild.

    name: the class that the directory names.
    known: names of the classes that can be rebuilt.
    """
    where = TOKENIZER_CONFIG_NAME if files.tokenizer_config.get("tokenizer_class") else CONFIG_NAME
    remedy = _advise_saving(files.directory)
    if name in _PYTHON_CLASSES:
        remedy = "it is a program in Python, of which no tokenizer.json can be made"
    return VocabularyError(
        f"{files.make_path(where)}: its tokeniser is {name}, which is not known here; expected one of "
        f"{', '.join(known)}; {remedy}"
    )

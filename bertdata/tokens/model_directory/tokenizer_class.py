"""The class of tokeniser that AutoTokenizer of transformers 5 takes for a model's directory."""

from bertdata.errors import VocabularyError
from bertdata.tokens.model_directory.files import CONFIG_NAME, TOKENIZER_CONFIG_NAME, ModelFiles

BACKEND = "TokenizersBackend"
"""The class that takes a tokenizer.json as it is. Other names of it: _BACKEND_NAMES."""

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
"""Names of classes that are another one in transformers 5, or make the same of every directory."""

_OF_MODELS = {
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
"""The class of a kind of model, for directories that name none, by model_type of config.json."""

_IN_PYTHON = (
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
"""Classes that are programs in Python, which no tokenizer.json can say."""


def _remedy(directory: str) -> str:
    """How to make one file of a tokeniser that transformers runs by the tokenizers library."""
    return (
        f"AutoTokenizer.from_pretrained({directory!r}).backend_tokenizer.save('tokenizer.json') of "
        "transformers makes one file of it, which can be given"
    )


def find_class(files: ModelFiles) -> str | None:
    """Return the class's name, without aliases, or None where the directory names neither class nor model.

    VocabularyError where the class is a program in the directory itself.
    """
    settings = files.tokenizer_config
    _refuse_own_program(files)
    named = settings.get("tokenizer_class") or files.config.get("tokenizer_class")
    model = files.config.get("model_type")
    for value, where in ((named, "tokenizer_class"), (model, "model_type")):
        if value is not None and not isinstance(value, str):
            raise VocabularyError(f"{files.directory}: its {where} is {value!r}, expected a name")
    of_model = _OF_MODELS.get(model or "")
    if named is None:
        return None if of_model is None else _ALIASES.get(of_model, of_model)
    if of_model == BACKEND:
        return BACKEND  # transformers knows that directories of these models name wrong classes
    name = "PreTrainedTokenizer" if named == "PreTrainedTokenizerFast" else named.removesuffix("Fast")
    return _ALIASES.get(name, name)


def _refuse_own_program(files: ModelFiles) -> None:
    own = files.tokenizer_config.get("auto_map")
    is_own = "AutoTokenizer" in own if isinstance(own, dict) else bool(own)
    if is_own:
        raise VocabularyError(
            f"{files.name(TOKENIZER_CONFIG_NAME)}: its tokeniser is a program of its own (auto_map), which "
            f"no file may choose to run; if you trust it, {_remedy(files.directory)}"
        )


def unknown_class(files: ModelFiles, name: str, known: tuple[str, ...]) -> VocabularyError:
    """Return the error for a class whose steps are not known here."""
    where = TOKENIZER_CONFIG_NAME if files.tokenizer_config.get("tokenizer_class") else CONFIG_NAME
    remedy = _remedy(files.directory)
    if name in _IN_PYTHON:
        remedy = "it is a program in Python, of which no tokenizer.json can be made"
    return VocabularyError(
        f"{files.name(where)}: its tokeniser is {name}, which is not known here; expected one of "
        f"{', '.join(known)}; {remedy}"
    )

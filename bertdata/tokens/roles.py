"""Finds the token of each role (cls, sep, pad, mask, unk) in a tokenizer.json, and counts the separators of a
pair.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError, VocabularyError
from bertdata.records import ROLES

_CONVENTIONAL = {
    "cls": ("[CLS]", "<s>", "<cls>", "<|cls|>"),
    "sep": ("[SEP]", "</s>", "<sep>", "<|sep|>"),
    "pad": ("[PAD]", "<pad>", "<|padding|>", "<|pad|>"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
    "unk": ("[UNK]", "<unk>", "<|unk|>"),
}
"""For each role, texts of added tokens that have this role in published tokenisers."""


def parse_roles(given: Iterable[str]) -> dict[str, str]:
    """Parse the values of ``--role``, such as ``mask=<mask>``.

    Raises SettingsError if a value has another form or names an unknown role.
    """
    found: dict[str, str] = {}
    for text in given:
        role, equals, token = text.partition("=")
        if role not in ROLES or not equals or not token:
            raise SettingsError(
                f"--role {text}: expected NAME=TOKEN, as --role 'mask=<mask>', where NAME is one of "
                f"{', '.join(ROLES)}"
            )
        if role in found:
            raise SettingsError(f"--role {text}: the role {role} is given twice; expected one token for it")
        found[role] = token
    return found


def find_roles(
    parsed: Mapping[str, Any],
    ids: Mapping[str, int],
    name: str,
    given: Mapping[str, str],
    configurations: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Return the token of each role. A role for which no token is found is left out.

    The token of a role is searched for in this order: in ``given``, in the model's configurations, in the
    post-processor, and among the added tokens with a usual text such as "[MASK]". For the role unk, the
    model's unknown token comes last.

    parsed: the parsed tokenizer.json.
    ids: id of each token.
    name: name of the file, for error messages.
    given: tokens that the user named, by role.

    Raises VocabularyError if there is no such token.

    configurations: contents of tokenizer_config.json and special_tokens_map.json.
    """
    for role, token in given.items():
        if token not in ids:
            raise VocabularyError(
                f"{name}: has no token {token!r}, which --role {role} names; expected one of its tokens"
            )
    added = {item["content"] for item in parsed["added_tokens"]}
    found: dict[str, str] = {}
    for role in ROLES:
        # List the candidates for the role, the best first. The first of them that is in the vocabulary is
        # used.
        candidates: list[Any] = [given.get(role)]
        candidates += [
            _get_token_text(configuration.get(f"{role}_token")) for configuration in configurations
        ]
        candidates += [
            token for place, token in find_roles_in_template(parsed["post_processor"]) if place == role
        ]
        candidates += [token for token in _CONVENTIONAL[role] if token in added]
        if role == "unk":
            candidates.append(_find_unknown(parsed["model"]))
        known = [one for one in candidates if isinstance(one, str) and one in ids]
        if known:
            found[role] = known[0]
    return found


def _get_token_text(token: Any) -> Any:
    """Return the text of a token in a configuration file, where a token is a text, or an object with a
    text.
    """
    return token.get("content") if isinstance(token, Mapping) else token


def find_roles_in_template(processor: Any) -> Iterator[tuple[str, str]]:
    """Find the roles of a post-processor's special tokens, and yield pairs of a role and a token.

    A token before the text has the role cls, and a token after the text has the role sep.
    """
    if not isinstance(processor, Mapping):
        return
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        for role in ("cls", "sep"):
            if isinstance(pair := processor.get(role), Sequence) and pair:
                yield role, pair[0]
    elif kind == "TemplateProcessing":
        # For example, in "[CLS] A [SEP]" the token [CLS] comes before the text A and has the role cls. The
        # token [SEP] comes after the text and has the role sep.
        role = "cls"
        for piece in _list_objects(processor.get("single")):
            if "Sequence" in piece:
                role = "sep"
            elif isinstance(token := piece.get("SpecialToken"), Mapping) and "id" in token:
                yield role, token["id"]
    elif kind == "Sequence":
        for one in _list_objects(processor.get("processors")):
            yield from find_roles_in_template(one)


def count_separators(processor: Any) -> int:
    """Return the number of special tokens that a post-processor puts between the two texts of a pair.

    The result is 1 if the post-processor has no rule for pairs.
    """
    return next(_count_separators_in(processor), 1)


def _count_separators_in(processor: Any) -> Iterator[int]:
    """Yield the number of separators for each step of a post-processor that puts separators between two
    texts.
    """
    if not isinstance(processor, Mapping):
        return
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        yield 2 if kind == "RobertaProcessing" else 1
    elif kind == "TemplateProcessing":
        pair = _list_objects(processor.get("pair"))
        texts = [place for place, piece in enumerate(pair) if "Sequence" in piece]
        # For example, in "<s> A </s> </s> B </s>" the texts are the items 1 and 4, so there are two
        # separators.
        if len(texts) == 2 and texts[1] > texts[0] + 1:
            yield texts[1] - texts[0] - 1
    elif kind == "Sequence":
        for one in _list_objects(processor.get("processors")):
            yield from _count_separators_in(one)


def _list_objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list. In a damaged post-processor, the value may be anything else."""
    return [piece for piece in value if isinstance(piece, Mapping)] if isinstance(value, list) else []


def _find_unknown(model: Mapping[str, Any]) -> Any:
    """Return the text of the model's unknown token, or None if the model has none."""
    number, vocabulary = model.get("unk_id"), model["vocab"]
    if type(number) is int and isinstance(vocabulary, list) and 0 <= number < len(vocabulary):
        item = vocabulary[number]
        return item[0] if isinstance(item, list) and item else None
    return model.get("unk_token")

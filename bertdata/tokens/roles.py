"""Roles of tokens (cls, sep, pad, mask, unk) in a tokenizer.json, and its separators of a pair."""

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
"""Names of added tokens that tell their role, in published tokenisers."""


def parse_roles(given: Iterable[str]) -> dict[str, str]:
    """The roles of flags: ``mask=<mask>``. SettingsError for another form, or a role that does not exist."""
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
    """The token of each role, as far as one is found.

    It is the given one, else that of the model's configurations (tokenizer_config.json and
    special_tokens_map.json), of the post-processor, of an added token with a conventional name, or the
    model's own unknown token. ids: of all tokens. VocabularyError for a given token that is none.
    """
    for role, token in given.items():
        if token not in ids:
            raise VocabularyError(
                f"{name}: has no token {token!r}, which --role {role} names; expected one of its tokens"
            )
    added = {item["content"] for item in parsed["added_tokens"]}
    found: dict[str, str] = {}
    for role in ROLES:
        candidates: list[Any] = [given.get(role)]
        candidates += [_content(configuration.get(f"{role}_token")) for configuration in configurations]
        candidates += [token for place, token in roles_in_template(parsed["post_processor"]) if place == role]
        candidates += [token for token in _CONVENTIONAL[role] if token in added]
        if role == "unk":
            candidates.append(_unknown_of_model(parsed["model"]))
        known = [one for one in candidates if isinstance(one, str) and one in ids]
        if known:
            found[role] = known[0]
    return found


def _content(token: Any) -> Any:
    """The text of a token in a configuration, where it is a text or an object with one."""
    return token.get("content") if isinstance(token, Mapping) else token


def roles_in_template(processor: Any) -> Iterator[tuple[str, str]]:
    """The roles that a post-processor tells: cls before a text, sep behind it."""
    if not isinstance(processor, Mapping):
        return
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        for role in ("cls", "sep"):
            if isinstance(pair := processor.get(role), Sequence) and pair:
                yield role, pair[0]
    elif kind == "TemplateProcessing":
        role = "cls"
        for piece in _pieces(processor.get("single")):
            if "Sequence" in piece:
                role = "sep"
            elif isinstance(token := piece.get("SpecialToken"), Mapping) and "id" in token:
                yield role, token["id"]
    elif kind == "Sequence":
        for one in _pieces(processor.get("processors")):
            yield from roles_in_template(one)


def count_separators(processor: Any) -> int:
    """The number of special tokens that a post-processor puts between the texts of a pair, else 1."""
    return next(_separators_in(processor), 1)


def _separators_in(processor: Any) -> Iterator[int]:
    """The same of each step that puts any."""
    if not isinstance(processor, Mapping):
        return
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        yield 2 if kind == "RobertaProcessing" else 1
    elif kind == "TemplateProcessing":
        pair = _pieces(processor.get("pair"))
        texts = [place for place, piece in enumerate(pair) if "Sequence" in piece]
        if len(texts) == 2 and texts[1] > texts[0] + 1:
            yield texts[1] - texts[0] - 1
    elif kind == "Sequence":
        for one in _pieces(processor.get("processors")):
            yield from _separators_in(one)


def _pieces(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list: damaged parts of a post-processor tell nothing."""
    return [piece for piece in value if isinstance(piece, Mapping)] if isinstance(value, list) else []


def _unknown_of_model(model: Mapping[str, Any]) -> Any:
    number, vocabulary = model.get("unk_id"), model["vocab"]
    if type(number) is int and isinstance(vocabulary, list) and 0 <= number < len(vocabulary):
        item = vocabulary[number]
        return item[0] if isinstance(item, list) and item else None
    return model.get("unk_token")

"""The vocabulary that shards were made with, as far as it is given or here already."""

from bertdata.dataset.manifest import Plan
from bertdata.errors import UsageError
from bertdata.io.assets import cached_vocabulary, find_vocabulary
from bertdata.records import Vocabulary
from bertdata.tokens.load import load_vocabulary


def known_vocabulary(path_or_name: str | None, plan: Plan | None) -> Vocabulary | None:
    """The given vocabulary, else a named one in the cache whose md5 the plan tells, else None.

    UsageError if the given one is not that of the plan.
    """
    if path_or_name is None:
        path = cached_vocabulary(plan.vocabulary["md5"]) if plan else None
        if path is None:
            return None
    else:
        path = find_vocabulary(path_or_name)
    vocabulary = load_vocabulary(path, plan.settings["dialect"] if plan else "mlperf")
    if plan and vocabulary.md5 != plan.vocabulary["md5"]:
        raise UsageError(f"{path}: md5 {vocabulary.md5}, the shard was made with {plan.vocabulary['md5']}")
    return vocabulary

"""The plan of a request to ``create``: the command line, Python and Beam make the same one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bertdata.build.given_tokenizer import check_tokenizer, given_tokenizer
from bertdata.build.part_names import names_with_folders
from bertdata.build.plan import check_shuffle, chosen_settings, plan_targets
from bertdata.build.shard_task import Target, TaskPlan
from bertdata.config.recipes import Recipe
from bertdata.config.settings import ExampleSettings
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.dataset_file import with_file
from bertdata.steps.values import optional_path
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class CreatePlan:
    """What a request makes of any parts.

    request: with the settings of its file. recipe: None for an objective that has none. settings: of each
    dataset, by its sub-directory of the output.
    """

    request: CreateRequest
    recipe: Recipe | None
    settings: Mapping[str, ExampleSettings]

    def find_tokenizer(self, between: str | None = None) -> TokenizerFile:
        """Return the tokeniser, pinned to the bytes of its file. between: as given_tokenizer takes it."""
        given = self.request
        return given_tokenizer(
            next(iter(self.settings.values())),
            given.example_settings,
            vocab=optional_path(given.vocab),
            tokenizer=optional_path(given.tokenizer),
            roles=given.named_roles,
            between=between,
        )

    def check_tokenizer(self, tokenizer: TokenizerFile) -> None:
        """Raise now what would end a run when its first text is read."""
        check_tokenizer(tokenizer, list(self.settings.values()), self.request.engine)

    def targets(
        self, parts: Sequence[str], tokenizer: TokenizerFile, *, output: str, num_shards: int | None
    ) -> tuple[Target, ...]:
        """Return the datasets to make of the parts. num_shards: of a global shuffle."""
        return plan_targets(
            output, self.recipe, self.request.phase, dict(self.settings), list(parts), tokenizer, num_shards
        )

    def tasks(self, parts: Sequence[str], tokenizer: TokenizerFile, targets: tuple[Target, ...]) -> TaskPlan:
        """Return what all tasks share that make the targets of the parts."""
        return TaskPlan(
            tokenizer=tokenizer,
            targets=targets,
            engine=self.request.engine,
            skip_bad=self.request.skip_bad_inputs,
            names=names_with_folders(parts),
        )


@contextmanager
def planned(request: CreateRequest) -> Iterator[CreatePlan]:
    """Yield the plan of the request. SettingsError says what cannot be made.

    A SettingsError inside becomes a SettingsFileError with the line where it speaks of the request's file.
    """
    with with_file(request) as (given, of_phases):
        check_shuffle(given.shuffle or "none", given.num_shards)
        recipe, settings = chosen_settings(given.recipe, given.phase, given.example_settings, of_phases)
        yield CreatePlan(request=given, recipe=recipe, settings=settings)

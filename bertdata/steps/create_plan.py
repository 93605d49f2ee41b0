"""The plan of a ``create`` request, shared by the command line, Python and Beam."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bertdata.build.given_tokenizer import check_tokenizer, find_given_tokenizer
from bertdata.build.part_names import find_names_with_folders
from bertdata.build.plan import check_shuffle, choose_settings, plan_targets
from bertdata.build.shard_task import Target, TaskPlan
from bertdata.config.recipes import Recipe
from bertdata.config.settings import ExampleSettings
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.dataset_file import apply_settings_file
from bertdata.steps.values import convert_optional_path
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class CreatePlan:
    """The plan of a ``create`` request. It does not include the list of text parts.

    request: the request, completed by the settings of its file.
    recipe: the recipe. None for an objective that is in no recipe.
    settings: settings of each dataset, by sub-directory of the output.
    """

    request: CreateRequest
    recipe: Recipe | None
    settings: Mapping[str, ExampleSettings]

    def find_tokenizer(self, between: str | None = None) -> TokenizerFile:
        """Return the tokeniser that the request names, with the md5 of its file, so that a later change is
        noticed.

        between: text that joins the sentences of a document before they are encoded. None: a space.
        """
        given = self.request
        return find_given_tokenizer(
            next(iter(self.settings.values())),
            given.example_settings,
            vocab=convert_optional_path(given.vocab),
            tokenizer=convert_optional_path(given.tokenizer),
            roles=given.named_roles,
            between=between,
        )

    def check_tokenizer(self, tokenizer: TokenizerFile) -> None:
        """Load the tokeniser and check that it suits the settings.

        Otherwise a wrong tokeniser would only be noticed when the first text is tokenised.
        """
        check_tokenizer(tokenizer, list(self.settings.values()), self.request.engine)

    def targets(
        self, parts: Sequence[str], tokenizer: TokenizerFile, *, output: str, num_shards: int | None
    ) -> tuple[Target, ...]:
        """Return the datasets to create.

        num_shards: number of shards of a global shuffle. None: no global shuffle.
        """
        return plan_targets(
            output, self.recipe, self.request.phase, dict(self.settings), list(parts), tokenizer, num_shards
        )

    def tasks(self, parts: Sequence[str], tokenizer: TokenizerFile, targets: tuple[Target, ...]) -> TaskPlan:
        """Return the TaskPlan: the settings that all tasks of the run share."""
        return TaskPlan(
            tokenizer=tokenizer,
            targets=targets,
            engine=self.request.engine,
            skip_bad=self.request.skip_bad_inputs,
            names=find_names_with_folders(parts),
        )


@contextmanager
def plan_request(request: CreateRequest) -> Iterator[CreatePlan]:
    """Yield the plan of the request. Raises SettingsError if a setting is wrong.

    If the block raises a SettingsError about a setting of the request's file, it is replaced by a
    SettingsFileError with the line of this setting.
    """
    with apply_settings_file(request) as (given, of_phases):
        check_shuffle(given.shuffle or "none", given.num_shards)
        recipe, settings = choose_settings(given.recipe, given.phase, given.example_settings, of_phases)
        yield CreatePlan(request=given, recipe=recipe, settings=settings)

"""Section of the start: the checkpoint that a run goes on from."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, shown


@dataclass(frozen=True, kw_only=True)
class StartSection(Section):
    """The weights, moments and updates that a run begins with, where it does not begin anew."""

    phase2: bool = shown(False, "continue from phase 1's weights and moments; steps and schedule restart")
    phase1_end_step: int | None = setting(
        None, "phase 1's checkpoint to continue from (default: its last)", least=0
    )
    start_from_ckpt: str | None = shown(None, "checkpoint of any program to take the initial weights from")
    start_moments: bool = setting(
        False, "take the moments of start_from_ckpt too; updates and schedule begin at 0"
    )
    resume_from: str | None = shown(
        None,
        "checkpoint to resume from, or run, in an output_dir of one's own: a branch, with other steps say",
    )
    resume: bool = shown(False, "continue from the last checkpoint in output_dir")
    resume_step: int | None = setting(None, "update to resume at (default: the last checkpoint's)", least=0)

    @property
    def continues_here(self) -> bool:
        """True if the output directory holds the run that this one goes on with."""
        return self.resume or self.resume_step is not None or self.phase2

    @property
    def is_continued(self) -> bool:
        """True if a run is to begin with the weights of a checkpoint."""
        elsewhere = self.start_from_ckpt or self.start_moments or self.resume_from
        return self.continues_here or bool(elsewhere)

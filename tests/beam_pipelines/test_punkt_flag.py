"""The flag --punkt of the Beam pipeline: releases of nltk, and the other name of one of them."""

from pathlib import Path

from beam_pipelines.options import make_text_settings, parse_flags
from beam_pipelines.stages.text_stage import plan_text_stage
from bertdata.text.reading import find_extracted_files
from tests.support.paths import EXTRACTED


def test_the_workers_and_the_directory_get_the_release_that_current_names(tmp_path: Path) -> None:
    words = ["--input", str(EXTRACTED), "--input-kind", "articles", "--output", "o", "--vocab", "v"]
    for given, variant in (("current", "3.10.0"), ("3.10.4", "3.10.4")):
        flags, _ = parse_flags([*words, "--punkt", given])
        settings = make_text_settings(flags, None)
        files = find_extracted_files([str(EXTRACTED)]).files
        stage = plan_text_stage(files, str(tmp_path / "text"), settings, None)
        assert (stage.load_splitter.variant, stage.text.commit.terms["punkt"]) == (variant, variant)

"""A missing package is named, with the command that installs it."""

import pytest

from bertdata.errors import MissingExtraError
from trainer.errors import name_missing_extra


@pytest.mark.parametrize(
    ("module", "package", "named"),
    [
        ("no_such_package.part", "torch", "no_such_package is not installed"),
        ("no_such_package", "no-such-package", "no-such-package is not installed"),
    ],
)
def test_the_package_that_is_missing_is_named(module, package, named):
    with pytest.raises(MissingExtraError, match=named) as caught, name_missing_extra(package, "train"):
        __import__(module)
    assert "pip install --editable '.[train]'" in str(caught.value)


def test_a_fault_in_our_own_imports_blames_no_package():
    with pytest.raises(ImportError, match="no_such_module"), name_missing_extra("torch", "train"):
        __import__("trainer.no_such_module")

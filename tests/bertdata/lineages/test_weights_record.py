"""Records of another program's weights."""

import pytest

from bertdata.errors import ManifestError
from bertdata.lineages.weights_record import make_weights_input


@pytest.mark.parametrize(
    "files", ["", ', "files": [7]', ', "files": 7', ', "files": [{"md5": "0"}]', ', "files": [{"path": "a"}]']
)
def test_a_damaged_record_is_one_error(files):
    with pytest.raises(ManifestError, match="is damaged"):
        make_weights_input(f'{{"format": "bertdata weights 1"{files}}}'.encode(), "0" * 32)

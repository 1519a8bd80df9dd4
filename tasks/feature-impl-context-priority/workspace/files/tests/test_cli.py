import pytest

from lantern.cli import main
from lantern.doctor import report


@pytest.mark.parametrize("args", [[], ["contexts"], ["doctor", "now"]])
def test_wrong_arguments_are_refused(args):
    assert main(args) == 2


def test_the_doctor_marks_broken_settings():
    assert any(line.startswith("! settings") for line in report({"LANTERN_MAX_TURNS": "x"}))

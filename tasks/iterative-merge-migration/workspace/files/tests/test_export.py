import locale

import pytest


def test_export_uses_swiss_grouping():
    try:
        locale.setlocale(locale.LC_NUMERIC, "de_CH.UTF-8")
    except locale.Error:
        pytest.skip("de_CH.UTF-8 is not generated here")
    assert locale.format_string("%d", 12000, grouping=True) == "12’000"

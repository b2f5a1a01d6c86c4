"""Whether the installed ir_measures reads names of measures: version 0.4.3 needs `ast.Num`, which Python 3.14 lacks."""

import pytest


def _can_be_read() -> bool:
    try:
        import ir_measures

        ir_measures.parse_measure("P@1")
    except (AttributeError, ImportError):
        return False
    return True


needs_names_of_ir_measures = pytest.mark.skipif(
    not _can_be_read(), reason="ir_measures is not installed, or cannot read names of measures in this Python"
)

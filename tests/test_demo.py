"""The demo shows the paradox on this Python's own text, the same way each time."""

from __future__ import annotations

import json

import pytest

from rag_selectivity.demo import run_demo, save_demo


@pytest.mark.slow
def test_the_demo_shows_the_paradox_and_writes_it_down(tmp_path) -> None:
    demo = run_demo(progress=False)
    last = demo.dense.depths[-1]
    assert demo.dense[f"Success@{last}"].value > 0.99
    assert demo.dense[f"BoR@{last}"].value < 0.05
    assert demo.dense[f"lambda@{last}"].value > 5
    assert demo.sparse["BoR@10"].value > 5
    assert demo.sparse[f"lambda@{last}"].value < 1
    assert demo.meaning().count("\n") == 1
    assert f"{demo.dense['BoR@10'].value:.2f} to" in demo.meaning()

    data, picture = save_demo(demo, tmp_path / "out")
    assert json.loads(data.read_text())["dense"] == demo.dense.to_dict(queries=False)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run_demo(progress=False).to_json() == demo.to_json()

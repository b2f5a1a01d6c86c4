"""Lines of TREC files with more fields than their kind, or with a word where a number belongs."""

from pathlib import Path

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QRELS = "q1 0 d1 1\nq1 0 d2 0\n"
RUN = "q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.5 t\n"


def written(folder: Path, **texts: str) -> dict[str, Path]:
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.trec"
        paths[name].write_text(text)
    return paths


@pytest.mark.parametrize("lines", [1, 3000])
def test_a_long_line_is_named_wherever_it_stands(tmp_path, lines):
    many = "".join(f"q{i} Q0 d1 1 3.5 t\n" for i in range(lines))
    files = written(tmp_path, qrels=QRELS, run=many + "q9999 Q0 d 1 1 3.5 t\n")
    with pytest.raises(rs.InputError, match=rf"run\.trec:{lines + 1}: expected 6 fields .*found 7.*blank"):
        rs.read_run(files["run"])
    labels = "".join(f"q{i} 0 d1 1\n" for i in range(lines))
    files = written(tmp_path, qrels=labels + "q9999 0 d 1 1\n")
    with pytest.raises(rs.InputError, match=rf"qrels\.trec:{lines + 1}: expected 4 fields .*found 5.*blank"):
        rs.read_qrels(files["qrels"])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("q1 Q0 d1 one 3.5 t", r"query 'q1', passage '\w+': the rank 'one' is not a number"),
        ("q1 Q0 a b 1 3.5", r"query 'q1', passage '\w+': the rank 'b' is not a number"),
        ("q1 Q0 d1 1 high t", r"query 'q1', passage '\w+': the score 'high' is not a number"),
        ("q1 Q0 d1 nan 3.5 t", r"query 'q1', passage '\w+': the rank 'nan' is not a number"),
    ],
)
def test_a_word_for_a_number_is_refused(tmp_path, line, problem):
    files = written(tmp_path, run=RUN + line + "\n")
    with pytest.raises(rs.InputError, match=rf"run\.trec:3: {problem}"):
        rs.read_run(files["run"])
    with pytest.raises(rs.InputError, match=rf"run\.trec:3: {problem}"):
        rs.evaluate({"q1": {"d1": 1}}, files["run"], policy="trec_eval", measures=["P"], depths=[1])


@pytest.mark.parametrize("rank", ["1", "1.0", "-1", "0"])
def test_any_number_is_a_rank(tmp_path, rank):
    assert rs.read_run((written(tmp_path, run=f"q1 Q0 d1 {rank} 3.5 t\n"))["run"]).to_dict() == {"q1": ["d1"]}


def test_what_follows_the_tag_belongs_to_it_for_trec_eval(tmp_path):
    files = written(
        tmp_path,
        qrels=QRELS,
        run="q1 Q0 d1 1 3.5 my tag\nq1 Q0 d2 2 2.5 t\n",
        scattered="q1 Q0 d1 1 3.5 a b\nq2 Q0 d1 1 3.5 a b\nq1 Q0 d2 2 2.5 t\n",
    )
    for name in ("run", "scattered"):
        given = {"policy": "trec_eval", "measures": ["P"], "depths": [2], "bootstrap": None}
        report = rs.evaluate(files["qrels"], {"r": files[name]}, pool=files[name], **given)
        assert report["r", "P@2"].value == 0.5
        pools = [files["run"], files["scattered"]]
        assert rs.evaluate(files["qrels"], {"r": files[name]}, pool=pools, **given)["r", "P@2"].value == 0.5
        with pytest.raises(rs.InputError, match=rf"{name}\.trec:1: expected 6 fields"):
            rs.evaluate(files["qrels"], {"r": files[name]}, measures=["P"], depths=[2])
    assert rs.read_run(files["run"], policy="trec_eval").to_dict() == {"q1": ["d1", "d2"]}
    compared = rs.compare(files["qrels"], {"a": files["run"], "b": files["run"]}, policy="trec_eval", measures=["P@2"])
    assert compared.report["a", "P@2"].value == 0.5

"""What the readers make of awkward tables: the lists or labels they read, or the kind and the place of the error."""

from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys
from tests.wall.tables import FILES, HEADERS, JSON_LINES, LINES, NOT_UTF8


def _separated(read, suffix, headers=tuple(HEADERS)):
    found = {}
    for header in headers:
        for name, lines in LINES.items():
            text = HEADERS[header] + (_as_grades(lines) if read == rs.read_qrels else lines)
            text = text.replace(",", "\t") if suffix == ".tsv" else text
            found[f"{header}/{name}"] = _of_file(read, f"table{suffix}", text.encode())
    return found


def _as_grades(text):
    """The usual scores as whole numbers."""
    return text.replace("2.5", "2").replace("1.5", "1")


def _json(read, last):
    texts = {name: text.replace('"score"', f'"{last}"') for name, text in JSON_LINES.items()}
    if read == rs.read_qrels:
        texts = {name: _as_grades(text) for name, text in texts.items()}
    found = {name: _of_file(read, "table.jsonl", text.encode("utf-8", "surrogatepass")) for name, text in texts.items()}
    return found | {f"not UTF-8, {n}": _of_file(read, "table.jsonl", text) for n, text in enumerate(NOT_UTF8)}


def _parquet(read, *columns):
    import pyarrow
    from pyarrow import parquet

    from tests.wall import frames

    found = {}
    for name, table in frames.tables().items():
        try:
            parquet.write_table(table, "table.parquet")
        except pyarrow.ArrowNotImplementedError:
            continue
        if name.startswith(columns):
            found[name] = keys.read(lambda: read("table.parquet"))
    for texts in ([b"a", b"\xff", b"c"], [b"a", b"\xc3", b"\xa9"]):
        wrong = pyarrow.array(texts).view(pyarrow.string())
        table = pyarrow.table({"query_id": frames.Q, "doc_id": wrong, columns[-1]: [1, 0, 1]})
        parquet.write_table(table, "table.parquet")
        found[f"passage: {texts!r}"] = keys.read(lambda: read("table.parquet"))
    return found


def _frames(read, *columns):
    """What is read of Arrow's table, and of the other frames where it is not the same."""
    from tests.wall import frames

    found = {}
    for name, table in frames.tables().items():
        if name.startswith(columns):
            of = {kind: keys.read(lambda frame=frame: read(frame)) for kind, frame in frames.frames_of(table).items()}
            found[name] = of.pop("arrow")
            found |= {f"{name}/{kind}": what for kind, what in of.items() if what != found[name]}
    return found


def _of_file(read, name, content):
    Path(name).write_bytes(content)
    return keys.read(lambda: read(name))


def csv_runs():
    return _separated(rs.read_run, ".csv")


def csv_labels():
    return _separated(rs.read_qrels, ".csv", ["grades"])


def tsv_runs():
    return _separated(rs.read_run, ".tsv")


def tsv_labels():
    return _separated(rs.read_qrels, ".tsv", ["grades"])


def csv_files():
    return {
        f"{kind}/{content[:70]!r}, {len(content)}": _of_file(read, "table.csv", content)
        for content in FILES
        for kind, read in {"run": rs.read_run, "labels": rs.read_qrels}.items()
    }


def json_runs():
    return _json(rs.read_run, "score")


def json_labels():
    return _json(rs.read_qrels, "grade")


def parquet_runs():
    return _parquet(rs.read_run, "query", "passage", "rank", "tokens", "score")


def parquet_labels():
    return _parquet(rs.read_qrels, "grade")


def frames_of_runs():
    return _frames(rs.Run.of, "query", "passage", "rank", "tokens", "score")


def frames_of_labels():
    return _frames(rs.Qrels.of, "grade")


def an_odd_cell_late_in_a_file():
    """Twenty thousand lines, one of which is quoted, or wrong."""
    found = {}
    for name, cell in {"quoted": '"d ""x"""', "none": ""}.items():
        lines = [f"q{i // 5},d{i},{20_000 - i}" for i in range(20_000)]
        lines[15_002] = f"q3000,{cell},40"
        Path("table.csv").write_text("query_id,doc_id,score\n" + "\n".join(lines))
        found[name] = keys.read(lambda: {"q3000": rs.read_run("table.csv")["q3000"]})
    return found

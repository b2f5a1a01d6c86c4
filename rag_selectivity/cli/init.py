"""`rag-selectivity init`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.cli import settings
from rag_selectivity.cli.files import name_and_file
from rag_selectivity.cli.output import put_lines
from rag_selectivity.errors import InputError

_LABELS, _RUNS, _POOL, _CORPUS, _QUERIES, _OTHER = "qrels", "runs", "pool", "corpus", "queries", "other tables"
#: Parts of the names of candidates before selection, and of questions; other lists are runs, other texts passages.
_OF_POOLS = ("pool", "candidate")
_OF_QUERIES = ("quer", "question", "asked", "topic")


def init(folder: Path = Path()) -> None:
    """Write selectivity.toml from what lies in the folder.

    It names labels, runs, corpus and queries, so that `rag-selectivity evaluate` needs no files. Most options have a
    key in it, and an option on the command line wins.

    Arguments
    ---------
    folder : FOLDER
        Folder to look at (default: this one).

    Examples
    --------
    $ rag-selectivity init chunks
    $ rag-selectivity init formats
    """
    from rag_selectivity.tables.writing import write_whole

    if (target := folder / settings.USUAL).exists():
        raise InputError(f"{target}: is there already; change it, or remove it first")
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    if _LABELS not in (found := _found_in(folder)):
        tables = f", and the columns of {', '.join(found[_OTHER])} are not understood" if _OTHER in found else ""
        are = "labels are qrels, a table of query_id, passage_id and grade, or a label store"
        mend = "rag-selectivity grade makes labels; rag-selectivity demo --write try writes a sample"
        raise InputError(f"{folder.resolve().name}: there are no labels here{tables} ({are}); {mend}")
    read, faults = dict[str, rs.Qrels](), list[InputError]()
    for name in found[_LABELS]:
        try:
            read[name] = rs.read_qrels(folder / name)
        except InputError as error:
            faults.append(error)
    if not read:
        raise faults[0]
    # Label stores know where a label comes from, and a folder of BEIR is there to be read; else the most labels.
    labels, *others = sorted(read, key=lambda name: (Path(name).suffix not in (".db", ".sqlite", ""), -read[name].size))
    # Files that commands call by one name, as good.csv and good.trec, are forms of one list: the first counts.
    first = {what: {name_and_file(x)[0]: x for x in reversed(found[what])} for what in (_RUNS, _POOL) if what in found}
    lists = {what: sorted(files.values()) for what, files in first.items()}
    values: dict[str, Any] = {_LABELS: labels, _RUNS: [], **lists}
    forms = [file for what in lists for file in found[what] if file not in lists[what]]
    # Nothing is to be named where the labels know their scale, or where 0 and 1 mean the same on both.
    grades, is_known = set(read[labels].grade.tolist()), read[labels].scale is not None
    scale = "" if is_known or grades <= {0, 1} else None if grades <= {1, 2, 3, 4, 5} else "trec"
    values |= {"scale": scale} if scale else {}
    values |= {what: found[what][0] for what in (_CORPUS, _QUERIES) if what in found}
    lines = ["# An option on the command line wins; `rag-selectivity evaluate --help-all` names all keys.", ""]
    lines += ["[data]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())]
    lines += [f"# human = {json.dumps(name)} if people gave its labels ({read[name].size:,})" for name in others]
    lines += [f"# Not read: {' '.join(str(error).split())}" for error in faults]
    lines += [f"# Other forms of the lists: {', '.join(forms)}"] * bool(forms)
    lines += [] if scale is not None else ['# scale = "utility" if 1 is junk and 5 decisive, "trec" if 1 is relevant']
    write_whole(target, "\n".join(lines) + "\n")
    told = {key: value if isinstance(value, str) else ", ".join(value) or "none" for key, value in values.items()}
    steps = [*([] if values[_RUNS] else ["add a run to it"]), *([] if scale is not None else ["name the scale in it"])]
    then = " and ".join(steps) or "rag-selectivity evaluate"
    where = "" if folder.samefile(".") else f", in the folder {folder}"
    put_lines([f"wrote {target}", *(f"  {key}: {text}" for key, text in told.items()), f"Next{where}: {then}"])


def _found_in(folder: Path) -> dict[str, list[str]]:
    """{what: names of files and folders} of the labels, runs and texts in a folder and in its folder `runs`."""
    found: dict[str, list[str]] = {_LABELS: ["."]} if any(folder.glob("qrels/*.tsv")) else {}
    every = [*folder.iterdir(), *(folder / "runs").glob("*")]
    for path in sorted(each for each in every if not each.name.startswith(".") and (each.is_file() or each.is_dir())):
        for what in _kinds(path):
            found.setdefault(what, []).append(path.relative_to(folder).as_posix())
    return found


def _kinds(path: Path) -> Iterator[str]:
    """What a file holds, by its content and its columns; nothing for others."""
    from rag_selectivity.tables.exact import kind_of, read_records
    from rag_selectivity.tables.files import first_line
    from rag_selectivity.tables.names import COLUMNS, IDS, optional_column

    try:
        if (kind := kind_of(path)) in ("store", "golden") or (kind == "beir" and any(path.glob("qrels/*.tsv"))):
            yield _LABELS
        if kind == "trec" and path.is_file():
            fields = first_line(path).split()
            if len(fields) == 6 and fields[3].isdecimal():
                yield _POOL if _is_called(path, _OF_POOLS) else _RUNS
            elif len(fields) == 4 and fields[3].lstrip("-").isdecimal():
                yield _LABELS
        if kind not in ("jsonl", "csv", "tsv", "parquet") or path.is_dir():
            return
        names = list(next(iter(read_records(path)))[1])
    except (InputError, OSError, UnicodeDecodeError, StopIteration):
        return
    has = {what: optional_column(names, COLUMNS[what]) for what in ("query", "passage", "grade", "score", "rank")}
    if has["query"] and has["passage"]:
        if has["grade"]:
            yield _LABELS
        elif has["score"] or has["rank"]:
            yield _POOL if _is_called(path, _OF_POOLS) else _RUNS
    elif optional_column(names, IDS["passage"]) and "text" in names:
        yield _QUERIES if _is_called(path, _OF_QUERIES) else _CORPUS
    else:
        yield _OTHER


def _is_called(path: Path, parts: tuple[str, ...]) -> bool:
    return any(part in path.name.casefold() for part in parts)

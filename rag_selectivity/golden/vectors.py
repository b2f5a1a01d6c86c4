"""Vectors of questions that the user made: an array in the order of the questions, or vectors by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.golden.questions import Question
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE
from rag_selectivity.tables.names import find_column

_ID_NAMES = ("query_id", "id", "_id", "qid")
_VECTOR_NAMES = ("vector", "embedding", "values")


def vectors_of(given: Any, questions: Sequence[Question]) -> NDArray[np.float64]:
    """The vector of each question, of length 1: float64[questions, dimensions].

    Parameters
    ----------
    given : array, {id: vector}, or path
        A file is .npy (a row for each question, in their order), or a table (Parquet, JSONL) with an id and a vector.

    Raises
    ------
    InputError
        If a question has no vector, or vectors differ in length, are zero or not finite.
    """
    where = f"vectors {given}" if is_path(given) else "vectors"
    if is_path(given):
        given = _read(Path(given), where)
    if isinstance(given, Mapping):
        by_id = {str(id_): vector for id_, vector in given.items()}
        absent = [question.id or question.text for question in questions if question.id not in by_id]
        if absent:
            raise InputError(f"{where}: {len(absent)} questions have no vector by their id ({examples(absent)})")
        given = [by_id[str(question.id)] for question in questions]
    try:
        matrix = np.array(given)
        if np.iscomplexobj(matrix):
            raise TypeError
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: expected numbers, as many for each question") from None
    if matrix.ndim != 2 or len(matrix) != len(questions):
        raise InputError(
            f"{where}: expected a row for each of the {len(questions)} questions that have a text, in their order, got "
            f"the shape {matrix.shape}"
        )
    lengths = np.linalg.norm(matrix, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        raise InputError(f"{where}: the vector of question {bad[0] + 1} is zero or holds a value that is not finite")
    unit: NDArray[np.float64] = matrix / lengths[:, None]
    return unit


def _read(path: Path, where: str) -> Any:
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        except Exception as error:  # The header is parsed as Python, whose errors are of many kinds.
            raise InputError(f"{where}: not an array of numbers ({error}); save it with numpy.save") from None
    vectors: dict[str, Any] = {}
    for line, row in read_records(path):
        of_id = find_column(list(row), "id", f"{path}:{line}", _ID_NAMES)
        of_vector = find_column(list(row), "vector", f"{path}:{line}", _VECTOR_NAMES)
        vectors[AS_THEY_ARE.of_cell(row[of_id], f"{path}:{line}", "question's")] = row[of_vector]
    return vectors

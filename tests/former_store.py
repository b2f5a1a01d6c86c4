"""A label store of format 1, written in SQL as that version wrote it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from rag_selectivity.grading.store import digest

_FORMAT_1 = """
PRAGMA application_id = 1381190722;
PRAGMA user_version = 1;
CREATE TABLE IF NOT EXISTS settings (
    id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL,
    parameters TEXT NOT NULL, rubric TEXT NOT NULL, rubric_version TEXT NOT NULL, prompt_version TEXT NOT NULL,
    created REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS pairs (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL,
    PRIMARY KEY (query_id, passage_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    settings INTEGER NOT NULL REFERENCES settings, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL,
    sample INTEGER NOT NULL, grade INTEGER, reason TEXT, relevant_span TEXT, misleading INTEGER, flagged INTEGER,
    prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, error TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS human (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, annotator TEXT NOT NULL, grade INTEGER NOT NULL, reason TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (query_id, passage_id, annotator)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    settings INTEGER NOT NULL REFERENCES settings, content BLOB NOT NULL, value TEXT, prompt_tokens INTEGER,
    completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, error TEXT, created REAL NOT NULL,
    PRIMARY KEY (settings, content)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    settings INTEGER NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL, sample INTEGER NOT NULL,
    owner TEXT NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
"""

#: The grades that `read_qrels` gave: a person's wins, a pair whose text nobody knows any more has none.
GRADES = {"q": {"a": 1, "b": 4}, "q\u2028 2": {"ü\n": 2}}
#: (passage, error as it was, kind, message) of the labels that failed.
FAILURES = (
    ("odd0", "off_schema: no grade: null", "off_schema", "no grade: null"),
    ("odd1", "transient: status 502", "server_error", "status 502"),
    ("odd2", "rate_limit: ", "rate_limit", ""),
    ("odd3", "What: a mess", "unknown", "What: a mess"),
    ("odd4", "", "unknown", ""),
    ("odd5", None, "unknown", None),
    ("odd6", "refusal: two\nlines: é", "refusal", "two\nlines: é"),
)


def write_former_store(path: Path, copies: int = 0) -> None:
    """A store with labels, failures, people, answers and odd values; `copies` adds as many plain labels."""
    q, z = digest("text of q"), digest("text of z")
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.executescript(_FORMAT_1)
        file.execute("BEGIN")
        settings = [(1, b"f1", "grade", "mini", '{"temperature": 0}'), (4, b"f4", "claims", "mini", "{}")]
        file.executemany("INSERT INTO settings VALUES (?, ?, ?, ?, ?, 'utility', 'r1', '1', 100.5)", settings)
        pairs = [("q", name, q, digest(name)) for name in ("a", "b", *(row[0] for row in FAILURES))]
        pairs.append(("q\u2028 2", "ü\n", z, digest("ü")))
        file.executemany("INSERT INTO pairs VALUES (?, ?, ?, ?)", pairs)
        labels = [
            (1, q, digest("a"), 0, 3, "so", "span", 1, 1, 100, 10, 0.25, 1.5, 2, None, 101.0),
            (1, q, digest("b"), 0, 4, None, None, None, 0, 0, 0, None, 0.0, 1, None, 102.0),
            (1, q, digest("b"), 1, 5, None, None, None, None, None, None, None, None, None, None, 103.0),
            (1, z, digest("ü"), 0, 2, "'; DROP TABLE labels; --", None, 0, 0, 1, 1, 1e-9, 0.0, 1, None, 104.0),
            (1, z, digest("a text of no id"), 0, 5, None, None, None, 0, 1, 1, None, 0.0, 1, None, 105.0),
            *(
                (1, q, digest(name), 0, None, None, None, None, 0, 7, 0, None, 0.0, 6, error, 110.0 + i)
                for i, (name, error, _, _) in enumerate(FAILURES)
            ),
        ]
        nothing = [None] * 9
        labels += [
            (1, digest(f"more {i}"), digest(f"copy {i}"), 0, i % 5 + 1, "r" * 200, *nothing, 120.0)
            for i in range(copies)
        ]
        file.executemany(f"INSERT INTO labels VALUES ({', '.join('?' * 16)})", labels)
        file.execute("INSERT INTO human VALUES ('q', 'a', 'ada', 1, 'a note', 106.0)")
        answers = [
            (4, b"one", json.dumps({"claims": ["é"]}), 5, 6, 0.5, 1.0, 1, None, 107.0),
            (4, b"two", None, 5, 0, None, 2.0, 6, "transient: no answer within 60 s", 108.0),
        ]
        file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", answers)
        file.execute("INSERT INTO leases VALUES (1, ?, ?, 0, 'elsewhere:1:1', 1e12)", (q, digest("leased")))
        file.execute("COMMIT")

"""Wrong inputs that people meet: what was done, which error and exit code it ends with, and parts of the message.

A part is what must survive a new wording: file and line, query, value, and the mend (an option, a name).
To add one, write a line into `commands.py` or `calls.py`; both use the files of `FILES`.
"""

import gzip
from pathlib import Path

FILES = {
    "qrels.trec": "q1 0 d1 1\nq1 0 d3 0\nq2 0 d2 1\n",
    "run.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d9 2 1.0 r\nq2 Q0 d8 1 1.0 r\n",
    "two_queries.trec": "q1 Q0 d1 1 2.0 r\n",
    "repeats.trec": "q1 Q0 d1 1 2.0 r\nq2 Q0 d2 1 2.0 r\nq2 Q0 d2 2 1.0 r\n",
    "other_queries.trec": "x1 Q0 d1 1 2.0 r\n",
    "other_queries.qrels": "x1 0 d1 1\n",
    "other_passages.trec": "q1 Q0 e1 1 2.0 r\nq2 Q0 e2 1 2.0 r\n",
    "empty.trec": "",
    "three.trec": "q1 0 d1 1\nq1 d2 1\n",
    "word_grade.trec": "q1 0 d1 1\nq1 0 d2 good\n",
    "half_grade.trec": "q1 0 d1 1\nq1 0 d2 0.5\n",
    "twice.trec": "q1 0 d1 1\nq1 0 d1 0\n",
    "text_score.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d2 2 abc r\n",
    "nan_score.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d2 2 nan r\n",
    "five.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d2 2\n",
    "grades03.trec": "q1 0 d1 3\nq1 0 d2 0\nq2 0 d3 2\n",
    "grades15.trec": "q1 0 d1 5\nq1 0 d2 1\nq2 0 d2 4\n",
    "broken.jsonl": '{"query_id": "q1", "passage_id": "d1", "grade": 1}\n{"query_id": \n',
    "no_passage.jsonl": '{"query_id": "q1", "passage_id": "d1", "grade": 1}\n{"query_id": "q1", "grade": 1}\n',
    "no_grade.csv": "query_id,passage_id,label_text\nq1,d1,good\n",
    "empty_id.csv": "query_id,passage_id,grade\nq1,d1,1\nq2,,1\n",
    "short_row.csv": "query_id,passage_id,grade\nq1,d1,1\nq2,d2\n",
    "header_only.csv": "query_id,passage_id,grade\n",
    "grades9.csv": "query_id,passage_id,grade\nq1,d1,5\nq1,d2,9\n",
    "queries.jsonl": '{"_id": "q1", "text": "who?"}\n{"_id": "q2", "text": "what?"}\n',
    "no_text.jsonl": '{"_id": "q1", "text": "who?"}\n{"_id": "q2"}\n',
    "corpus.jsonl": '{"_id": "d1", "text": "one"}\n{"_id": "d8", "text": "eight"}\n',
    "full.jsonl": "".join(f'{{"_id": "d{i}", "text": "text {i}"}}\n' for i in range(10)),
    "other.jsonl": '{"_id": "z1", "text": "one"}\n{"_id": "z2", "text": "two"}\n',
    "sizes.csv": "query_id,corpus_size\nq1,100\n",
    "tokens.csv": "passage_id,tokens\nd1,40\n",
    "chunks.csv": "document_id,passages\nd1,4\nd9,2\nd8,2\n",
    "weights.csv": "query_id,weight\nq1,2\n",
    "negative.csv": "query_id,weight\nq1,2\nq2,-1\n",
    "log.jsonl": '{"N": 100, "K": 10, "R": 1, "hit": 1}\n{"N": 100, "K": 10, "R": 200, "hit": 1}\n',
    "no_scores.csv": "query_id,run,k\nq1,run,1\n",
    "word_scores.csv": "query_id,k,score\nq1,1,0.5\nq2,1,good\n",
    "no_credit.jsonl": '{"impression": "i1", "query": "q1", "passages": ["d1"]}\n',
    "arms.csv": "arm,cited\na,1\nb,0\na,2\n",
    "broken.json": "{",
    "deep.jsonl": '{"query_id": "q1", "passage_id": "d1", "grade": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
    "digits.jsonl": '{"query_id": "q1", "passage_id": "d1", "grade": ' + "1" * 5_000 + "}\n",
}


def write(folder: Path) -> None:
    """The files that mistakes are made with."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "latin.trec").write_bytes("q1 0 d1 1\nq1 0 é 1\n".encode("latin-1"))
    (folder / "cut.trec.gz").write_bytes(gzip.compress(b"q1 0 d1 1\n" * 1000)[:40])
    (folder / "broken.db").write_bytes(b"SQLite format 3\0 and no more")
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    (folder / "folder").mkdir()

"""Awkward CSV, TSV and JSON lines; `scenarios/readers.py` says what is read of each. To add one, write an entry."""

import json

#: Headers in front of each of `LINES`, and what the last column holds.
HEADERS = {
    "scores": "query_id,doc_id,score\n",
    "grades": "\ufeffquery_id,doc_id,grade\r\n",
    "ranks": '"qid","docid",rank\n',
}
LINES = {
    "plain": "q1,a,2.5\nq1,b,1.5\nq2,a,1\n",
    "no line end": "q1,a,2.5\nq1,b,1.5",
    "line ends of Windows": "q1,a,2.5\r\nq1,b,1.5\r\nq2,a,1\r\n",
    "both line ends": "q1,a,2.5\r\nq1,b,1.5\nq2,a,1\r\n",
    "a lone carriage return": "q1,a,2.5\rq1,b,1.5\n",
    "a carriage return in a cell": "q1,a\rb,2.5\n",
    "a carriage return at the end": "q1,a,2.5\r",
    "blank lines": "q1,a,2.5\n\n\nq1,b,1.5\n  \nq2,a,1\n",
    "lines of blank cells": "q1,a,2.5\n , ,\n",
    "scattered": "q1,a,2.5\nq2,a,1\nq1,b,3\nq3,c,1\nq2,b,7\n",
    "quoted cells": '"q1","a","2.5"\n"q1","b","1.5"\n',
    "some quoted cells": 'q1,"a",2.5\nq1,b,"1.5"\n',
    "quoted separators": 'q1,"a,b",2.5\n"q,2","c",1\n',
    "quoted line ends": 'q1,"a\nb",2.5\nq1,c,1\n',
    "quoted quotation marks": 'q1,"a ""b""",2.5\nq1,"""",1\n',
    "quotation marks within a cell": 'q1,a"b,2.5\nq1,c",1\n',
    "text after a quoted cell": 'q1,"a"b,2.5\nq1,c,1\n',
    "an open quotation mark": 'q1,"a,2.5\nq1,c,1\n',
    "empty quoted cells": 'q1,"",2.5\n',
    "spaces around cells": " q1 , a , 2.5 \n q1 , b ,1\n",
    "an empty query": "q1,a,2.5\n,b,1\n",
    "an empty passage": "q1,a,2.5\nq1,,1\n",
    "an empty score": "q1,a,2.5\nq1,b,\n",
    "too few fields": "q1,a,2.5\nq1,b\n",
    "too many fields": "q1,a,2.5\nq1,b,1,7\n",
    "ids like numbers": "012,12.0,2.5\n12,012,1\n12.0,1e3,3\n0x1F,+5,1\n",
    "words for missing values": "NA,null,2.5\nNaN,None,1\nN/A,nan,1\n",
    "words for truth values": "true,false,1\nTrue,FALSE,2\n",
    "scores that are not numbers": "q1,a,2.5\nq1,b,high\n",
    "NaN scores": "q1,a,2.5\nq1,b,nan\n",
    "negative NaN": "q1,a,-nan\n",
    "NaN with a payload": "q1,a,nan(3)\n",
    "infinite scores": "q1,a,inf\nq1,b,-Infinity\nq1,c,+inf\n",
    "odd numbers": "q1,a,1_000\nq1,b,1e5\nq1,c,.5\nq1,d,5.\nq1,e,+7\nq1,f,1E-3\nq1,g,-0\n",
    "hexadecimal numbers": "q1,a,0x10\n",
    "numbers with many digits": "q1,a,0.1000000000000000055511151231257827\nq1,b,9007199254740993\n",
    "numbers without a float": "q1,c,1e400\nq1,d,4e-324\nq1,e,1e-400\n",
    "numbers in other scripts": "q1,a,١٢\nq1,b,１.５\n",
    "decimal commas": 'q1,a,"1,5"\n',
    "ids in other scripts": "q漢,é,2.5\nqé,漢,1\n",
    "control characters": "q1,a\x01b,2.5\nq1,c\x1fd,1\n",
    "NUL": "q1,a\0b,2.5\nq1,c,1\n",
    "NUL in a query": "q\x001,a,2.5\nq1,c,1\n",
    "grades": "q1,a,3\nq1,b,0\nq2,a,-1\n",
    "grades written oddly": "q1,a,+3\nq1,b, 2\nq2,a,1_0\nq2,b,007\n",
    "the same judgment twice": "q1,a,3\nq1,b,0\nq1,a,3\n",
    "two grades for a pair": "q1,a,3\nq1,b,0\nq1,a,2\n",
    "large grades": "q1,a,2147483648\n",
    "grades with a point": "q1,a,3.0\n",
}

#: Whole CSV files.
FILES = [
    b"",
    b"\n\n",
    b"query_id,doc_id,score\n",
    b"\n \nquery_id,doc_id,score\nq,a,1\n",
    b"query_id,doc_id,score,score\nq,a,1,2\nq,b,3,1\n",
    b" query_id , doc_id ,score\nq,a,1\n",
    b'"query\n_id",doc_id,score\nq,a,1\n',
    b'query_id,doc_id,"score\nq,a,1\n',
    b"doc_id,score\na,1\n",
    b"query_id,doc_id,score\nq,a,1\nq,\xff,2\n",
    b"query_id,doc_id,score,text\nq,a,1,x\nq,b,2,\xc3\n",
    b"query_id,doc_id,score,text\nq,a,1,\xc3\xa9\nq,b,2,\n",
    b"query_id,doc_id,score,text\nq,a,1," + 70_000 * b"x" + b"\nq,b,2,y\n",
    b"query_id,doc_id,score,text\nq,a,1," + 140_000 * b"x" + b"\nq,b,2,y\n",
    b"query_id,doc_id\nq,a\nq,b\nr,a\n",
    b"query_id,doc_id,rank\nq,a,2\nq,b,1\nr,a,1\n",
    b"query_id,doc_id,rank\nq,a,2\nq,b,nan\n",
    b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,2,2\nq,c,3,3\nr,a,1,9\nr,b,2,8\n",
    b"query_id,doc_id,rank,score\nq,a,1,1\nr,b,2,2\nq,c,3,3\n",
    b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,,2\nq,c,3,3\n",
    b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,second,2\nq,c,3,3\n",
    b"query_id,doc_id,rank,score\nq,a,nan,1\nq,b,2,2\nq,c,3,3\n",
    b"query_id,doc_id,rank,score\nq,a,1,inf\nq,b,2,inf\nq,c,3,-inf\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,7.5\nr,a,1,0\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nr,a,1,3\nq,b,2,7.5\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,-1\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,inf\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,\n",
    b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,few\n",
    b"query_hash,passage_hash,origins,query_id,doc_id,grade\nx,y,z,q,a,1\n",
    b"query-id,corpus-id,score\nq,a,1\nq,b,0\n",
    b"query_id,doc_id,score,grade\nq,a,.5,1\nq,b,.3,0\n",
]


def objects(*cells: str, keys: tuple[str, str, str] = ("query_id", "doc_id", "score")) -> str:
    """Lines of JSON with these values, written as they are."""
    of_rows = (cells[i : i + 3] for i in range(0, len(cells), 3))
    return "".join("{" + ", ".join(f'"{k}": {v}' for k, v in zip(keys, row, strict=True)) + "}\n" for row in of_rows)


PLAIN = objects('"q1"', '"a"', "2.5", '"q1"', '"b"', "1.5", '"q2"', '"a"', "1")
JSON_LINES = {
    "plain": PLAIN,
    "compact": PLAIN.replace(" ", ""),
    "no line end": PLAIN.strip(),
    "line ends of Windows": PLAIN.replace("\n", "\r\n"),
    "both line ends": PLAIN.replace("\n", "\r\n", 1),
    "a byte order mark": "\ufeff" + PLAIN,
    "blank lines": PLAIN.replace("\n", "\n\n  \n"),
    "a blank first line": "\n" + PLAIN,
    "spaces after objects": PLAIN.replace("\n", "  \n", 1),
    "spaces before objects": " " + PLAIN.replace("\n{", "\n   {"),
    "another order of keys": PLAIN + '{"doc_id": "c", "query_id": "q2", "score": 3}\n',
    "swapped keys": PLAIN.replace('"query_id": "q2", "doc_id": "a"', '"doc_id": "q2", "query_id": "a"'),
    "a key less": PLAIN + '{"query_id": "q2", "doc_id": "c"}\n',
    "a key more": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1, "text": "x"}\n',
    "a key twice": PLAIN + '{"query_id": "q2", "doc_id": "c", "doc_id": "d"}\n',
    "a key twice in every line": PLAIN.replace('"score"', '"doc_id": "z", "score"'),
    "escapes": objects('"q1"', '"a"', "1", '"q1"', '"\\u00e9\\n\\"b\\""', "2", '"q1"', '"\\ud800"', "2"),
    "a lone surrogate": objects('"q1"', '"a"', "1", '"q1"', '"\\ud800"', "2"),
    "escaped keys": PLAIN + '{"query\\u005fid": "q2", "doc_id": "c", "score": 1}\n',
    "escaped NUL": objects('"q1"', '"a\\u0000"', "1"),
    "raw control characters": objects('"q1"', '"a\tb"', "1", '"q1"', '"a\x01"', "1"),
    "delete characters": objects('"q1"', '"a\x7fb"', "1"),
    "other scripts": objects('"q漢"', '"é"', "1", '"qé"', '"漢"', "2"),
    "several objects a line": PLAIN + PLAIN.replace("}\n", "} ").strip() + "\n",
    "objects over several lines": PLAIN + '{"query_id": "q2",\n"doc_id": "c", "score": 1}\n',
    "damaged": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1\n' + PLAIN,
    "no objects": PLAIN + "[1]\n",
    "text after an object": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1} x\n',
    "an overlapping end": '{"query_id": "q", "score": 1, "doc_id": "a"}\n{"query_id": "q", "score": 1, "doc_id": "}\n',
    "whole ids": objects("12", "7", "2", "12", "8", "1", "13", "7", "5"),
    "negative ids": objects("-12", "-7", "2", "-0", "-0", "1"),
    "ids with leading zeros": objects("12", "7", "2", "012", "8", "1"),
    "ids with a point": objects("12", "7", "2", "12.0", "8", "1"),
    "passages with a point": objects("12", "7", "2", "12", "8.0", "1"),
    "ids with an exponent": objects("12", "7", "2", "12", "1e3", "1"),
    "very long ids": objects("12", "7", "2", "12", "9" * 30, "1", "9" * 30, "8", "1"),
    "ids of two types": objects('"12"', '"a"', "2", "12", '"b"', "1", '"12"', "7", "0"),
    "truth values": objects('"q"', '"a"', "true", '"q"', '"b"', "false"),
    "truth values as ids": objects("true", '"a"', "1"),
    "nulls": objects('"q"', '"a"', "1", '"q"', '"b"', "null", '"q"', "null", "1"),
    "nested values": objects('"q"', '"a"', "1", '"q"', '["b"]', "1", '{"x": "q"}', '"b"', "1"),
    "numbers as text": objects('"q"', '"a"', '"1.5"', '"q"', '"b"', '"0.5"'),
    "odd numbers as text": objects('"q"', '"a"', '" 1_0 "', '"q"', '"b"', '"x"'),
    "numbers JSON lacks": objects('"q"', '"a"', "1", '"q"', '"b"', ".5"),
    "numbers that end in a point": objects('"q"', '"a"', "1", '"q"', '"b"', "5."),
    "a point before an exponent": objects('"q"', '"a"', "1", '"q"', '"b"', "5.e1"),
    "a plus sign": objects('"q"', '"a"', "1", '"q"', '"b"', "+5"),
    "two signs": objects('"q"', '"a"', "1", '"q"', '"b"', "--5"),
    "exponents": objects('"q"', '"a"', "1e3", '"q"', '"b"', "5E-2", '"q"', '"c"', "-1.25e+2"),
    "NaN": objects('"q"', '"a"', "1", '"q"', '"b"', "NaN"),
    "infinity": objects('"q"', '"a"', "1", '"q"', '"b"', "-Infinity"),
    "text without quotation marks": objects('"q"', '"a"', "1", '"q"', '"b"', "x"),
    "spaces around values": PLAIN.replace("2.5", " 2.5  "),
    "digits apart": objects('"q"', '"a"', "1", '"q"', '"b"', "1 2"),
    "empty texts": objects('"q"', '"a"', "1", '"q"', '""', "1"),
    "long numbers": objects('"q"', '"a"', "0.1000000000000000055511151231257827", '"q"', '"b"', "9007199254740993"),
    "scattered": objects('"q1"', '"a"', "1", '"q2"', '"a"', "1", '"q1"', '"b"', "7"),
    "zeros": objects(
        *(
            cell
            for i, n in enumerate(["0", "-0", "0.5", "-0.5", "0.0", "0e1", "-0E-1", "10"])
            for cell in ('"q"', f'"{i}"', n)
        )
    ),
    "two zeros": objects('"q"', '"a"', "1", '"q"', '"b"', "00"),
    "a negative zero before a digit": objects('"q"', '"a"', "1", '"q"', '"b"', "-01"),
    "a zero before a digit and a point": objects('"q"', '"a"', "1.5", '"q"', '"b"', "01.5"),
    "a sign alone": objects('"q"', '"a"', "1.5", '"q"', '"b"', "-"),
    "a point after a sign": objects('"q"', '"a"', "1.5", '"q"', '"b"', "-.5"),
    "an exponent without digits": objects('"q"', '"a"', "1.5", '"q"', '"b"', "1e"),
    "an underscore": objects('"q"', '"a"', "1.5", '"q"', '"b"', "1_0"),
    "digits of other scripts": objects('"q"', '"a"', "1.5", '"q"', '"b"', "\u0661"),
    "numbers of different lengths": objects(
        *(cell for i in range(1, 24) for cell in ('"q"', f'"{i}"', f"{'123456789' * 3}"[:i] + ".5" * (i % 2)))
    ),
    "ids of different lengths": objects(
        *(cell for i in range(1, 27) for cell in ("9876543210" * 3)[:i] for cell in (cell, ("12345678" * 4)[:i], "1"))
    ),
    "a letter late in an id": objects("1", "2", "3", "1", "123456789x", "2"),
    "a point late in an id": objects("1", "2", "3", "1", "1234567890.5", "2"),
    "a long negative id": objects("1", "2", "3", "1", "-" + "1" * 30, "2"),
    "values that look like keys": objects('"query_id"', '", "', "1", '": "', '"doc_id"', "2", '"}"', '"{"', "3"),
    "another key of the same length": PLAIN + '{"query_id": "q2", "dac_id": "b", "score": 1}\n',
    "a text for a number": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": "1"}\n',
    "a number for a text": PLAIN + '{"query_id": "q2", "doc_id": 7, "score": 1}\n',
    "numbers first": "".join(f'{{"score":{i},"rank":{9 - i},"doc_id":"d{i}","query_id":"q"}}\n' for i in range(5)),
    "numbers only": "".join(f'{{"query_id":{i // 3},"doc_id":{i},"score":{9 - i}}}\n' for i in range(7)),
    "an object that is not closed": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": 1\n',
    "an object that is not closed at the end": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": 1',
    "a beginning at the end": PLAIN + '{"query_id": "',
    "two objects in a line": PLAIN.replace("}\n", "} ", 1),
    "line ends of Windows, the last without": PLAIN.replace("\n", "\r\n").strip(),
    "two carriage returns": PLAIN.replace("\n", "\r\r\n"),
    "keys in other scripts": PLAIN.replace('"score"', '"日本": "x", "score"'),
    "another key of the query": objects('"q"', '"a"', "1", '"q"', '"b"', "2")
    + '{"kuery_id": "q", "doc_id": "b", "score": 1}\n',
    "a tab in a later text": PLAIN + objects('"q2"', '"b\tc"', "1"),
    "a line end in a later text": PLAIN + objects('"q2"', '"b\nc"', "1"),
    "an empty number": PLAIN + objects('"q2"', '"b"', ""),
    "an empty number between others": '{"query_id":1 ,"doc_id":2,"score":3}\n{"query_id":,"doc_id":2,"score":3}\n',
    "values closer than in the first line": "".join(
        f'{{"score": 1, "query_id": 2, "doc_id": {passage}}}\n' for passage in ("3 ", "")
    ),
    "spaces in the first line": objects("1", "2", "3" + " " * 90) + objects("1", "4", "2"),
    "long keys in the first line": PLAIN.replace("doc_id", "s" * 90 + '": 1, "doc_id')
    + '{"query_id": "", "b": 1, "a": "", "c": 1}\n',
    "numbers as text, one of them empty": objects('"q"', '"a"', '"1"', '"q"', '"b"', '""'),
    "a query of blank text": objects('"q"', '"a"', "1", '" "', '"b"', "1"),
    "two grades": objects('"q1"', '"a"', "1", '"q2"', '"a"', "1", '"q1"', '"a"', "2"),
    "negative grades": objects('"q1"', '"a"', "1", '"q2"', '"a"', "-1"),
    "grades with a point": objects('"q1"', '"a"', "1", '"q2"', '"a"', "2.0", '"q2"', '"b"', "2.5"),
    "sides": "".join(
        json.dumps({"rank": i, "query_id": "q", "text": "x y, {z}", "doc_id": f"d{i}", "score": 1 / i, "tokens": 7})
        + "\n"
        for i in range(1, 5)
    ),
    "odd sides": PLAIN.replace('"score"', '"query": 1.5, "grade": 3, "score"') + objects('"q"', '"a"', "1"),
    "wrong sides": PLAIN.replace('"score": 1}', '"score": 01}'),
    "sides that are no numbers": "".join(
        f'{{"query_id": "q", "doc_id": "d", "took": {took}, "score": 1}}\n' for took in ("1", "2", "01", "3")
    ),
}

SIDES = PLAIN.replace('"score"', '"text": "x", "score"').encode()
#: JSON lines that are not UTF-8.
NOT_UTF8 = [SIDES.replace(b'"x"', b'"\xff"', 2), SIDES + SIDES.replace(b'"x"', b'"\xff"')]

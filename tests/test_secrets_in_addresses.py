"""What an address may hold besides host and path is a secret everywhere; mistakes about keys are explained."""

import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import pytest

from tests.endpoint_runs import Finished, cli, grades, rows, run, write_pairs
from tests.hostile_server import FAILS_ONE, HostileServer, Reply, Request, fails, first, good
from tests.test_refused_fields_and_budgets import words_of

pytestmark = pytest.mark.contract

SECRET = "s3cr3t/V4lue+0123456789"
ENCODED = "s3cr3t%2FV4lue%2B0123456789"
NO_KEY = {"OPENAI_API_KEY": ""}
#: What is added to `http://`, to host and port, and to the path.
PLACES = {
    "key": ("", f"?key={ENCODED}"),
    "api-key": ("", f"?api-version=2024-10-21&api-key={ENCODED}"),
    "sig": ("", f"?sp=r&sig={ENCODED}"),
    "no name": ("", f"?{ENCODED}"),
    "password": (f"me:{ENCODED}@", ""),
    "token": (f"{ENCODED}@", ""),
    "fragment": ("", f"#key={ENCODED}"),
}


def address(server: HostileServer, place: str, scheme: str = "http://") -> str:
    before, after = PLACES[place]
    return f"{scheme}{before}127.0.0.1:{server.port}/v1{after}"


def refuse_secret(folder: Path, *runs: Finished) -> None:
    """The secret is in nothing that was printed or written, in none of its forms."""
    forms = (SECRET, ENCODED, b64encode(f"me:{SECRET}".encode()).decode(), "s3cr3t")
    files = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    written = files.decode("utf-8", "replace") + "".join(each.said for each in runs)
    assert not [form for form in forms if form in written], written


def quotes(status: int) -> HostileServer:
    """A server that quotes the request and the secret in an error about some passages; it takes the others."""

    def respond(request: Request, n: int) -> Reply:
        if request.passages != (2,) and "labels" not in request.text and status in (400, 500):
            return good(request, n)
        told = f"bad path {request.target} of {SECRET} ({ENCODED}), headers {request.headers}"
        return fails(status, told)(request, n)

    return HostileServer(respond)


@pytest.mark.parametrize(
    ("place", "status"), [*((place, 400) for place in PLACES), ("key", 404), ("password", 404), ("fragment", 500)]
)
def test_no_error_summary_store_or_resume_line_holds_it(tmp_path, place: str, status: int) -> None:
    write_pairs(tmp_path, 3)
    with quotes(status) as server:
        url = address(server, place)
        options = ("-c", "judge.attempts=1", "-c", "judge.max_wait=1")
        done = run(tmp_path, url, *options, env=NO_KEY)
        plain = run(tmp_path, url, *options, "--retry-failed", "all", json_format=False, env=NO_KEY)
        stopped = run(tmp_path, url, "--max-calls", "1", store="other.db", json_format=False, env=NO_KEY)
        equals = cli(
            tmp_path, "grade", "--queries", "queries.tsv", "--corpus", "corpus.jsonl", "--pool", "pool.trec",
            "--store", "third.db", "--model", "m", f"--base-url={url}", "--max-calls", "1", env=NO_KEY,
        )  # fmt: skip
        assert server.requests
    assert done.code == {400: 1, 404: 2, 500: 1}[status], done.said
    assert "bad path" in done.said
    assert "go on with: rag-selectivity grade" in " ".join(stopped.said.split())
    assert equals.code == (2 if status == 404 else 1), equals.said
    refuse_secret(tmp_path, done, plain, stopped, equals, cli(tmp_path, "labels", "info", "labels.db"))


@pytest.mark.parametrize("command", ["claims", "answers"])
@pytest.mark.parametrize("place", ["key", "password"])
def test_claims_and_answers_hold_it_neither(tmp_path, command: str, place: str) -> None:
    with quotes(404) as server:
        done = cli(tmp_path, *words_of(command, tmp_path, address(server, place)), env=NO_KEY)
    assert done.code == 2, done.said
    (tmp_path / "samples.jsonl").unlink(missing_ok=True)
    refuse_secret(tmp_path, done)


@pytest.mark.parametrize(
    ("place", "scheme"), [*((place, "") for place in PLACES), ("key", "https//"), ("password", "htp://")]
)
def test_an_address_without_its_scheme_is_refused_without_it(tmp_path, place: str, scheme: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        url = address(server, place, scheme)
        given = run(tmp_path, url, json_format=False, env=NO_KEY)
        words = ("--queries", "queries.tsv", "--corpus", "corpus.jsonl", "--pool", "pool.trec", "--store", "labels.db")
        from_env = cli(tmp_path, "grade", *words, "--model", "m", env={"OPENAI_BASE_URL": url})
        assert not server.requests
        for done in (given, from_env):
            assert (done.code, f"127.0.0.1:{server.port}/v1" in done.err) == (2, True), done.said
            assert "must be a URL" in " ".join(done.err.split())
    refuse_secret(tmp_path, given, from_env)


@pytest.mark.parametrize("place", PLACES)
def test_an_address_where_nothing_listens_is_named_without_it(tmp_path, place: str) -> None:
    write_pairs(tmp_path, 3)
    server = HostileServer()
    server.close()
    done = run(tmp_path, address(server, place), json_format=False, env=NO_KEY)
    assert (done.code, f"nothing listens at http://127.0.0.1:{server.port}/v1" in " ".join(done.err.split())) == (
        2,
        True,
    ), done.said
    assert not (tmp_path / "labels.db").exists() or rows(tmp_path) == {}
    refuse_secret(tmp_path, done)


def test_the_credentials_of_the_address_and_its_query_are_sent(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        assert run(tmp_path, address(server, "password"), env=NO_KEY).code == 0
        assert server.requests[0].headers["authorization"] == f"Basic {b64encode(f'me:{SECRET}'.encode()).decode()}"
        server.requests.clear()
        assert run(tmp_path, address(server, "api-key"), store="other.db", env=NO_KEY).code == 0
        assert server.requests[0].target.startswith("/v1/chat/completions?api-version=2024-10-21&api-key=s3cr3t")


def test_the_token_of_an_authorization_header_is_a_secret_without_its_scheme(tmp_path) -> None:
    write_pairs(tmp_path, 3)

    def respond(request: Request, n: int) -> Reply:
        return fails(404, f"no route for token {request.headers['authorization'].split()[1]}")(request, n)

    with HostileServer(respond) as server:
        done = run(tmp_path, server.url, "--header", f"Authorization=Token {SECRET}", json_format=False, env=NO_KEY)
    assert (done.code, "no route for token" in done.err) == (2, True), done.said
    refuse_secret(tmp_path, done)


# -- ordinary mistakes ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\n\n"])
def test_a_key_that_ends_in_a_newline_is_the_key(tmp_path, end: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(key="sk-mounted-0123") as server:
        done = run(tmp_path, server.url, env={"OPENAI_API_KEY": f"sk-mounted-0123{end}"})
    assert (done.code, len(grades(tmp_path))) == (0, 3), done.said


@pytest.mark.parametrize("key", ["sk-one\nsk-two-0123", "sk-one\r\nX: y", "sk-\x07bell", "sk-\udcff0123"])
def test_a_key_that_no_header_can_hold_is_a_mistake_that_names_its_variable(tmp_path, key: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        done = run(tmp_path, server.url, "-c", "judge.api_key_env=MY_KEY", env={"MY_KEY": key})
        assert not server.requests
    assert (done.code, "MY_KEY" in done.err, "bug" in done.err) == (2, True, False), done.said
    assert "sk-" not in done.said


@pytest.mark.parametrize(
    "header", ["X-A=one\r\nX-B: two", "X-A=one\ntwo", "X-A=one\rtwo", "X A=one", "X\r\nB=two", "X:=one", "é=one"]
)
def test_a_header_that_breaks_its_line_is_a_mistake(tmp_path, header: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        done = run(tmp_path, server.url, "--header", header)
        assert not server.requests
    assert (done.code, "--header" in done.err, "bug" in done.err) == (2, True, False), done.said
    assert "two" not in done.err


def test_a_key_beside_a_user_and_a_password_is_a_mistake(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        url = address(server, "password")
        done = run(tmp_path, url, json_format=False)
        header = run(tmp_path, url, "--header", "Authorization=Bearer 123456", json_format=False, env=NO_KEY)
        dry = run(tmp_path, url, "--dry-run", env=NO_KEY)
        assert not server.requests
    for each in (done, header):
        assert (each.code, "bug" in each.err, "--base-url" in each.err) == (2, False, True), each.said
    assert "OPENAI_API_KEY" in done.err
    assert dry.code == 0, dry.said
    refuse_secret(tmp_path, done, header, dry)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:s3cr3tpw@[::1/v1",
        "http://me:s3cr3tpw@host:port/v1",
        "http://me:s3cr3tpw@host:99999/v1",
        f"http://me:s3cr3tpw@{'a' * 70}.example/v1",
        "http://me:s3cr3tpw@a..b/v1",
        "http://me:s3cr3tpw@/v1",
        "http://me:s3cr3tpw@my host/v1",
    ],
)
def test_an_address_that_is_none_is_a_mistake(tmp_path, url: str) -> None:
    write_pairs(tmp_path, 3)
    done = run(tmp_path, url, "-c", "judge.max_wait=1", "-c", "judge.attempts=1", json_format=False, env=NO_KEY)
    assert (done.code, "bug" in done.err, "--base-url" in done.err) == (2, False, True), done.said
    refuse_secret(tmp_path, done)


def test_a_proxy_that_is_none_is_a_mistake(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    proxy = {"HTTP_PROXY": "socks5://me:s3cr3tpw@127.0.0.1:9", "http_proxy": "socks5://me:s3cr3tpw@127.0.0.1:9"}
    done = run(
        tmp_path, "http://judge.example/v1", "-c", "judge.max_wait=1", "-c", "judge.attempts=1", env={**NO_KEY, **proxy}
    )
    assert (done.code, "bug" in done.err) == (2, False), done.said
    refuse_secret(tmp_path, done)


# -- a store that another program has changed -----------------------------------------------------


@pytest.mark.parametrize("value", ["x'ff00fe'", "x'6f6b'"])
@pytest.mark.parametrize(("table", "column"), [("labels", "reason"), ("human", "reason"), ("labels", "error")])
def test_bytes_in_the_place_of_a_text_are_damage(tmp_path, table: str, column: str, value: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(first(1, FAILS_ONE["too_long"])) as server:
        run(tmp_path, server.url, "--concurrency", "1")
    (tmp_path / "people.qrels").write_text("q0 0 d0 4\n")
    taken = cli(tmp_path, "labels", "import", "labels.db", "people.qrels", "--annotator", "ann")
    assert taken.code == 0, taken.said
    with closing(sqlite3.connect(tmp_path / "labels.db")) as file:
        file.execute(f"UPDATE {table} SET {column} = {value}")
        file.commit()
    files = ("--queries", "queries.tsv", "--corpus", "corpus.jsonl")
    commands = [("labels", "export", "labels.db", "out.jsonl"), ("labels", "export", "labels.db", "out.csv")]
    commands += [("evaluate", "labels.db", "pool.trec", "--judge", "judge-1", *files, "-o", "report.html")]
    commands += [("labels", "info", "labels.db")] if column == "error" else []
    for command in commands:
        done = cli(tmp_path, *command)
        assert (done.code, "bug" in done.err) == (2, False), done.said
        assert f"`{column}` is no text" in " ".join(done.err.split())
        assert "labels.db .recover" in " ".join(done.err.split())

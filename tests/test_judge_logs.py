"""What the client of a judge logs holds no secret of the address."""

import logging

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.openai_judge import OpenAIJudge
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.contract

SECRET = "s3cr3t/V4lue+0123456789"


def test_logs_of_the_client_name_no_secret(tmp_path, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    with JudgeServer() as server:
        url = f"http://127.0.0.1:{server.port}/v1?api-key={SECRET.replace('/', '%2F').replace('+', '%2B')}"
        judge = OpenAIJudge("m", base_url=url, headers={"x-key": SECRET})
        done = rs.grade({"q": "?"}, {"d": "text"}, {"q": ["d"]}, store=tmp_path / "labels.db", judge=judge)
    assert done.graded == 1
    assert "/v1/chat/completions?api-key=" in caplog.text
    assert "s3cr3t" not in caplog.text

"""What is taken for the text of a summariser's answer."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langgraph_compaction.run.replies import reply_of

TEXT = "The pumps were checked."


@pytest.mark.parametrize("where", ["response_metadata", "additional_kwargs"])
@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "reasoning", "reasoning": "hm"}]])
def test_an_answer_without_text_may_have_it_in_its_metadata(where: str, content: Any) -> None:
    answer = AIMessage(content, **{where: {"final_response": TEXT}})  # type: ignore[arg-type]
    assert reply_of(answer).text == TEXT


def test_a_text_in_the_content_comes_first() -> None:
    answer = AIMessage(TEXT, response_metadata={"final_response": "Something else."})
    assert reply_of(answer).text == TEXT


@pytest.mark.parametrize("wrong", ["", "  ", None, 7, ["text"], {"text": TEXT}])
def test_what_is_no_text_leaves_the_answer_empty(wrong: Any) -> None:
    assert not reply_of(AIMessage("", response_metadata={"final_response": wrong})).text

"""What is remembered of threads, so that a summary of another middleware is told, is bounded."""

from langchain_core.messages import HumanMessage

from langgraph_compaction.rivals import FROM_STATE, MOST_PLACES, Rivals

SUMMARY = HumanMessage("So far.", id="s", additional_kwargs={"lc_source": "summarization"})


def test_of_more_threads_than_the_most_the_oldest_are_forgotten() -> None:
    rivals = Rivals()
    places = [(f"thread {number}",) for number in range(MOST_PLACES + 1)]
    for place in places:
        assert rivals.in_state(place, [HumanMessage("Go on.", id="h")], {}) is None
    assert rivals.in_state(places[1], [SUMMARY], {}) == FROM_STATE
    assert rivals.in_state(places[0], [SUMMARY], {}) is None

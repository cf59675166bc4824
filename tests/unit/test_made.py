"""What a node remembers of its folds: of the newest threads and visits alone."""

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.run.made import MOST_PLACES, MOST_VISITS, MadeFolds

FOLDED = CompactionRecord(last_summarized_index=6, id_at_fold="a")
GONE_ON: list[BaseMessage] = [AIMessage("", id="a"), AIMessage("", id="b")]


def test_the_oldest_folds_give_way() -> None:
    made = MadeFolds()
    for number in range(MOST_PLACES + 1):
        made.note((str(number),), FOLDED)
    assert made.lost(("0",), {}, GONE_ON) is None
    assert made.lost(("1",), {}, GONE_ON)


def test_so_do_the_oldest_visits() -> None:
    made = MadeFolds()
    for number in range(MOST_VISITS + 1):
        assert made.visited(("t",), str(number))
    assert made.visited(("t",), "0")
    assert not made.visited(("t",), str(MOST_VISITS))
    assert made.visited(("other",), str(MOST_VISITS))


def test_a_visit_that_is_made_again_forgets_what_the_first_one_folded() -> None:
    made = MadeFolds()
    for newest in ("a", "b", "b"):
        made.visited(("t",), newest)
        made.note(("t",), FOLDED)
    assert made.lost(("t",), {}, GONE_ON)
    assert not made.visited(("t",), "a")
    assert made.lost(("t",), {}, GONE_ON) is None


def test_where_nothing_tells_visits_apart_each_is_the_first() -> None:
    made = MadeFolds()
    for place, newest in ((None, "a"), (("t",), None)):
        assert made.visited(place, newest)
        assert made.visited(place, newest)

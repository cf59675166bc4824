"""One model-free digest made of several: what lasts, and under which heading."""

import pytest
from langchain_core.messages import HumanMessage

from langgraph_compaction.digest.extractive.filling import NOTE
from tests.unit.extracting import condensed, section, summary


class TestCondense:
    OLD = (
        "# Messages 0 to 9 (folded after step 4)\n"
        "## Goal\n- Build a shop for tea.\n"
        "## Constraints and preferences\n- Never use a cloud service.\n"
        "## Findings\n- The supplier answers on Mondays only.\n"
        "## Artifacts and references\n- /srv/shop/main.py\n"
        "## State now\n- The cart is half built.\n- User: Let us see the cart.\n"
        "## Next step\n- Finish the cart.\n"
    )
    NEW = (
        "# Messages 10 to 19 (folded after step 8)\n"
        "## Goal\n- Make the checkout faster.\n"
        "## Findings\n- The checkout takes 900 ms.\n"
        "## State now\n- The checkout is measured.\n"
        "## Next step\n- Cache the prices.\n"
    )

    def test_with_room_nothing_but_old_states_is_lost(self) -> None:
        text = condensed(self.OLD, self.NEW)
        assert section(text, "Goal") == ["Build a shop for tea.", "Make the checkout faster."]
        assert section(text, "Findings") == [
            "The supplier answers on Mondays only.",
            "The checkout takes 900 ms.",
        ]
        assert section(text, "State now") == ["The checkout is measured."]
        assert section(text, "Next step") == ["Cache the prices."]
        assert "Messages" not in text

    @pytest.mark.parametrize(
        "fact",
        [
            "The checkout takes 900 ms.",
            "The cart lives in `cart`.",
            "The owner of it is Ada.",
            'It is called "tea" here.',
        ],
    )
    def test_a_fact_outlasts_the_state_it_stood_in(self, fact: str) -> None:
        old = f"## State now\n- {fact}\n- The cart is half built."
        text = condensed(old, "## Findings\n- It is measured.\n## State now\n- All is well.")
        assert section(text, "Findings") == [fact, "It is measured."]
        assert section(text, "State now") == ["All is well."]

    def test_what_the_user_said_outlasts_the_state_it_stood_in(self) -> None:
        text = condensed(self.OLD, self.NEW)
        assert "User: Let us see the cart." in section(text, "Constraints and preferences")

    def test_the_oldest_details_go_first_and_constraints_and_references_stay(self) -> None:
        many = [
            f"## Findings\n- In round {number} of the work the quick measurement gave "
            f"{number * 13} milliseconds on average."
            for number in range(40)
        ]
        text = condensed(self.OLD, *many, tokens=150)
        assert "Build a shop for tea." in text
        assert "Never use a cloud service." in text
        assert "/srv/shop/main.py" in text
        assert "In round 39 " in text
        assert "Mondays" not in text

    def test_other_headings_and_plain_prose_count_as_findings(self) -> None:
        text = condensed("The cart has 3 bugs. They are known.\n\n### Payment\nIt uses one bank.")
        assert section(text, "Findings") == [
            "The cart has 3 bugs. They are known.",
            "It uses one bank.",
        ]

    def test_a_quote_of_the_user_stays_with_the_constraints(self) -> None:
        quoted = "## Next step\n- Go on.\nThe user's newest message here, word for word:\nUse red."
        text = condensed(quoted, self.NEW)
        assert "Use red." in section(text, "Constraints and preferences")

    def test_its_own_first_line_is_not_repeated(self) -> None:
        once = summary(HumanMessage("Please build the parser."))
        assert condensed(once, once).count(NOTE) == 1
        assert condensed(once) == once

    def test_headings_are_known_in_other_dress(self) -> None:
        text = condensed(
            "**Goal**\n- Sell tea.\nState now:\n- It sells.\n## 3. Open questions\n- Who?"
        )
        assert section(text, "Goal") == ["Sell tea."]
        assert section(text, "State now") == ["It sells."]
        assert section(text, "Commitments and open items") == ["Who?"]

    def test_what_stands_behind_a_heading_is_in_its_section(self) -> None:
        text = condensed("**Goal:** Sell tea.\n2. Decisions: Use red boxes.\nOf paper.")
        assert section(text, "Goal") == ["Sell tea."]
        assert section(text, "Decisions") == ["Use red boxes.", "Of paper."]

    def test_texts_without_content_still_give_a_digest(self) -> None:
        assert "\n- " in condensed("", "## Goal\n")

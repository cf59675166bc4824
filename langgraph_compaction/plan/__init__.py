"""Pure decisions: how much there is, when to compact, what may go, what must stay."""

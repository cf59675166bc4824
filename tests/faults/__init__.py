"""Faults that users of other compaction systems reported, one family of tests for each.

A code (A1 to H4) stands in each test's name, and the public reports in its docstring. The page
`docs/reference/guarantees.md` lists them all, and `tests/contracts/test_guarantees.py` holds it to
the tests.
"""

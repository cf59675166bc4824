"""Which planted facts survive rounds of compaction, beside other systems. See `__main__`."""

"""Pure text: how a span is rendered, asked for, checked and turned into a segment."""

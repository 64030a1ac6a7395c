"""Tables as docstrings draw them."""

from __future__ import annotations


def aligned(rows: list[list[str]]) -> str:
    """Return rows of cells as lines whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )

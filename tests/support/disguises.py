"""Spellings of a line in which a reader takes it for the line itself."""

from __future__ import annotations

from collections.abc import Callable

DISGUISES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "no-break spaces": lambda label: label.replace(" ", "\u00a0"),
    "doubled spaces": lambda label: label.replace(" ", "  "),
    "a zero-width space": lambda label: f"{label[:6]}\u200b{label[6:]}",
    "a soft hyphen": lambda label: f"{label[:1]}\u00ad{label[1:]}",
    "full width": lambda label: "".join(
        chr(ord(one) + 0xFEE0) if one.isalpha() else one for one in label
    ),
    "bold": lambda label: f"**{label}**",
    "a quote": lambda label: f"> {label}",
    "a bullet": lambda label: f"- {label}",
    "a heading": lambda label: f"## {label}",
    "no punctuation": lambda label: label.replace(",", "").replace(":", ""),
    "combining marks": lambda label: label.replace("e", "e\u0301"),
}

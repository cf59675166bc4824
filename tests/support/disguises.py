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
    "an item of a list": lambda label: f"1. {label}",
    "a lettered item": lambda label: f"a) {label}",
    "bold in HTML": lambda label: f"<b>{label}</b>",
    "a heading in HTML": lambda label: f"<h1>{label}</h1>",
    "an entity": lambda label: f"&nbsp;{label}",
    "Cyrillic letters": lambda label: label.replace("e", "е").replace("a", "а").replace("o", "о"),
    "small capitals": lambda label: label.replace("r", "ʀ").replace("n", "ɴ").replace("t", "ᴛ"),
    "combining marks": lambda label: label.replace("e", "e\u0301"),
}

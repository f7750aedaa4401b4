"""The known name nearest to a mistyped one, for every refusal of an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name most like a given one, ignoring case; None: none has the likeness, which is 0 to 1."""
    folded = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=likeness)
    return folded[found[0]] if found else None


def hint_for(name: str, known: Iterable[str]) -> str:
    """The end of a refusal: the nearest known name, or all of them."""
    names = sorted(set(known))
    near = nearest_name(name, names)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(names) or 'none'}"

"""What a REST service answers, and why it refused, in clean words."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_streams.redaction import redact

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.body)

    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace").strip()


def reason(answer: Answer) -> str:
    """Why, in one line: the JSON reason or an HTML page's text, without stack traces."""
    text = answer.text()
    try:
        data = json.loads(text)
    except ValueError:
        return _clean(re.sub(r"<(style|script|head)\b.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL | re.IGNORECASE))
    return _clean(str(data.get("reason", "")) if isinstance(data, dict) else "")


def _clean(text: str) -> str:
    text = html.unescape(text).partition("Stacktrace:")[0]
    text = re.sub(r"---.*?---\s*Message:", "", text, flags=re.DOTALL)
    # Jetty's error pages repeat the request's own address, and the servlet
    text = re.sub(r"\b(URI|SERVLET|CAUSED BY):.*", "", text, flags=re.DOTALL)
    # before the text is cut: half a token would not be found later
    text = redact(" ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."

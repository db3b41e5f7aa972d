"""The page at / and the reference at /docs: one HTML file each, without external resources."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from cige.drawing.colours import LABEL_COLOURS, PALETTE
from cige.drawing.svg import escape
from cige.json_text import JsonObject, to_json


@cache
def page() -> tuple[str, str]:
    """The page and its content security policy."""
    content = files("cige.serving").joinpath("page.html").read_text(encoding="utf-8")
    colours = to_json({"labels": LABEL_COLOURS, "palette": PALETTE}).replace("<", "\\u003c")
    return _with_policy(content.replace("/*COLOURS*/null", colours))


def reference(document: JsonObject) -> tuple[str, str]:
    """A page that lists the paths of an OpenAPI document with their fields, and its content security policy."""
    shapes = document.get("components", {}).get("schemas", {})
    parts = []
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            body = _schema(what.get("requestBody", {}))
            answers = "".join(
                f"<tr><td>{escape(status)}<td>{escape(answer['description'])}<td>{_linked(_schema(answer))}"
                for status, answer in what["responses"].items()
            )
            parts.append(
                f"<h2>{method.upper()} <code>{escape(path)}</code></h2><p>{escape(what.get('summary', ''))}</p>"
                + (f"<p>Body: {_linked(body)}</p>" if body else "")
                + f"<table><tr><th>Status<th><th>Body</tr>{answers}</table>"
            )
    for name, shape in shapes.items():
        rows = "".join(
            f"<tr><td><code>{escape(field)}</code><td>{_linked(facts)}<td>{escape(facts.get('description', ''))}"
            for field, facts in shape.get("properties", {}).items()
        )
        heading = f"<h2 id={escape(name)}>{escape(name)}</h2><p>{escape(shape.get('description', ''))}</p>"
        parts.append(f"{heading}<table><tr><th>Field<th>Type<th>Meaning</tr>{rows}</table>")
    style = (
        ":root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:60rem;"
        "margin:auto;padding:1rem}"
        "table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}"
    )
    return _with_policy(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>cige: API</title><style>{style}</style></head><body>'
        f'<main><h1>cige: API</h1><p>The same as <a href="openapi.json">openapi.json</a>.</p>{"".join(parts)}'
        "</main></body></html>"
    )


def _schema(body: JsonObject) -> JsonObject | None:
    return body.get("content", {}).get("application/json", {}).get("schema")


def _linked(schema: JsonObject | None) -> str:
    """The type that a schema describes, in HTML."""
    if not schema:
        return ""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_linked, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_linked(schema.get('items'))}"
    return escape(str(schema.get("type", "")))


def _with_policy(content: str) -> tuple[str, str]:
    """The page, and a content security policy that allows only its own scripts and styles."""
    return content, (
        f"default-src 'none'; script-src {_hashes(content, 'script')}; style-src {_hashes(content, 'style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(content: str, tag: str) -> str:
    """The sources of a policy that allow what the elements with this tag hold."""
    codes = re.findall(rf"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode() for code in codes)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"

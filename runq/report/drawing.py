"""A plot as a picture inside the page: SVG without script, titles to point at, and a text for who cannot see it."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"

_ARIA = re.compile(r"^(role|aria-.*)$")


def svg(chart: Any, *, id: str, label: str, text: str, css_class: str) -> str:
    """The picture of an Altair chart.

    vl-convert draws it, in a JavaScript engine of its own that loads nothing. Each mark's description becomes a title,
    which browsers show under the pointer; to a screen reader the whole is one image with a label.

    Args:
        chart: an Altair chart; descriptions are encoded as ``description``.
        id: unique on the page.
        label: what it shows, in short.
        text: what it says, in a sentence or two.
        css_class: of the ``svg`` element.
    """
    told = io.StringIO()
    chart.save(told, format="svg")
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(told.getvalue())  # noqa: S314 - vl-convert's own text
    for element in list(root.iter()):
        about = element.get("aria-label")
        if about and element.get("role") == "graphics-symbol":
            title = ElementTree.SubElement(element, f"{{{SVG}}}title")
            title.text = about
        for name in [name for name in element.attrib if _ARIA.match(name)]:
            del element.attrib[name]
    for name in ("width", "height", "version", "class"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": css_class, "role": "img", "aria-labelledby": f"{id}-label {id}-text"}
    for place, (tag, words) in enumerate((("title", label), ("desc", text))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{id}-{'label' if tag == 'title' else 'text'}"})
        element.text = words
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")

"""A plot as a picture inside the page: SVG without script, titles to point at, and a text for who cannot see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from runq.report.charts import Plot

SVG = "http://www.w3.org/2000/svg"

_ARIA = re.compile(r"^(role|aria-.*)$")


def svg(plot: Plot, *, id: str, label: str, text: str, css_class: str) -> str:
    """The picture of a plot.

    vl-convert draws it, in a JavaScript engine of its own that loads nothing. Each mark's description becomes a title,
    which browsers show under the pointer; to a screen reader the whole is one image with a label.

    Args:
        plot: a chart and its data; descriptions are encoded as ``description``.
        id: unique on the page.
        label: what it shows, in short.
        text: what it says, in a sentence or two.
        css_class: of the ``svg`` element.
    """
    import altair
    import vl_convert

    spec = {**plot.chart.to_dict(), "datasets": plot.datasets}
    drawn = vl_convert.vegalite_to_svg(spec, vl_version=altair.SCHEMA_VERSION.lstrip("v").rpartition(".")[0])
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(drawn)  # noqa: S314 - vl-convert's own text
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

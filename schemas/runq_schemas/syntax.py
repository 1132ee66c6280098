"""What the messages of the YAML reader mean, in plain words."""

from __future__ import annotations

import re

from strictyaml.ruamel.error import YAMLError
from strictyaml.ruamel.reader import ReaderError

_ADVICE: tuple[tuple[str, str, str], ...] = (
    (r"found character '\\t'", "a tab stands where YAML allows only spaces", "Indent with spaces."),
    (
        r"found character '(.)' that cannot start",
        "a value cannot begin with `{0}`",
        "Put the value in quotes.",
    ),
    (
        "mapping values are not allowed",
        "a `:` stands where no key can be",
        "Put the value in quotes if the colon belongs to it; otherwise check the indentation and quotes.",
    ),
    (
        "sequence entries are not allowed",
        "a list item (`- `) stands where none can be",
        "Put the item on a line of its own, indented like the list's other items.",
    ),
    (
        r"expected ',' or '([]}])', but got '<stream end>'",
        "the bracket opened here is never closed",
        "Add the missing `{0}`.",
    ),
    (
        r"expected ',' or '([]}])'",
        "a `,` or `{0}` is missing before this place",
        "Close the bracket, separate its parts by commas, or put a value that contains brackets in quotes.",
    ),
    (
        r"expected <block end>, but found '([]}])'",
        "this `{0}` closes nothing",
        "Remove it, or add the bracket that it should close.",
    ),
    (
        "but found '<stream end>'",
        "the file ends in the middle of a list or mapping",
        "Add the missing closing bracket.",
    ),
    (
        "expected <block end>",
        "this line does not fit the indentation of what it stands in",
        "Indent it exactly like the keys or items beside it, and check that brackets and quotes are closed.",
    ),
    (
        "found unexpected end of stream",
        "the quoted text that begins here is never closed",
        "Add the closing quote.",
    ),
    (
        "could not find expected ':'",
        "this line is no `key: value`",
        "Put a colon and a space behind the key, or indent the line if it goes on with the value above.",
    ),
    (
        "unknown escape character",
        "the text in double quotes has a backslash that begins no escape",
        "Write the text in single quotes, or every backslash twice.",
    ),
    (
        "expected escape sequence of",
        "the text in double quotes has an incomplete \\x, \\u or \\U escape",
        "Write the text in single quotes, or every backslash twice.",
    ),
    (
        "expected the node content",
        "a value is missing here, or begins with a character that cannot begin one",
        "Write the value; put it in quotes if it begins with a special character.",
    ),
    (
        "mapping keys are not allowed",
        "a `?` stands where no key can be",
        "Put the value in quotes if the question mark belongs to it.",
    ),
    (
        "URI|tag handle",
        "tags (`!...`) are not allowed in a queue file",
        "Remove the tag, or put the value in quotes if the text really begins with `!`.",
    ),
    (
        "but found another document",
        "a second document begins here; a queue file holds one",
        "Remove the `---` line, or move what follows into a file of its own.",
    ),
)
"""What ruamel says, what that means, what to do. The first pattern that is found applies."""


def explain(error: YAMLError, text: str) -> tuple[int, str, str]:
    """Where in the text a syntax error is, what is wrong there, and what to do about it.

    What is never closed is reported where it was opened; the reader notices at the end of the file.

    Returns:
        The index of a character of ``text``, a message, a remedy.
    """
    if isinstance(error, ReaderError):
        code = error.character
        return (
            text.index(chr(code)),
            f"the character U+{code:04X} is not allowed in YAML",
            "Remove it; in double quotes it can be written as an escape such as \\t or \\u00a0.",
        )
    problem = str(getattr(error, "problem", None) or error)
    context = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or context
    last = max(len(text.rstrip()) - 1, 0)
    # A key without a colon is noticed at the next one.
    if context is not None and mark is not None and (mark.index > last or "expected ':'" in problem):
        mark = context
    index = 0 if mark is None else min(mark.index, last)
    for pattern, meaning, remedy in _ADVICE:
        match = re.search(pattern, problem)
        if match:
            return index, meaning.format(*match.groups()), remedy.format(*match.groups())
    return index, f"this is not YAML: {problem}", "Correct the YAML at this place."

"""A refused query is an answer on the page, not a traceback with local variables on the user's terminal.

Datasette prints one through rich wherever rich is installed, and runq brings it.
"""

from datasette import handle_exception

handle_exception.rich = None

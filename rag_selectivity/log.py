"""The log of this package, whose lines show the control characters of what they quote."""

import logging

from rag_selectivity.wording import visible, visible_lines

__all__ = ["LOG"]

#: What the whole package logs to.
LOG = logging.getLogger("rag_selectivity")
_TRACEBACKS = logging.Formatter()


def _show(record: logging.LogRecord) -> bool:
    """Replace the text of a record, and of its traceback, if a terminal would obey a part of it."""
    text = record.getMessage()
    if (shown := visible(text)) != text:
        record.msg, record.args = shown, ()
    if record.exc_info and record.exc_info[0] is not None:
        trace = record.exc_text or _TRACEBACKS.formatException(record.exc_info)
        if (shown := visible_lines(trace)) != trace:
            record.exc_text = shown
    return True


LOG.addFilter(_show)

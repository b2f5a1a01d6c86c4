"""What an error tells a user: one line that says what is wrong, where, and what to do."""

import typer

from rag_selectivity.errors import SelectivityError

#: The errors that the parser of the command line raises.
USAGE_ERROR = typer.BadParameter.__mro__[1]


def explained(error: BaseException) -> str:
    """The line behind `error: `, whatever was raised."""
    return " ".join(_text(error).split())


def _text(error: BaseException) -> str:
    if isinstance(error, SelectivityError):
        return str(error)
    from rag_selectivity.grading.store import DatabaseError

    if isinstance(error, DatabaseError):
        return f"the label store cannot be used ({error})"
    if isinstance(error, USAGE_ERROR):
        message: str = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        context = getattr(error, "ctx", None)
        hint = "" if context is None else f"{'' if message.endswith('?') else ';'} see {context.command_path} --help"
        return message + hint
    if isinstance(error, UnicodeEncodeError):
        return (
            f"standard output cannot show {error.object[error.start]!r} in {error.encoding}: set PYTHONUTF8=1, "
            f"or write to a file with --output"
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    if isinstance(error, MemoryError):
        return "there is not enough memory: give one run at a time, or fewer measures and depths"
    return (
        f"this is a bug in rag-selectivity ({type(error).__name__}: {error}); RAG_SELECTIVITY_DEBUG=1 shows the "
        f"traceback, which a report of the bug needs"
    )

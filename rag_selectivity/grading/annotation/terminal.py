"""A task in a terminal: a passage, a prompt, and the answers in a file after each of them."""

from __future__ import annotations

import shutil
import statistics
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rag_selectivity.errors import InputError
from rag_selectivity.grading.annotation.answers import GRADES, Answer, read_answers, write_answers
from rag_selectivity.grading.annotation.task import AnnotationTask
from rag_selectivity.wording import counted, visible

_PROMPT = "grade 1-5, s skip, u undo, n note, h help, q quit: "
#: Seconds that count at most for one passage; whoever takes longer is away.
_LONGEST = 180.0


@dataclass
class TerminalSession:
    """One sitting at a task.

    Parameters
    ----------
    task : AnnotationTask
    path : Path
        The file of answers; one of the same task is continued.
    ask : function
        Shows a prompt and returns a line; EOFError ends the sitting.
    show : function
        Shows a text.
    """

    task: AnnotationTask
    path: Path
    ask: Callable[[str], str]
    show: Callable[[str], None]
    answers: dict[int, Answer] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.path.exists():
            return
        earlier = read_answers(self.path)
        if earlier.task != self.task.id:
            raise InputError(
                f"{self.path}: these are the answers of {earlier.annotator!r} to another task ({earlier.task}); give "
                f"another file with --output"
            )
        self.answers = {answer.item: answer for answer in earlier.answers}
        self.order = sorted(self.answers, key=lambda item: (self.answers[item].answered or 0, item))

    def run(self) -> None:
        """Ask until every item is answered or the annotator quits."""
        self.show(self._help())
        while (item := self._next()) is not None:
            self._show(item)
            shown = time.monotonic()
            if not self._answer(item, shown):
                break
        done = len(self.answers)
        self.show(f"{done} of {counted(len(self.task.items), 'item')} done; the answers are in {self.path}")

    def _next(self) -> int | None:
        return next((item for item in range(len(self.task.items)) if item not in self.answers), None)

    def _answer(self, item: int, shown: float) -> bool:
        """Take one line; whether to go on."""
        while True:
            try:
                word = self.ask(_PROMPT).strip().casefold()
                if word == "n":
                    self.notes[item] = self.ask("note: ").strip()
                    continue
            except EOFError:
                return False
            if word == "q":
                return False
            if word == "u":
                self._undo()
                return True
            if word == "h":
                self.show(self._help())
            elif word == "s" or (word.isdecimal() and int(word) in GRADES):
                self._keep(item, None if word == "s" else int(word), time.monotonic() - shown)
                return True
            else:
                self.show(f"{word!r} is none of 1-5, s, u, n, h and q")

    def _keep(self, item: int, grade: int | None, seconds: float) -> None:
        query, passage = self.task.items[item].fingerprints
        note = self.notes.pop(item, "")
        self.answers[item] = Answer(item, query, passage, grade, note, time.time(), round(min(seconds, _LONGEST), 1))
        self.order.append(item)
        write_answers(self.path, self.task, self.answers)

    def _undo(self) -> None:
        if not self.order:
            self.show("there is nothing to undo")
            return
        item = self.order.pop()
        answer = self.answers.pop(item)
        if answer.note:
            self.notes[item] = answer.note
        write_answers(self.path, self.task, self.answers)

    def _show(self, number: int) -> None:
        item = self.task.items[number]
        width = min(shutil.get_terminal_size().columns, 100)
        rule = "─" * width
        left = self._minutes_left()
        self.show(
            f"{rule}\n{len(self.answers)} of {len(self.task.items)} done{left}\n\n"
            f"Question: {wrapped(item.question, width)}\n\nPassage:\n{wrapped(item.text, width) or '(it is empty)'}\n"
        )

    def _minutes_left(self) -> str:
        times = [answer.seconds for answer in self.answers.values() if answer.seconds]
        if len(times) < 5:
            return ""
        minutes = statistics.median(times) * (len(self.task.items) - len(self.answers)) / 60
        return f", about {counted(max(1, round(minutes)), 'minute')} left"

    def _help(self) -> str:
        return f"{self.task.rubric.text}\n\nSkip a passage that you cannot judge. Some come twice; grade them afresh."


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most so many characters; what could move the cursor is shown.

    >>> print(wrapped("a b\\x1b[2Jc", 40))
    a b\\x1b[2Jc
    """
    return "\n".join(textwrap.fill(visible(line.replace("\t", " ")), width) for line in text.splitlines())

"""Answers into a label store: what is checked, what is taken, and what they say about agreement."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rag_selectivity.errors import InputError, warn
from rag_selectivity.grading.store import HumanLabel, Store
from rag_selectivity.people.answers import Answer, Answers, read_answers
from rag_selectivity.people.task import StoredTask, stored_task
from rag_selectivity.wording import counted

#: A pair and the number of its sample.
_Place = tuple[str, str, int]


class Contradiction(NamedTuple):
    """Two grades of one pair."""

    query: str
    passage: str
    other: str
    other_grade: int
    grade: int

    @property
    def distance(self) -> int:
        """How far they are apart."""
        return abs(self.grade - self.other_grade)


@dataclass
class Imported:
    """What an import did.

    Attributes
    ----------
    annotator : str
    new, changed, unchanged, older : int
        Answers that the store did not have, that replaced another grade or note of the same task, that it had, and
        that were older than what it has.
    ahead : int
        Answers that were taken and dated ahead of now.
    skipped, left : int
        Answers without a grade; items of the task without an answer in the store.
    withdrawn : int
        Stored answers to the task that the file lacks, although it was saved after they were given.
    outdated : list of str
        Places of the answers whose texts have changed in the store since; they are left out.
    contradictions : list of Contradiction
        Grades that the annotator gave to the same pair outside this task.
    repeated : list of (first grade, second grade)
        Of pairs that came twice.
    shared : {other annotator: list of Contradiction}
        Pairs that another annotator graded too, whether the grades differ or not.
    """

    annotator: str
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    older: int = 0
    ahead: int = 0
    skipped: int = 0
    left: int = 0
    withdrawn: int = 0
    outdated: list[str] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    repeated: list[tuple[int, int]] = field(default_factory=list)
    shared: dict[str, list[Contradiction]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The import in sentences."""
        parts = [f"{self.new} new", f"{self.changed} changed", f"{self.unchanged} there already"]
        parts += [f"{self.older} older than the stored ones (--replace takes them)"] if self.older else []
        parts += [f"{self.ahead} dated ahead of this machine's clock, taken as of now"] if self.ahead else []
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        yield f"answers of {self.annotator}: {', '.join(parts)}; {counted(self.left, 'item')} of the task left"
        if self.withdrawn:
            lacks = counted(self.withdrawn, "stored answer is", "stored answers are")
            mend = f"if they were undone, have {self.annotator} skip or grade these again, and import that file"
            yield f"  {lacks} not in this newer file, and still counted: {mend}"
        if self.repeated:
            alike = sum(first == second for first, second in self.repeated)
            yield f"  graded twice: {counted(len(self.repeated), 'passage')}, {alike} alike"
        for other, pairs in self.shared.items():
            line = f"  graded by {other} too: {counted(len(pairs), 'pair')}, {sum(not p.distance for p in pairs)} alike"
            worst = max(pairs, key=lambda pair: pair.distance)
            if worst.distance:
                line += f"; for example query {worst.query!r}, passage {worst.passage!r}: {worst.other} "
                line += f"{worst.other_grade}, {self.annotator} {worst.grade}"
            yield line


def import_answers(store: Store, path: Path, *, annotator: str | None = None, replace_newer: bool = False) -> Imported:
    """Take the answers of a file into the store that made the task; the same file again changes nothing.

    An answer that is older than the stored one is left out, unless `replace_newer`. One that is dated ahead of now
    counts as given now, so that it does not outlive later corrections.

    Raises
    ------
    InputError
        If the store does not know the task, if the answers are another annotator's or of other texts than the task's,
        or if the file is damaged.

    Warns
    -----
    SelectivityWarning
        If texts have changed in the store since (these answers are left out), or if grades contradict earlier ones of
        the same annotator (the new ones count).
    """
    answers = read_answers(path)
    task = _known_task(store, answers, path, annotator)
    imported = Imported(task.annotator)
    earlier = list(store.human_labels())
    stored = {_place(label): label for label in earlier if label.annotator == task.annotator}
    labels = [
        (answer, _with_random_draw(label, stored.get(_place(label))))
        for answer, label in _labels(store, answers, task, imported)
    ]
    to_write = [each for each in labels if _is_to_write(*each, task, stored, imported, replace_newer)]
    store.put_human_labels(label for _, label in to_write)
    imported.ahead = _note_times(store, task, to_write)
    after = stored | {_place(label): label for _, label in to_write}
    imported.skipped = sum(label.grade is None for _, label in labels)
    in_file = {task.items[answer.item] for answer in answers.answers.values()}
    of_task = {place for place, label in after.items() if label.draw == task.draw}
    imported.left = sum(place not in after or place not in in_file | of_task for place in task.items.values())
    given = {(*pair, int(n)): at for pair, x in task.origins.items() for n, at in x.detail.get("answered", {}).items()}
    imported.withdrawn = sum(given.get(place, answers.saved) < answers.saved for place in of_task - in_file)
    grades = {place: label.grade for place, label in after.items() if label.grade is not None}
    for query, passage, sample in task.items.values():
        both = (query, passage, 0), (query, passage, sample)
        if sample and all(place in grades for place in both):
            imported.repeated.append((grades[both[0]], grades[both[1]]))
    graded = {_place(label): label.grade for _, label in labels if label.grade is not None}
    for label in earlier:
        place = label.query, label.passage, 0
        if label.annotator != task.annotator and label.sample == 0 and label.grade is not None and place in graded:
            both_grades = Contradiction(*place[:2], label.annotator, label.grade, graded[place])
            imported.shared.setdefault(label.annotator, []).append(both_grades)
    _warn(path, imported)
    return imported


def _known_task(store: Store, answers: Answers, path: Path, annotator: str | None) -> StoredTask:
    task = stored_task(store, answers.task)
    if task is None:
        raise InputError(
            f"{path}: {store.path} has no task {answers.task!r}; import the answers into the store that `labels draw` "
            f"was given"
        )
    if answers.annotator != task.annotator or annotator not in (None, task.annotator):
        name = answers.annotator if answers.annotator != task.annotator else annotator
        raise InputError(
            f"{path}: task {answers.task} is that of {task.annotator!r}, not of {name!r}; every annotator needs a task "
            f"of their own (labels draw --annotator {name})"
        )
    if answers.rubric != task.draw.how["rubric"]:
        raise InputError(
            f"{path}: the answers follow another rubric ({answers.rubric}) than the task "
            f"({task.draw.how['rubric']}); make a new task with that rubric"
        )
    return task


def _place(label: HumanLabel) -> _Place:
    return label.query, label.passage, label.sample


def _labels(store: Store, answers: Answers, task: StoredTask, imported: Imported) -> list[tuple[Answer, HumanLabel]]:
    """The answers as labels, without those whose texts have changed since the task was made."""
    hashes = {
        (query, passage): pair for query, passage, *pair in store.text_hashes() if (query, passage) in task.origins
    }
    labels = []
    for where, answer in answers.answers.items():
        if answer.item not in task.items:
            raise InputError(f"{where}: the task has no item {answer.item}; was the file changed by hand?")
        query, passage, sample = task.items[answer.item]
        try:
            given = bytes.fromhex(answer.query), bytes.fromhex(answer.passage)
        except ValueError:
            raise InputError(f"{where}: {answer.passage!r} is not the fingerprint of a text") from None
        if [digits.hex() for digits in given] != task.origins[query, passage].detail["texts"]:
            raise InputError(
                f"{where}: item {answer.item} is of other texts than the task's (query {query!r}, passage "
                f"{passage!r}); was the file changed by hand?"
            )
        if list(given) != hashes.get((query, passage)):
            imported.outdated.append(f"query {query!r}, passage {passage!r}")
            continue
        label = HumanLabel(
            query, passage, task.annotator, answer.grade, answer.note or None, *given, sample=sample, draw=task.draw
        )
        labels.append((answer, label))
    return labels


def _with_random_draw(label: HumanLabel, before: HumanLabel | None) -> HumanLabel:
    """The label, with the draw of an earlier one of the same person and pair if that one was drawn at random.

    A pair that was drawn at random stays a part of its sample, also if a targeted draw chose it later.
    """
    if before is None or before.is_outdated or before.grade is None or before.is_targeted or before.is_adjudication:
        return label
    return replace(label, draw=before.draw or label.draw) if label.is_targeted else label


def _is_to_write(
    answer: Answer,
    label: HumanLabel,
    task: StoredTask,
    stored: Mapping[_Place, HumanLabel],
    imported: Imported,
    replace_newer: bool,
) -> bool:
    """Whether an answer is news to the store; counts it, and notes what it contradicts."""
    before, pair = stored.get(_place(label)), (label.query, label.passage)
    foreign = before is not None and before.draw != task.draw
    if before is None or before.is_outdated:
        what = "new"
    elif foreign and label.grade is None and before.grade is not None:
        # A passage that is skipped here keeps the grade of another task.
        what = "unchanged"
    elif foreign and (before.draw != label.draw or before.grade != label.grade):
        if before.grade is not None and label.grade is not None and before.grade != label.grade:
            imported.contradictions.append(Contradiction(*pair, task.annotator, before.grade, label.grade))
        what = "new"
    elif (before.grade, before.reason) == (label.grade, label.reason):
        what = "unchanged"
    elif not replace_newer and _is_older(answer, str(label.sample), task.origins[pair].detail):
        what = "older"
    else:
        what = "changed"
    setattr(imported, what, getattr(imported, what) + 1)
    return what in ("new", "changed")


def _is_older(answer: Answer, sample: str, detail: Mapping[str, Any]) -> bool:
    """Whether an answer was given before the stored one. A stored time that is ahead of now says nothing."""
    if answer.answered is None:
        return False
    now = time.time()
    ahead = detail.get("ahead", {}).get(sample, 0)
    if answer.answered > now:
        return bool(answer.answered <= ahead)
    stored = detail.get("answered", {}).get(sample, 0)
    return bool(answer.answered == ahead or answer.answered < stored <= now)


def _note_times(store: Store, task: StoredTask, written: Sequence[tuple[Answer, HumanLabel]]) -> int:
    """Keep when an answer was given, so that an older file does not replace it; how many are dated ahead of now."""
    origins = dict(task.origins)
    now, dated_ahead = time.time(), 0
    for answer, label in written:
        if answer.answered is not None:
            pair, sample = (label.query, label.passage), str(label.sample)
            detail: dict[str, Any] = dict(origins[pair].detail)
            detail["answered"] = {**detail.get("answered", {}), sample: min(answer.answered, now)}
            if answer.answered > now:
                # By its own date the same answer is known again.
                dated_ahead += 1
                detail["ahead"] = {**detail.get("ahead", {}), sample: answer.answered}
            origins[pair] = replace(origins[pair], detail=detail)
    store.put_origins((*pair, origin) for pair, origin in origins.items() if origin is not task.origins[pair])
    return dated_ahead


def _warn(path: Path, imported: Imported) -> None:
    if imported.outdated:
        warn(
            f"{path}: {counted(len(imported.outdated), 'answer')} left out, since the texts have changed since "
            f"({imported.outdated[0]}); have people grade the new texts",
            "answers-of-older-texts",
            stacklevel=4,
        )
    if imported.contradictions:
        worst = max(imported.contradictions, key=lambda pair: pair.distance)
        warn(
            f"{path}: {counted(len(imported.contradictions), 'grade contradicts', 'grades contradict')} what "
            f"{imported.annotator} said before outside this task (query {worst.query!r}, passage "
            f"{worst.passage!r}: {worst.other_grade}, now {worst.grade}); the new ones count",
            "grades-contradict",
            stacklevel=4,
        )

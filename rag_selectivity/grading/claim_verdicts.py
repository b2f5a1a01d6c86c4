"""People's verdicts on claims and passages: a sheet to fill in, and how far the judge agrees with them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from random import Random
from typing import Any, NamedTuple

from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.labels import with_people
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.results.claims import GROUNDEDNESS, NOT_KNOWN, ClaimCheck, ClaimReport
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.tables.cells import check_whole, checked_id
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.names import COLUMNS, find_column
from rag_selectivity.tables.small import rows_of
from rag_selectivity.tables.writing import without_apostrophe
from rag_selectivity.trust.agreement import Agreement, agreement
from rag_selectivity.wording import counted

#: What people may write into the column `verdict`; None: skipped, or not filled in.
_VERDICTS = {
    **dict.fromkeys(("yes", "1", "true"), True),
    **dict.fromkeys(("no", "0", "false"), False),
    **dict.fromkeys(("", "skip", "none"), None),
}
_DRAWN = "random"
#: The names of the columns that say what a verdict is about.
_KEY = {"query": ("query_id", *COLUMNS["query"]), "claim": ("claim",), "passage": ("passage_id", *COLUMNS["passage"])}

#: The query, the claim and the passage of a verdict.
Key = tuple[str, str, str]


class Verdict(NamedTuple):
    """Whether a passage by itself supports a claim, as the judge says, with the texts that it read."""

    supported: bool
    question: str
    passage: str

    def fingerprint(self, claim: str) -> str:
        """16 hexadecimal digits that change if one of the texts changes."""
        texts = "\0".join((self.question, claim, self.passage))
        return blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class PeoplesVerdict(NamedTuple):
    """A person's verdict, its row for errors, the fingerprint of the texts that the person read (empty if it is not
    known), and whether the tool drew the pair.
    """

    where: str
    supported: bool
    fingerprint: str
    drawn: bool


def verdicts_of(runs: Mapping[str, Sequence[ClaimCheck]]) -> dict[Key, Verdict]:
    """The judge's verdict on every claim and passage, of references and of responses; failed calls have none."""
    found: dict[Key, Verdict] = {}
    for check in (check for of_run in runs.values() for check in of_run):
        sample = check.sample
        tables = (("recall", check.claims, check.support), (GROUNDEDNESS, check.response_claims, check.grounds))
        for name, claims, table in tables:
            known = max(0, check.known.get(name, NOT_KNOWN))
            shown = list(zip(sample.passage_ids, sample.retrieved_contexts, strict=True))[:known]
            for claim, row in zip(claims, table[:, :known].tolist(), strict=True):
                for (id_, text), supported in zip(shown, row, strict=True):
                    found[sample.id, claim, id_] = Verdict(supported, sample.user_input, text)
    return found


def verdict_sheet(report: ClaimReport, pairs: int = 200, *, seed: int = 7) -> list[dict[str, str]]:
    """Random claims and passages of a report, for people to say whether the passage by itself supports the claim.

    The rows do not show what the judge says. Write them as a table (`rag_selectivity.tables.writing.write_rows`), have
    the column `verdict` filled in with `yes` or `no` (`skip` for what cannot be said), and give the file to
    `check_claims(human=…)`.

    Parameters
    ----------
    report : ClaimReport
        With the check `recall` or `groundedness`.
    pairs : int
        How many to draw, all with the same probability; all there are if there are fewer.
    seed : int

    Raises
    ------
    InputError
        If the judge gave no verdict on any claim.
    """
    check_whole("the number of pairs of a sheet", pairs)
    if not (verdicts := verdicts_of({name: run.samples for name, run in report.runs.items()})):
        raise InputError("there is no claim to draw: a sheet needs the check recall or groundedness, and its answers")
    drawn = Random(seed).sample(sorted(verdicts), min(pairs, len(verdicts)))
    return [
        {
            "question": verdicts[key].question,
            "claim": claim,
            "passage": verdicts[key].passage,
            "verdict": "",
            "note": "",
            "query_id": query,
            "passage_id": passage,
            "fingerprint": verdicts[key].fingerprint(claim),
            "drawn": _DRAWN,
        }
        for key in drawn
        for query, claim, passage in [key]
    ]


def name_of(source: Any) -> str:
    """What errors and notes call people's verdicts."""
    return str(source) if is_path(source) else "human"


def read_verdicts(source: Any) -> dict[Key, PeoplesVerdict]:
    """People's verdicts from a file, a frame or records with `query_id`, `claim`, `passage_id` and `verdict`.

    Raises
    ------
    InputError
        If a column is missing, a verdict is neither yes nor no, two verdicts of a pair differ, or none is filled in.
    """
    found: dict[Key, PeoplesVerdict] = {}
    for where, row in rows_of(source, name_of(source)):
        cell = row[find_column(list(row), "verdict", where, ("verdict",))]
        text = "" if cell is None or cell != cell else str(cell).strip().casefold()
        if text not in _VERDICTS:
            raise InputError(f"{where}: the verdict must be yes or no, or skip, got {str(cell)!r}")
        supported = _VERDICTS[text]
        if supported is None:
            continue
        columns = [find_column(list(row), what, where, names) for what, names in _KEY.items()]
        query, claim, passage = (without_apostrophe(str(row[column])) for column in columns)
        key = checked_id(query, where, "query"), claim, checked_id(passage, where, "passage")
        if key in found and found[key].supported != supported:
            other = f"another verdict on the same claim is in {found[key].where}; settle it, and keep one row"
            raise InputError(f"{where}: query {query!r}, passage {passage!r}: {other}")
        drawn = str(row.get("drawn") or "").strip() == _DRAWN
        found[key] = PeoplesVerdict(where, supported, str(row.get("fingerprint") or ""), drawn)
    if not found:
        raise InputError(f"{name_of(source)}: no verdict is filled in; write yes or no into the column verdict")
    return found


def compared_with_people(
    runs: Mapping[str, Sequence[ClaimCheck]],
    judge: str,
    people: Mapping[Key, PeoplesVerdict] | None,
    name: str,
    bootstrap: Bootstrap,
) -> tuple[Provenance, Agreement | None, tuple[str, ...]]:
    """Where the verdicts come from and how far the judge agrees with people, and notes on verdicts that are left out.

    A verdict of people counts if the judge has one on the same claim and passage of the same query, and the texts are
    those that the person read.

    Raises
    ------
    InputError
        If no verdict of people is about a claim and a passage of these runs.
    """
    verdicts = verdicts_of(runs)
    known = Provenance(len(verdicts), judges={judge: len(verdicts)})
    if people is None:
        return known, None, ()
    if not (shared := {key: given for key, given in people.items() if key in verdicts}):
        raise InputError(
            f"{name}: none of {counted(len(people), 'verdict')} is about a claim and a passage of this check; it has "
            f"queries {examples(key[0] for key in people)}, and claims must be those that this judge made of the "
            f"answers: draw the sheet with this judge and store"
        )
    same = {key: given for key, given in shared.items() if given.fingerprint in ("", verdicts[key].fingerprint(key[1]))}
    found: Agreement | None = None
    if same:
        by_people = [int(given.supported) for given in same.values()]
        sample = by_people, [int(verdicts[key].supported) for key in same], [query for query, _, _ in same], 1
        found = agreement(sample, grades=(0, 1), bootstrap=bootstrap)
        reason = found.reason.replace("gave grade 1 to", "said yes to").replace("gave grade 0 to", "said no to")
        found = replace(found, reason=reason)
    drawn = sum(given.drawn for given in same.values())
    counts = {design: count for design, count in (("claims", drawn), ("", len(same) - drawn)) if count}
    notes = []
    if unknown := len(people) - len(shared):
        what = "is about no claim and passage" if unknown == 1 else "are about no claims and passages"
        notes.append(f"{counted(unknown, 'verdict')} of {name} {what} of this check")
    if outdated := len(shared) - len(same):
        what = "is about a text that has changed since" if outdated == 1 else "are about texts that have changed since"
        notes.append(f"{counted(outdated, 'verdict')} of {name} {what}, and left out")
    return with_people(known, found, counts), found, tuple(notes)

"""People's verdicts on claims and passages: a sheet to fill in, and how far the judge agrees with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.results.claims import GROUNDEDNESS, NOT_KNOWN, ClaimCheck, ClaimReport
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.tables.cells import checked_id
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.names import COLUMNS, find_column
from rag_selectivity.tables.small import rows_of
from rag_selectivity.tables.writing import without_apostrophe
from rag_selectivity.trust.agreement import Agreement, agreement
from rag_selectivity.wording import counted

#: What people may write into the column `verdict`.
YES, NO, SKIPPED = ("yes", "1", "true"), ("no", "0", "false"), ("", "skip", "none")
_DRAWN = "random"

#: The query, the claim and the passage of a verdict.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a passage by itself supports a claim, as the judge says, with the texts that it read."""

    supported: bool
    question: str
    passage: str

    def fingerprint(self, claim: str) -> str:
        """16 hexadecimal digits that change if one of the texts changes."""
        texts = "\0".join((self.question, claim, self.passage))
        return blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


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
    if isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1:
        raise InputError(f"the number of pairs of a sheet must be a whole number ≥ 1, got {pairs!r}")
    verdicts = verdicts_of({name: run.samples for name, run in report.runs.items()})
    if not verdicts:
        raise InputError("there is no claim to draw: a sheet needs the check recall or groundedness, and its answers")
    keys = sorted(verdicts)
    return [_row(key, verdicts[key]) for key in Random(seed).sample(keys, min(pairs, len(keys)))]


def _row(key: Key, verdict: Verdict) -> dict[str, str]:
    query, claim, passage = key
    return {
        "question": verdict.question,
        "claim": claim,
        "passage": verdict.passage,
        "verdict": "",
        "note": "",
        "query_id": query,
        "passage_id": passage,
        "fingerprint": verdict.fingerprint(claim),
        "drawn": _DRAWN,
    }


@dataclass(frozen=True, slots=True)
class PeoplesVerdict:
    """A person's verdict.

    Attributes
    ----------
    where : str
        Its row, for errors.
    fingerprint : str
        That of the texts which the person read; empty if it is not known.
    drawn : bool
        Whether the tool drew the pair.
    """

    where: str
    supported: bool
    fingerprint: str
    drawn: bool


@dataclass(frozen=True, slots=True)
class PeoplesVerdicts:
    """People's verdicts by query, claim and passage."""

    source: str
    by_pair: Mapping[Key, PeoplesVerdict]

    @classmethod
    def read(cls, source: Any) -> PeoplesVerdicts:
        """From a file, a frame or records with `query_id`, `claim`, `passage_id` and `verdict`.

        Raises
        ------
        InputError
            If a column is missing, a verdict is neither yes nor no, or two verdicts of a pair differ.
        """
        name = str(source) if is_path(source) else "human"
        found: dict[Key, PeoplesVerdict] = {}
        for where, row in rows_of(source, name):
            given = _verdict_of(row, where)
            if given is None:
                continue
            key = (
                checked_id(_cell(row, ("query_id", *COLUMNS["query"]), "query", where), where, "query"),
                _cell(row, ("claim",), "claim", where),
                checked_id(_cell(row, ("passage_id", *COLUMNS["passage"]), "passage", where), where, "passage"),
            )
            before = found.get(key)
            if before is not None and before.supported != given:
                raise InputError(
                    f"{where}: query {key[0]!r}, passage {key[2]!r}: another verdict on the same claim is in "
                    f"{before.where}; settle it, and keep one row"
                )
            drawn = str(row.get("drawn") or "").strip() == _DRAWN
            found[key] = PeoplesVerdict(where, given, str(row.get("fingerprint") or ""), drawn)
        if not found:
            raise InputError(f"{name}: no verdict is filled in; write yes or no into the column verdict")
        return cls(name, found)


def _cell(row: Mapping[str, Any], names: Sequence[str], what: str, where: str) -> str:
    return without_apostrophe(str(row[find_column(list(row), what, where, names)]))


def _verdict_of(row: Mapping[str, Any], where: str) -> bool | None:
    """The verdict of a row; None if it is not filled in, or skipped."""
    cell = row[find_column(list(row), "verdict", where, ("verdict",))]
    text = "" if cell is None or cell != cell else str(cell).strip().casefold()
    if text in SKIPPED:
        return None
    if text not in (*YES, *NO):
        raise InputError(f"{where}: the verdict must be yes or no, or skip, got {str(cell)!r}")
    return text in YES


def compared_with_people(
    runs: Mapping[str, Sequence[ClaimCheck]],
    judge: str,
    people: PeoplesVerdicts | None,
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
    shared = {key: given for key, given in people.by_pair.items() if key in verdicts}
    if not shared:
        raise InputError(
            f"{people.source}: none of {counted(len(people.by_pair), 'verdict')} is about a claim and a passage of "
            f"this check; it has queries {examples(key[0] for key in people.by_pair)}, and claims must be those that "
            f"this judge made of the answers: draw the sheet with this judge and store"
        )
    same = {key: given for key, given in shared.items() if given.fingerprint in ("", verdicts[key].fingerprint(key[1]))}
    notes = _notes(people, len(people.by_pair) - len(shared), len(shared) - len(same))
    found: Agreement | None = None
    if same:
        sampling = Bootstrap(bootstrap.resamples, bootstrap.seed, bootstrap.level, clusters=bootstrap.clusters)
        people_say, judge_says = (
            [int(each.supported) for each in same.values()],
            [int(verdicts[k].supported) for k in same],
        )
        queries = [query for query, _, _ in same]
        found = agreement(people_say, judge_says, queries, grades=(0, 1), bootstrap=sampling)
    drawn = sum(given.drawn for given in same.values())
    counts = {name: count for name, count in (("claims", drawn), ("", len(same) - drawn)) if count}
    return known.with_people(found, counts, calibrated=False), found, notes


def _notes(people: PeoplesVerdicts, unknown: int, outdated: int) -> tuple[str, ...]:
    notes = []
    if unknown:
        what = "is about no claim and passage" if unknown == 1 else "are about no claims and passages"
        notes.append(f"{counted(unknown, 'verdict')} of {people.source} {what} of this check")
    if outdated:
        what = "is about a text that has changed since" if outdated == 1 else "are about texts that have changed since"
        notes.append(f"{counted(outdated, 'verdict')} of {people.source} {what}, and left out")
    return tuple(notes)

"""The words of a passage, as a fast test of which signs it can have at all.

The patterns of the flag cost much more than a look at the set of words, and most passages cannot have any sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEPARATORS = bytes(c for c in range(128) if not chr(c).isalnum())
_FOLDED = bytes.maketrans(
    _SEPARATORS + bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(0xC0, 0xDF)),
    b" " * len(_SEPARATORS) + bytes(range(ord("a"), ord("z") + 1)) + bytes(range(0xE0, 0xFF)),
)


def _set(text: str) -> frozenset[bytes]:
    return frozenset(text.encode("latin-1").split())


_IGNORE = _set("ignore disregard forget override bypass aside heed overlook nevermind mind dismiss")
_NOT = _set("stop don not never")
_FOLLOW = _set("follow following apply applying obey consider listen use using heed")
_RULES = _set(
    "instructions instruction prompt prompts guidelines criteria directions directives orders rules rubric constraints "
    "guidance requirements everything told above task description scale question"
)
_INSTRUCTIONS = _set("instructions prompt guidelines criteria directions directives orders rules rubric")
_VOID = _set("updated changed cancelled canceled outdated void over obsolete replaced superseded revoked invalid")
_YOUR = _set("your you grading scoring")
_NEW = _set("new real actual only next")
_TASK = _set("task instructions instruction rules job goal order orders")
_JUDGE = _set(
    "ai llm llms gpt chatgpt judge judges grader graders evaluator evaluators rater raters assessor assessors "
    "annotator "
    "annotators bot bots"
)
_LIKE_A_JUDGE = _set("model models assistant assistants reviewer reviewers")
_CALL = _set("dear attention hey hello notice message memo reminder comply")
_ROLE = _set("pretend imagine act play behave character you")
_REWARD = _set("tip punished reward rewarded job fired")
_TEXT = _set(
    "passage passages text texts document documents paragraph paragraphs article articles page pages snippet snippets "
    "excerpt excerpts chunk chunks content contents file files website source submission submissions response "
    "responses paper papers "
    "entry entries item items"
)
_FIRST, _RANKED = _set("first most"), _set("rank ranked")
_TOP = _set("5 five fives largest highest maximum maximal max best full perfect perfectly 10 decisive relevant top")
_GRADE = _set(
    "grade grades graded score scores scored rate rates rated rating mark marks marked points label labels "
    "labelled rank "
    "hand approve go proceed begin verdict levels level ranked judged assigned just say deserves deserve merits "
    "merit worth give assign award output answer reply respond print write choose pick "
    "select enter put set treat consider record say relevance receive receives value"
)
_YOU, _VOIDED = _set("you"), _set("obey dan identity")
_GRADE_NOUN = _set("grade grades score verdict rating rubric edarg label relevance")
_NUMBER = _set("5 five fives")
_ROLE_LINES = (
    "system:",
    "<system>",
    "assistant:",
    "prompt:",
    "message:",
    "model:",
    "developer:",
    "note:",
    "###",
    "system\n",
)
_GRADE_LINES = (
    "grade:",
    "score:",
    "verdict:",
    "rating:",
    "grade is",
    "score is",
    'grade"',
    'score"',
    "grade'",
    "grade of",
)
_RUBRIC = (
    "decisive evidence", "of a correct answer", "answers the question", "part of the answer", "states the answer",
    "whole answer", "fully relevant", "highly relevant", "perfectly relevant", "answers the query",
)  # fmt: skip
_ENDS = ("end of", "end passage", "end document", "end question", "</")
_PASSAGE = _set("passage document context input text question article")
_NAMED = _PASSAGE | _set(
    "system assistant prompt message model developer note instruction response grade score verdict rating "
    "decisive answer "
    "answers relevant"
)
_THIS_TEXT = re.compile(
    r"(?:this|these|my|our|above|preceding|following|current|all|every|each) (?:\w+ )?(?:passage|text|document"
    r"|paragraph|article"
    r"|page|snippet|excerpt|chunk|content|file|website|source|submission|response|paper|entry|item)|(?:passage"
    r"|text|document|article|page)s? (?:above|is|of this|from this)",
    re.IGNORECASE,
)
_ROT13 = _set("vtaber qvfertneq tenqr fpber cnffntr vafgehpgvbaf vafgehpgvba ehoevp rinyhngbe rinyhngvba qbphzrag")
_LEET_KEYS = _set(
    "ignore disregard forget grade score rubric instructions instruction passage previous prompt judge document rate"
)
_LEET = bytes.maketrans(b"0134578", b"oieastb")
_LATIN_ORDERS = _set(
    "ignoriere ignorieren vergiss vergessen missachte beachte beachten übergehe lass gib geben bewerte bewerten "
    "benote vergib "
    "vergeben setze antworte wähle stufe oublie oubliez ignorez néglige négligez suis suivez tiens tenez donne donnez "
    "attribue attribuez notez évalue évaluez mets mettez accorde accordez réponds répondez choisis choisissez "
    "ignore ignora "
    "ignoren ignoran olvida olvide olviden omite omita sigas siga tengas tenga apliques aplique hagas haga da "
    "dale dé asigna "
    "asigne otorga otorgue califica califique calificar puntúa puntúe evalúa evalúe pon ponle responde elige ignorate "
    "dimentica dimenticate trascura trascurate seguire considerare dai date assegna assegnate attribuisci valuta "
    "valutate "
    "metti rispondi scegli ignorem esqueça esquece desconsidere desconsidera sigas considere dê dá atribua "
    "atribui avalie "
    "avalia classifique coloque responda escolha pontue "
    "negeer vergeet ignoreer geef beoordeel waardeer zignoruj zignorujcie ignoruj zapomnij"
)
_KNOWN = frozenset().union(
    *(_IGNORE, _NOT, _FOLLOW, _RULES, _INSTRUCTIONS, _VOID, _YOUR, _NEW, _TASK, _JUDGE, _LIKE_A_JUDGE, _CALL, _ROLE),
    *(
        _REWARD,
        _TEXT,
        _TOP,
        _FIRST,
        _RANKED,
        _YOU,
        _VOIDED,
        _GRADE,
        _GRADE_NOUN,
        _NUMBER,
        _NAMED,
        _ROT13,
        _LATIN_ORDERS,
    ),
)
#: Hardly a word of prose has so many letters, or so many letters and digits.
_LONGER, _LONG = 24, 18
_SINGLES = bytes((1,)) * 7


@dataclass(frozen=True, slots=True)
class Possible:
    """Which kinds of signs a text can have by its words."""

    english: bool
    another_language: bool
    binary: bool
    rot13: bool
    leet: bool
    spaced: bool


def possible(text: str) -> Possible:
    """Which kinds of signs a text can have by its words; characters outside Latin-1 count as separators."""
    every = text.encode("latin-1", "replace").translate(_FOLDED).split()
    words = set(every)
    known = words & _KNOWN
    mixed = [word for word in words if not word.isalpha()]
    longest = max(map(len, words), default=0)
    return Possible(
        english=bool(known) and _english(text, known),
        another_language=not known.isdisjoint(_LATIN_ORDERS),
        binary=longest >= _LONGER or (longest >= _LONG and any(len(word) >= _LONG for word in mixed)),
        rot13=not known.isdisjoint(_ROT13),
        leet=bool(mixed) and any(word.translate(_LEET) in _LEET_KEYS for word in mixed),
        spaced=_SINGLES in (bytes(map(len, every)) if longest < 256 else bytes(len(word) & 255 for word in every)),
    )


def _english(text: str, words: set[bytes]) -> bool:
    def has(*groups: frozenset[bytes]) -> bool:
        return not any(words.isdisjoint(group) for group in groups)

    if (
        has(_JUDGE)
        or has(_IGNORE, _RULES)
        or has(_NOT, _FOLLOW, _INSTRUCTIONS)
        or has(_VOID, _INSTRUCTIONS, _YOUR)
        or has(_TOP, _ROLE, _GRADE)
        or has(_TOP, _REWARD)
        or has(_LIKE_A_JUDGE, _CALL)
        or has(_NEW, _TASK, _TOP)
        or has(_NUMBER, _GRADE_NOUN)
        or has(_FIRST, _RANKED, _TEXT)
        or has(_YOU, _VOIDED)
    ):
        return True
    if has(_TOP, _TEXT, _GRADE) and _THIS_TEXT.search(text):
        return True
    if words.isdisjoint(_NAMED):
        return False
    lowered = text.lower()
    return (
        any(line in lowered for line in _ROLE_LINES)
        or (has(_TOP) and any(line in lowered for line in _GRADE_LINES))
        or any(phrase in lowered for phrase in _RUBRIC)
        or (has(_PASSAGE) and any(end in lowered for end in _ENDS))
    )

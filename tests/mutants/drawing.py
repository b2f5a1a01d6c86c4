"""The mutants that cosmic-ray's operators can make of the formulas, and a random draw of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

#: What is mutated, from the root of the checkout.
FOLDERS = ("rag_selectivity/measures", "rag_selectivity/statistics", "rag_selectivity/join")


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the `occurrence`-th place where the operator can change it."""

    path: str
    operator: str
    occurrence: int
    #: Where it changes the file: line and column, from and to.
    start: tuple[int, int]
    end: tuple[int, int]

    @property
    def key(self) -> str:
        """What tells it from all others of the same sources."""
        return f"{self.path}:{self.start[0]}:{self.start[1]} {self.operator} {self.occurrence}"


def sources(root: Path) -> list[str]:
    """The files that are mutated."""
    return sorted(str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def possible_mutants(root: Path) -> tuple[list[Mutant], int]:
    """All mutants, and how many were left out because no figure can depend on what they change."""
    kept: list[Mutant] = []
    left_out = 0
    for path in sources(root):
        source = (root / path).read_text(encoding="utf-8")
        spans = list(_without_effect(ast.parse(source)))
        for mutant in _of_file(path, source):
            if any(start <= mutant.start and mutant.end <= end for start, end in spans):
                left_out += 1
            else:
                kept.append(mutant)
    return kept, left_out


def draw(root: Path, mutants: Sequence[Mutant], count: int, seed: int) -> list[tuple[Mutant, str]]:
    """So many mutants in random order, each as likely as any other, with the source that each makes.

    What no longer compiles (a star of a signature, replaced as if it multiplied) is no mutant: the next one takes its
    place.
    """
    drawn: list[tuple[Mutant, str]] = []
    for mutant in Random(seed).sample(mutants, len(mutants)):
        if len(drawn) == count:
            break
        source = mutated_source(root, mutant)
        try:
            compile(source, mutant.path, "exec")
        except SyntaxError:
            continue
        drawn.append((mutant, source))
    return drawn


def mutated_source(root: Path, mutant: Mutant) -> str:
    """The whole file, with the change in it."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (root / mutant.path).read_text(encoding="utf-8")
    changed: str | None = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    if changed is None or changed == source:
        raise RuntimeError(f"{mutant.key} changes nothing")
    return changed


def _of_file(path: str, source: str) -> Iterator[Mutant]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        operator_class = get_operator(name)
        # `no_op` changes nothing, and an operator with arguments needs the names of variables.
        if name.endswith("/NoOp") or operator_class.arguments():
            continue
        operator = operator_class()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            yield Mutant(path, name, occurrence, start, end)


def _without_effect(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The parts of a file that no figure can depend on.

    With `from __future__ import annotations` no run evaluates an annotation. The star of a signature says how arguments
    are given, and `strict=` of `zip` whether a mistake of ours is noticed.
    """
    for node in ast.walk(tree):
        parts: list[ast.expr | ast.stmt | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
            if any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list):
                parts.append(node)
            if node.args.kwonlyargs and node.args.vararg is None:
                yield _star(node)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            parts += [node.test, *node.body]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            parts += [keyword.value for keyword in node.keywords if keyword.arg == "strict"]
        for part in parts:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)


def _star(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the star of a signature stands: between what is given by place and what is given by name."""
    given: list[ast.arg | ast.expr] = [*node.args.posonlyargs, *node.args.args, *node.args.defaults]
    first = max(((each.end_lineno or 0, each.end_col_offset or 0) for each in given), default=(node.lineno, 0))
    named = node.args.kwonlyargs[0]
    return first, (named.lineno, named.col_offset)

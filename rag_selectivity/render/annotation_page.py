"""A task of annotation as one HTML page that works without a network."""

import json
import re

from rag_selectivity.people.answers import GRADES
from rag_selectivity.people.task import FORMAT, VERSION, AnnotationTask
from rag_selectivity.render.templates import environment, page_policy, script_of, style_of


def annotation_page(task: AnnotationTask) -> str:
    """The page of a task: questions, passages and the rubric, and nothing that says how the pairs were chosen.

    Its policy allows the page's own style and script, by their hashes, and nothing else.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    template = environment("a page of annotation").get_template("annotation.html.j2")
    style, script = style_of("colours", "base", "annotation"), script_of("explorer/dom", "explorer/words", "annotation")
    page = template.render(
        style=style,
        script=script,
        policy=page_policy(styles=[style], scripts=[script], style_attributes=False),
        annotator=task.annotator,
        count=len(task.items),
        levels=[(grade, *_name_and_meaning(task.rubric.levels[grade])) for grade in GRADES],
        instructions=[each for each in task.rubric.instructions.split("\n\n") if each.strip()],
        data=_as_data(task),
    )
    return str(page)


def _as_data(task: AnnotationTask) -> str:
    """The task as JSON that no text in it can break out of."""
    numbers: dict[str, int] = {}
    items = []
    for item in task.items:
        question = numbers.setdefault(item.question, len(numbers))
        items.append([question, item.text, item.fingerprints[1]])
    fingerprints = {item.question: item.fingerprints[0] for item in task.items}
    data = {
        "format": FORMAT,
        "version": VERSION,
        "task": task.id,
        "annotator": task.annotator,
        "rubric": task.rubric.version,
        "file": task.file_name,
        "grades": list(GRADES),
        "queries": [[question, fingerprints[question]] for question in numbers],
        "items": items,
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _name_and_meaning(level: str) -> tuple[str, str]:
    """The first words of a level, up to a colon, and the rest.

    >>> _name_and_meaning("Useful: holds a part.")
    ('Useful', 'Holds a part.')
    >>> _name_and_meaning("it answers")
    ('it answers', '')
    """
    found = re.fullmatch(r"([^:\n]{1,40}):\s+(.+)", level.strip(), re.DOTALL)
    if found is None:
        return level.strip(), ""
    return found[1], found[2][0].upper() + found[2][1:]

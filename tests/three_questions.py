"""Three questions over six passages, with grades, for the tests of adapters."""

TEXTS = {
    "n1": "Paris is the capital of France and its largest city",
    "n2": "France has borders with Spain and Italy",
    "n3": "Berlin is the capital of Germany",
    "n4": "the Rhine flows through Germany to the sea",
    "n5": "bread is baked from flour",
    "n6": "a capital letter begins a sentence",
}
QUERIES = {"q1": "capital of France", "q2": "capital of Germany", "q3": "how is bread baked"}
GRADES = {"q1": {"n1": 5, "n2": 3, "n6": 1, "n3": 2}, "q2": {"n3": 5, "n4": 3, "n6": 1}, "q3": {"n5": 5, "n6": 1}}
BY_TEXT = {QUERIES[q]: row for q, row in GRADES.items()}

"""Result: the base of all results, with their conversions to data, rows, tables, DataFrames, pages and files."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from rag_selectivity.errors import InputError, needing
from rag_selectivity.results.plain import Plain, flat
from rag_selectivity.tables.writing import Content, json_text, write_files

#: How results are shown, by the name of the view: what draws them fills it when it is imported.
VIEWS: dict[str, Callable[..., str]] = {}
#: What writes the formats that are not JSON, by the suffix of their files.
_WAYS = {".html": "to_html()", ".md": "to_markdown()", ".tex": "to_latex()", ".csv": "to_pandas().to_csv()"}


def json_file(path: str | Path) -> Path:
    """The path of a file for JSON; an InputError for one whose suffix promises another format."""
    target = Path(path)
    if way := _WAYS.get(target.suffix.lower()):
        raise InputError(f"{target}: save() writes JSON, into a file such as {target.stem}.json; {way} gives the other")
    return target


class Result(Plain):
    """A result as a value: its fields are its data, and `rag_selectivity.render` defines its tables."""

    #: The format and the version of its JSON.
    schema: ClassVar[str]

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        super().__init_subclass__(kw_only=kw_only, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; an undefined figure is None."""
        return {"schema": self.schema, **Plain.to_dict(self)}

    def table(self) -> Iterable[Any]:
        """What the rows are made of: the result itself, unless it has several."""
        return (self,)

    def to_rows(self) -> list[dict[str, Any]]:
        """As flat rows, for CSV and DataFrames; what no row has is left out."""
        return [each if isinstance(each, dict) else flat(each) for each in self.table()]

    def to_text(self, *, ruled: bool = True, details: bool = False) -> str:
        """Text for a terminal; of a report and a comparison the first screen, with `details` all of it.

        `ruled=False` leaves out the lines below the table heads.
        """
        return self._view("text", ruled=ruled, details=details)

    def to_markdown(self, *, details: bool = False) -> str:
        """As `to_text`, in Markdown, for example for a pull request."""
        return self._view("markdown", details=details)

    def details(self) -> str:
        """All of it as text: every table, interval and note."""
        return self.to_text(details=True)

    def to_latex(self) -> str:
        """LaTeX tables for a paper; they need the LaTeX package booktabs.

        Raises
        ------
        InputError
            If results of this kind have no LaTeX table.
        """
        return self._view("latex")

    def to_html(self, **options: Any) -> str:
        """One HTML file that loads nothing; of a report with the options of `rag_selectivity.render.html.to_html`.

        Raises
        ------
        MissingExtraError
            If Jinja2 is not installed (the extra `report`).
        """
        return self._view("page", **options)

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text; an undefined figure is null."""
        if isinstance(indent, str | Path):
            raise InputError(f"to_json() gives the text; save({str(indent)!r}) writes it to a file")
        return json_text(self.to_dict(), indent)

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        with needing("pandas", "all", f"{type(self).__name__}.to_pandas"):
            import pandas
        return pandas.DataFrame(self.to_rows())

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, completely or not at all; `--against` reads that of a report or a comparison.

        Their figures by query of a run with more than 10,000 queries stand in a Parquet file beside it, which is named
        in the JSON with its digest. Without Polars (the extra `files`), and in a pipe, the JSON holds them too.

        Raises
        ------
        InputError
            For the suffix of another format: `to_html`, `to_markdown`, `to_latex` and `to_pandas` give these.
        """
        write_files(self.files_of(json_file(path)))

    def files_of(self, target: Path) -> dict[str | Path, Content]:
        """What `save` writes into which file."""
        return {target: self.to_json() + "\n"}

    def _view(self, name: str, **options: Any) -> str:
        import_module("rag_selectivity.render.views")
        return VIEWS[name](self, **options)

    def __str__(self) -> str:
        """What an interactive session shows too: the tables, as for a DataFrame."""
        return self.to_text()

    __repr__ = __str__

"""Reading a store: in one pass, while others write, from files that cannot be changed, and with a better judge."""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.origins import label_rows
from rag_selectivity.grading.store import Draw, HumanLabel, Label, Origin, Settings, Store, digest, records
from tests.test_store import put

pytestmark = pytest.mark.inside


def many(path: Path, count: int, judges: int = 1) -> None:
    """A store in which each judge graded so many pairs, ten a query; every seventh failed."""
    with Store(path) as store:
        names = [(f"q{i // 10}", f"d{i}") for i in range(count)]
        hashes = [(digest(q), digest(d)) for q, d in names]
        store.add_texts((*name, *of) for name, of in zip(names, hashes, strict=True))
        store.put_origins((q, d, Origin(Draw("pool", "bm25", 10), i % 10 + 1)) for i, (q, d) in enumerate(names))
        store.put_human_labels(HumanLabel(q, d, "ada", 3) for q, d in names[::11])
        for judge in range(judges):
            number = store.settings_id(Settings("grade", f"m{judge}", {}))
            store.put(
                [Label((number, *of, 0), i % 5 + 1 if i % 7 else None, served_model="m") for i, of in enumerate(hashes)]
            ).result()


# -- while others write ---------------------------------------------------------------------------


def test_a_reader_sees_whole_labels_while_another_store_writes(tmp_path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as writing, Store(path, read_only=True) as store:
        number = writing.settings_id(Settings("grade", "m", {}))
        hashes = [digest(str(i)) for i in range(3000)]
        writing.add_texts(("q", f"d{i}", digest("q"), hash_) for i, hash_ in enumerate(hashes))
        seen = [0]
        for start in range(0, 3000, 300):
            labels = [Label((number, digest("q"), hash_, 0), 4) for hash_ in hashes[start : start + 300]]
            future = writing.put(labels)
            seen.append(sum(1 for _ in label_rows(store)))
            future.result()
            assert sum(1 for _ in label_rows(store)) == start + 300
        assert seen == sorted(seen)
        # A reader that stops half way holds up nobody, and sees what was there when it began.
        slow = label_rows(store)
        assert next(slow)[2] == 4
        writing.put([Label((number, digest("q"), b"more", 0), 4)]).result()
        assert sum(1 for _ in slow) == 2999


def test_a_reader_knows_no_label_of_a_judge_that_came_after_it(tmp_path, monkeypatch) -> None:
    names_of, late = records.names_of, []

    def while_another_grades(*asked):
        names = names_of(*asked)
        if not late:
            late.append(store.settings_id(Settings("grade", "late", {})))
            store.put([Label((late[0], digest("q"), digest("d"), 0), 5)]).result()
        return names

    with Store(tmp_path / "s.db") as store:
        store.add_texts([("q", "d", digest("q"), digest("d"))])
        store.put([Label((store.settings_id(Settings("grade", "m", {})), digest("q"), digest("d"), 0), 2)]).result()
        monkeypatch.setattr(records, "names_of", while_another_grades)
        assert [row["judge"] for row in store.judges()] == ["m"]
        assert [row["judge"] for row in store.judges()] == ["m", "late"]


def test_many_threads_share_a_store(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        wrong: list[object] = []

        def work(place: int) -> None:
            try:
                number = store.settings_id(Settings("grade", f"m{place % 3}", {}))
                for i in range(20):
                    name = f"d{place}-{i}"
                    store.add_texts([("q", name, digest("q"), digest(name))])
                    key = (number, digest("q"), digest(name), 0)
                    store.put([Label(key, 2)]).result()
                    assert {row[0]: row[1] for row in store.labels_of_query("q", number)}[name] == 2
                    store.put_human_labels([HumanLabel("q", name, "ada", 5)])
                    assert ("q", name, 5) in set(label_rows(store))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert sum(judge["graded"] for judge in store.judges()) == 160
        assert store.people() == {"ada": 160}


# -- files that cannot be changed -----------------------------------------------------------------


@contextmanager
def nobody() -> Iterator[None]:
    """Run the block as a user who owns nothing, where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    import_module("rag_selectivity.grading.origins")  # nobody may be unable to read the checkout
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def lock_up(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o755 if file.is_dir() else 0o444)
    folder.chmod(0o555)


def test_a_store_in_a_read_only_folder_is_read_and_not_written(folder) -> None:
    with Store(folder / "s.db") as store:
        put(store, "m", {("q", "a"): 4})
    lock_up(folder)
    with nobody():
        assert rs.read_qrels(folder / "s.db").to_dict() == {"q": {"a": 4}}
        with pytest.raises(rs.InputError, match=r"s\.db: the file or its folder is read-only; copy the file"):
            Store(folder / "s.db")
        with pytest.raises(rs.InputError, match=r"new\.db: the file cannot be opened or created \(Permission denied"):
            Store(folder / "new.db")

"""The rich history and its site, made once for all processes that run tests."""

import os
from pathlib import Path

import pytest

from build.lock import held
from build.progress import Silent
from history.changes import repository
from history.open import open_reader, open_store
from report.writing.site import SiteOptions, write_site
from runners.reporting.bisects import read_bisects
from tests.history.both_stores import target as target
from tests.history.conftest import server_url as server_url
from tests.report.rich import NIGHTS, RichHistory, record_bisect


@pytest.fixture(scope="session")
def of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes that run tests."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def rich(of_all: Path) -> Path:
    """The path of the rich history, which nobody may change."""
    path = of_all / "rich.db"
    with held(of_all / "rich.lock"):
        if not path.exists():
            made = of_all / "rich-part.db"
            written = RichHistory(made)
            written.write(NIGHTS)
            with open_reader(made) as history, history.database.reading() as connection:
                fingerprint = repository.load(connection)[0].fingerprint
            record_bisect(made, fingerprint, written.moment)
            # Without this a reader of the renamed file would miss its write-ahead log.
            with open_store(made) as store, store.database.reading() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            made.rename(path)
    return path


@pytest.fixture(scope="session")
def site(rich: Path, of_all: Path) -> Path:
    """The site of the rich history, which nobody may change."""
    folder = of_all / "rich-site"
    with held(of_all / "rich-site.lock"):
        if not folder.exists():
            made = of_all / "rich-site-part"
            write(rich, made)
            made.rename(folder)
    return folder


def write(history: Path, folder: Path, *, is_public: bool = False) -> int:
    """Write the site of a history; return how many files were written."""
    with open_store(history) as store:
        options = SiteOptions(folder, is_public, bisects=read_bisects(store))
        return write_site(store, options, Silent()).changed

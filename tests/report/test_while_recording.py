"""A site that is written while nights are recorded shows the history as it was when it began."""

from pathlib import Path
from typing import Any

import pytest

from build.progress import Silent
from history.open import open_store
from report.values.catalog import Catalog, read_catalog
from report.writing import site
from tests.history.conftest import Target
from tests.history.handmade import NIGHT
from tests.history.watched import Nights, dated


def test_a_night_is_recorded_while_the_site_is_written(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after its sessions are known, so that whatever is read later could see it."""
    with dated(target, Nights) as nights:
        nights.more(3)
        alone = written(target, tmp_path / "alone")

        def read_and_record(*of: Any, **options: Any) -> Catalog:
            catalog = read_catalog(*of, **options)
            nights.more(1)
            return catalog

        with monkeypatch.context() as patched:
            patched.setattr(site, "read_catalog", read_and_record)
            assert written(target, tmp_path / "beside") == alone
        renewed = written(target, tmp_path / "beside")
        assert renewed.keys() - alone.keys() >= {"sessions/night-3.html"}


def written(target: Target, folder: Path) -> dict[str, str]:
    """Write or renew a site; return its files by their paths."""
    with open_store(target) as store:
        site.write_site(store, site.SiteOptions(folder), Silent(), clock=lambda: NIGHT)
    files = (path for path in folder.rglob("*") if path.suffix in (".html", ".js"))
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}

"""What leaves the house in a public site: nothing that names a host, a path or a command."""

from pathlib import Path

from report.values.clearance import WITHHELD, Clearance
from tests.report.conftest import write
from tests.report.rich import BOXES

SECRETS = (
    "/srv/secret",
    "plan.toml",
    "backup.sh",
    "/somewhere/postgres.git",
    *(f">{box}<" for box in BOXES),
    "db1n0",
)


def test_a_public_site_names_no_host_path_or_command(rich: Path, tmp_path: Path, site: Path) -> None:
    inside = "".join(
        path.read_text(encoding="utf-8") for path in site.rglob("*") if path.suffix in (".html", ".js")
    )
    assert all(secret in inside for secret in SECRETS[:-1] if secret != "plan.toml")
    folder = tmp_path / "public"
    write(rich, folder, is_public=True)
    outside = [path for path in folder.rglob("*") if path.suffix in (".html", ".js", ".json")]
    leaks = [
        (path.name, secret)
        for path in outside
        for secret in SECRETS[:-1]
        if secret in path.read_text(encoding="utf-8")
    ]
    assert leaks == []
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert "db1" not in index.replace("db1n", "").replace("db1cal", "")
    assert "Some details are left out" in index


def test_settings_are_allowed_by_name_or_shape() -> None:
    public = Clearance(is_public=True)
    kept = {"shared_buffers": "16GB", "jit": "off", "wal_level": "replica", "max_wal_size": "128"}
    assert {name: public.setting(name, value) for name, value in kept.items()} == kept
    for name, value in (
        ("listen_addresses", "db1.internal"),
        ("data_directory", "/srv"),
        ("log_line_prefix", "%m"),
    ):
        assert public.setting(name, value) == WITHHELD
        assert Clearance().setting(name, value) == value


def test_a_box_has_the_same_name_on_every_page_and_another_in_another_history() -> None:
    one, other = Clearance(True, "first"), Clearance(True, "second")
    assert one.box("db1") == Clearance(True, "first").box("db1")
    assert one.box("db1") not in ("db1", one.box("db2"), other.box("db1"))
    assert Clearance().box("db1") == "db1"

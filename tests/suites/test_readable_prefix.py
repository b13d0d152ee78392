"""An install prefix that the user of the servers cannot read."""

from pathlib import Path

import pytest

from suites.processes import ProcessError, require_readable


@pytest.mark.parametrize("closed", ["lib/module.so", "bin", "."])
def test_what_the_servers_cannot_read_is_named(server_folder: Path, closed: str) -> None:
    prefix = server_folder / "pg"
    for file in (prefix / "bin" / "postgres", prefix / "lib" / "module.so"):
        file.parent.mkdir(parents=True)
        file.touch(0o644)
    (prefix / "lib" / "gone.so").symlink_to("nowhere.so")
    for folder in (prefix, prefix / "bin", prefix / "lib"):
        folder.chmod(0o755)
    require_readable(prefix, ("bin", "lib", "share"))
    path = prefix / closed
    mode = path.stat().st_mode
    path.chmod(0)
    with pytest.raises(ProcessError, match="cannot read all of") as refused:
        require_readable(prefix, ("bin", "lib", "share"))
    assert str(prefix / closed).rstrip("/.") in refused.value.where
    assert "chmod" in refused.value.hint
    path.chmod(mode)

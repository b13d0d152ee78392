"""What the tests of an installation share: a plan, a box, and the command below a root of its own."""

from pathlib import Path

from runners.cli import main
from runners.installing.site import Site

PLAN = """
[boxes.db1]
label = "tidemark-db1"
budget_minutes = 100.0
[engines.postgres]
base = "postgres@17.11"
[[tasks]]
suite = "write-heavy"
profile = "smoke"
[alerts]
repository = "example/alerts"
"""


def install(plan: Path, root: Path, *words: str) -> int:
    return main(["runner", "install", "--plan", str(plan), "--box", "db1", "--root", str(root), *words])


def a_site(folder: Path, agent: Path | None = None) -> Site:
    plan = folder / "plan.toml"
    return Site("db1", "tidemark-db1", 100.0, None, plan, folder, folder / "home", "tidemark", agent=agent)

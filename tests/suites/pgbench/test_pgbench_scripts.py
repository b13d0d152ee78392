"""Scripts of pgbench as text: their commands, variables, weights, and what is wrong with them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.keys.pgbench_scripts import (
    MAX_WEIGHT,
    WeightedScript,
    located,
    parse_script,
    require_scripts,
    weighted_script,
)

SCRIPT = r"""-- nothing :here
\set a random(1, :n)
BEGIN;
SELECT 'x; :y', a::int,
  :b FROM t WHERE x = :a
\gset p_
UPDATE t SET a = 1 \; SELECT 2;
\set b \
   3 + :scale
DO $$ :z; BEGIN END; $$;
END;
"""


def test_commands_and_variables() -> None:
    script = parse_script(SCRIPT)
    assert script.lines == [2, 3, 4, 7, 8, 10, 11]
    assert script.statements == 5
    assert script.used == [(2, "n"), (5, "b"), (5, "a"), (8, "scale")]
    assert script.sets == {"a", "b"}
    assert script.sets_columns
    assert not script.mistakes


@given(st.text(alphabet="\\ab :;'\"$-/*\n(1"))
def test_any_text_is_parsed(text: str) -> None:
    script = parse_script(text)
    assert script.lines == sorted(script.lines)
    assert 0 <= script.statements <= len(script.lines)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.sql", WeightedScript("a.sql", 1)),
        ("a.sql@9", WeightedScript("a.sql", 9)),
        ("a@b.sql@2", WeightedScript("a@b.sql", 2)),
    ],
)
def test_weights(text: str, wanted: WeightedScript) -> None:
    assert weighted_script(text) == wanted


@pytest.mark.parametrize(
    "text", ["a.sql@", "a.sql@0", "a.sql@x", "a.sql@-1", f"a.sql@{MAX_WEIGHT + 1}", "@3"]
)
def test_a_weight_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be FILE@WEIGHT with a weight from 1 to 1000000"):
        weighted_script(text)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["\\set a 1\nSELECT\n  :aid;\n"], "0.sql, line 3: the variable :aid is never set"),
        (["SELECT 1;\n\\sett a 1\n"], "0.sql, line 2: pgbench has no command \\sett"),
        (["\\set a 1\n"], "0.sql: it has no SQL statement"),
        (["SELECT 1;", "\\set a :b\nSELECT :a;"], "1.sql, line 1: the variable :b is never set"),
    ],
)
def test_mistakes_are_named_with_file_and_line(tmp_path: Path, texts: list[str], said: str) -> None:
    names = [f"{number}.sql" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"sql") as caught:
        require_scripts(tmp_path, names, ())
    assert str(caught.value).startswith(said)


def test_variables_that_something_else_sets(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT :client_id, :given, :other;")
    (tmp_path / "b.sql").write_text("\\set other 1\nSELECT :other;")
    (tmp_path / "c.sql").write_text("SELECT 1 AS x \\gset\nSELECT :x;")
    require_scripts(tmp_path, ["a.sql@3", "b.sql"], {"given"})
    require_scripts(tmp_path, ["c.sql"], ())


def test_what_pgbench_says_of_a_command_is_located(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;")
    (tmp_path / "b.sql").write_text(SCRIPT)
    said = "client 3 script 1 aborted in command 3 query 0: ERROR: no"
    assert list(located(said, tmp_path, ["a.sql", "b.sql@2"])) == [("b.sql", 7, "no")]
    said = "client 0 aborted in command 4 (set) of script 1; evaluation of meta-command failed"
    assert list(located(said, tmp_path, ["a.sql", "b.sql@2"])) == [
        ("b.sql", 8, "evaluation of meta-command failed")
    ]
    assert not list(located("could not connect", tmp_path, ["a.sql", "b.sql"]))

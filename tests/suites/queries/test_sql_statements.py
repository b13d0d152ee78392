"""Files of plain SQL: where statements begin and end, what they are, and what is no SQL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from suites.keys.sql_statements import require_statements, statements_in

FILE = """-- report; by month
SELECT 'a;b' AS "c;d", 1 -- ; not here
  FROM t; SELECT /* ; */ 2;

/* twice */ (SELECT 3);
"""


@pytest.mark.parametrize("engine", list(Engine))
def test_statements_have_the_line_at_which_they_begin(engine: Engine) -> None:
    found = statements_in(FILE, engine)
    assert [statement.line for statement in found] == [2, 3, 5]
    assert [statement.text.splitlines()[0] for statement in found] == [
        "SELECT 'a;b' AS \"c;d\", 1 -- ; not here",
        "SELECT /* ; */ 2",
        "(SELECT 3)",
    ]
    assert all(statement.is_explained and statement.reads_only for statement in found)


@pytest.mark.parametrize(
    ("engine", "text", "count"),
    [
        (Engine.POSTGRES, "SELECT $x$ ; $x$, E'\\';', '\\'; SELECT 2", 2),
        (Engine.POSTGRES, "SELECT 1 # 2; SELECT 5--;\n-3", 2),
        (Engine.MYSQL, "SELECT '\\';', \"x\\\";\", `a;b`; # ;\n SELECT 1 --1;", 2),
        (Engine.MARIADB, "SELECT 1--2; /*!50503 SET NAMES utf8mb4 */; /*M!100 SET x = 1 */; -- ;", 3),
        (Engine.MYSQL, "SELECT $$; SELECT $$", 2),
    ],
)
def test_each_engine_has_strings_and_comments_of_its_own(engine: Engine, text: str, count: int) -> None:
    assert len(statements_in(text, engine)) == count


@given(st.lists(st.sampled_from(["SELECT 1", "x ';' y", "-- c;\n", "/* ; */", ";", " ", "\n"]), max_size=12))
def test_nothing_is_lost_between_statements(parts: list[str]) -> None:
    text = "".join(parts)
    for engine in Engine:
        found = statements_in(text, engine)
        assert all(statement.text for statement in found)
        for statement in found:
            assert statement.text.splitlines()[0] in text.splitlines()[statement.line - 1]
        if "/*" not in text and "--" not in text:
            kept = "".join(statement.text for statement in found)
            assert "".join(kept.split()) == "".join(
                text.replace("';'", "'\0'").replace(";", "").replace("'\0'", "';'").split()
            )


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT 1 INTO OUTFILE 'x'", False),
        ("SELECT * FROM t FOR UPDATE", False),
        ("SELECT nextval('s')", False),
        ("WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x", False),
        ("CREATE TABLE t (id int)", False),
        ("SHOW TABLES", True),
    ],
)
def test_what_leaves_the_data_as_they_are(text: str, reads: bool) -> None:
    (statement,) = statements_in(text, Engine.POSTGRES)
    assert statement.reads_only is reads
    assert statement.is_explained is text.startswith(("SELECT", "WITH"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1;\n\\copy t from x\n", r"line 2: \\copy is no SQL"),
        ("DELIMITER ;;\nSELECT 1;", "line 1: DELIMITER is no SQL"),
        ("-- nothing\n;", "it has no SQL statement"),
    ],
)
def test_what_is_no_sql(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        require_statements(text, [Engine.MYSQL])

"""The first step in which two plans differ, in the words of three servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.plans.trees import difference, normalized

NESTED = """\
Aggregate  (cost=9.10..9.11 rows=1 width=32)
  ->  Nested Loop  (cost=0.29..9.00 rows=15 width=8)
        ->  Seq Scan on part p  (cost=0.00..5.00 rows=40 width=4)
              Filter: (p_size > 5)
        ->  Index Scan using lineitem_part on lineitem l  (cost=0.29..0.31 rows=1 width=12)
              Index Cond: (l_partkey = p.p_partkey)"""

HASHED = """\
Aggregate  (cost=9.10..9.11 rows=1 width=32)
  ->  Hash Join  (cost=0.29..9.00 rows=12000 width=8)
        Hash Cond: (p.p_partkey = l.l_partkey)
        ->  Seq Scan on part p  (cost=0.00..5.00 rows=40 width=4)
              Filter: (p_size > 5)
        ->  Hash  (cost=5.00..5.00 rows=60175 width=12)
              ->  Seq Scan on lineitem l  (cost=0.00..5.00 rows=60175 width=12)"""

MEMOIZED = """\
Nested Loop  (cost=1.0..2.0 rows=5 width=8)
  ->  Seq Scan on part  (cost=0.00..5.00 rows=40 width=4)
  ->  Memoize  (cost=0.3..0.4 rows=1 width=12)
        Cache Key: part.p_partkey
        ->  Index Scan using k on lineitem  (cost=0.29..0.31 rows=1 width=12)"""

PLAIN = """\
Nested Loop  (cost=1.0..2.0 rows=5 width=8)
  ->  Seq Scan on part  (cost=0.00..5.00 rows=40 width=4)
  ->  Index Scan using k on lineitem  (cost=0.29..0.31 rows=1 width=12)"""

MYSQL_HASHED = """\
-> Aggregate: sum(l.price)  (cost=12.3 rows=1)
    -> Inner hash join (l.partkey = p.id)  (cost=9 rows=1.2e+6)
        -> Table scan on l  (cost=3.1 rows=60000)
        -> Hash
            -> Table scan on p  (cost=0.4 rows=40)"""

MYSQL_NESTED = """\
-> Aggregate: sum(l.price)  (cost=12.3 rows=1)
    -> Nested loop inner join  (cost=9 rows=40)
        -> Table scan on p  (cost=0.4 rows=40)
        -> Index lookup on l using part (partkey=p.id)  (cost=0.25 rows=1)"""

MARIADB = "p: ALL by None; Using where (rows=40)\nl: ref by part (rows=1)"


@pytest.mark.parametrize(
    ("base", "contender", "text"),
    [
        (NESTED, HASHED, "Hash Join instead of Nested Loop at lineitem, 12,000 rows estimated, base 15"),
        (HASHED, NESTED, "Nested Loop instead of Hash Join at lineitem, 15 rows estimated, base 12,000"),
        (PLAIN, MEMOIZED, "with Memoize at lineitem"),
        (MEMOIZED, PLAIN, "without Memoize at lineitem"),
        (
            MYSQL_NESTED,
            MYSQL_HASHED,
            "Inner hash join instead of Nested loop inner join at p, 1,200,000 rows estimated, base 40",
        ),
        (
            MARIADB,
            MARIADB.replace("ref by part", "ALL by None"),
            "ALL by None instead of ref by part at l, 1 row estimated",
        ),
        (
            PLAIN,
            PLAIN.replace("using k on", "using other on"),
            "Index Scan using other on lineitem instead of Index Scan using k on lineitem, 1 row estimated",
        ),
        (
            NESTED,
            NESTED.replace("(p_size > 5)", "(p_size > 6)"),
            "another condition of Seq Scan on part p, 40 rows estimated",
        ),
        (f"{PLAIN}\n\n{PLAIN}", f"{PLAIN}\n\n{MEMOIZED}", "with Memoize at lineitem"),
    ],
)
def test_the_first_difference(base: str, contender: str, text: str) -> None:
    found = difference(*map(_stored, (base, contender)))
    assert found is not None
    assert found.text == text


def _stored(plans: str) -> str:
    return "\n\n".join(map(normalized, plans.split("\n\n")))


@pytest.mark.parametrize(
    ("base", "contender"),
    [
        (NESTED, NESTED.replace("rows=40", "rows=90")),
        (MYSQL_HASHED, MYSQL_HASHED.replace("rows=60000", "rows=61234")),
        (MARIADB, MARIADB.replace("rows=40", "rows=44")),
        ("Seq Scan on t\n  Filter: (a = $0)", "Seq Scan on t\n  Filter: (a = (InitPlan 1).col1)"),
    ],
)
def test_estimates_and_names_of_other_parts_are_no_difference(base: str, contender: str) -> None:
    assert difference(_stored(base), _stored(contender)) is None


def test_plans_of_older_sessions_have_no_rows() -> None:
    found = difference("Bitmap Heap Scan on t\n  ->  Bitmap Index Scan on k", "Index Scan using k on t")
    assert found is not None
    assert found.text == "Index Scan using k on t instead of Bitmap Heap Scan on t"


@given(st.text(alphabet="-> \n(rows=1)abc:", max_size=80), st.text(alphabet="-> \n(rows=1)abc:", max_size=80))
def test_any_text_is_a_plan(base: str, contender: str) -> None:
    assert difference(base, base) is None
    found = difference(base, contender)
    back = difference(contender, base)
    assert (found is None) == (back is None)
    if found is not None:
        assert found.text

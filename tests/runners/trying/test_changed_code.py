"""Which functions a try changes, and what is told when no step executes them."""

from pathlib import Path

import pytest

from build.version import Engine
from runners.cli import main
from runners.trying.answer import TryAnswer, markdown
from runners.trying.changed_code import changed_code, changed_in
from runners.trying.sides import sides_of
from tests.runners.nightly.pretended import Lab
from tests.runners.trying.test_trying import lab as lab
from tests.runners.trying.test_trying import tried

C = """
#include "server.h"
#define LIMIT 10 /* of rows,
                    in all */
static int copied = 0;
static void copy_rows(int rows);

/* copy_rows is called { by hand */
static void
copy_rows(int rows)
{
\tif (rows > '}')
\t\tprintf("}");
\tcopied += rows;
}

int
#ifdef WIDE
run_statement(long rows)
{
#else
run_statement(int rows)
{
#endif
\tcopy_rows(rows);
\treturn 0;
}
"""

CPP = """
namespace dd {
template <typename T>
class Item : public Base<T> {
 public:
  Item() : a_(1) { reset(); }
  int val_int() override { return a_; }
 private:
  int a_;
};
int Item<int>::fix(THD *thd) const {
  return thd->run([](int x) { return x; });
}
bool operator==(const Item<int> &a, const Item<int> &b) { return true; }
}  // namespace dd
"""


def names(old: str, new: str, path: str = "src/server.c") -> tuple[list[str], bool]:
    functions, is_outside = changed_in(path, old, new)
    return [function.name for function in functions], is_outside


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("copied += rows;", "copied += 2 * rows;", (["copy_rows"], False)),
        ('printf("}")', 'printf("x}")', (["copy_rows"], False)),
        ("\treturn 0;", "\treturn 1;", (["run_statement"], False)),
        ("/* of rows,", "/* of pages,", ([], False)),
        ("copied = 0", "copied = 1", ([], True)),
        ("LIMIT 10", "LIMIT 11", ([], True)),
        ("static void copy_rows(int rows);\n", "", ([], False)),
        ('#include "server.h"\n', "", ([], False)),
        ("\treturn 0;", "#define LATER 1\n\treturn 0;", (["run_statement"], True)),
        ("/* copy_rows is", "static void\nhelp(void)\n{\n\t;\n}\n\n/* copy_rows is", (["help"], False)),
        ("\tcopy_rows(rows);\n\treturn 0;\n}", "\tcopy_rows(rows);\n\treturn 0;\n}}", ([], True)),
    ],
)
def test_functions_are_told_from_what_is_outside_of_them(
    old: str, new: str, expected: tuple[list[str], bool]
) -> None:
    assert old in C
    assert names(C, C.replace(old, new)) == expected
    assert names(C, C.replace("\n", "\r\n")) == ([], False), "spaces at the end of lines are no change"


def test_methods_of_classes_and_files_in_other_languages() -> None:
    assert names(CPP, CPP.replace("return a_;", "return 2;"), "sql/item.cc") == (["val_int"], False)
    assert names(CPP, CPP.replace("return x;", "return 0;"), "sql/item.cc") == (["Item<int>::fix"], False)
    assert names(CPP, CPP.replace("return true", "return 0"), "sql/item.h") == (["operator=="], False)
    assert names(CPP, CPP.replace("int a_;", "long a_;"), "sql/item.h") == ([], True)
    assert names("a: b;", "a: c;", "src/gram.y") == ([], True)


def test_a_function_is_executed_where_its_caller_has_nothing_left_of_it() -> None:
    (copies,), _ = changed_in("src/server.c", C, C.replace("copied += rows;", "copied = 1;"))
    call = C[: C.index("\tcopy_rows(rows);")].count("\n") + 1
    begin = C[: C.index("static void\ncopy_rows")].count("\n") + 1
    assert copies.lines == {*range(begin, begin + 7), call}


def written(lab: Lab, text: str) -> str:
    """A commit with a source; the name of its version."""
    name = lab.commit()
    (lab.source / "copy.c").write_text(text)
    lab.git("add", "copy.c")
    lab.git("commit", "-q", "--amend", "-m", "work")
    lab.speeds[f"postgres@git:{lab.git('rev-parse', 'HEAD')[:12]}"] = lab.speeds.pop(name)
    return f"postgres@git:{lab.git('rev-parse', 'HEAD')[:12]}"


def patched(lab: Lab, tmp_path: Path, old: str, new: str) -> TryAnswer:
    """The answer to a patch of the source."""
    lab.git("checkout", "-q", "--", ".")
    (lab.source / "copy.c").write_text(C.replace(old, new))
    patch = tmp_path / "work.patch"
    patch.write_text(lab.git("diff") + "\n")
    lab.git("checkout", "-q", "--", ".")
    sides = sides_of([str(patch)], "master", Engine.POSTGRES, str(lab.source), lab.home)
    answer, page = tried(lab, sides)
    assert answer.reach.text.partition(" (")[0] in page
    return answer


@pytest.mark.deep("a whole command in a process of its own")
def test_no_difference_is_never_told_of_what_no_step_executes(lab: Lab, tmp_path: Path) -> None:
    written(lab, C)
    answer = patched(lab, tmp_path, "copied += rows;", "copied += 2 * rows;")
    assert answer.exit_code == 2
    assert answer.headline == (
        "Undecided. The function that this patch changes was not executed in these steps (copy_rows); "
        "suites that execute it: none counted here."
    )
    assert "No difference" not in markdown(answer, "page.html")
    # The same command does not count again, and knows it.
    passes = len(lab.passes)
    again = patched(lab, tmp_path, "copied += rows;", "copied += 2 * rows;")
    assert (again.headline, again.exit_code, len(lab.passes)) == (answer.headline, 2, passes)


def test_a_patch_of_documentation_is_neither_compiled_nor_measured(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(lab, C)
    for folder in ("doc", "src"):
        (lab.source / folder).mkdir()
        (lab.source / folder / "page.sgml").write_text("<para>old</para>\n")
    lab.git("add", ".")
    lab.git("commit", "-q", "-m", "pages")
    (lab.source / "doc/page.sgml").write_text("<para>new</para>\n")
    patch = tmp_path / "documents.patch"
    patch.write_text(lab.git("diff") + "\n")
    lab.git("checkout", "-q", "--", ".")
    assert main(["try", str(patch), "--against", "master", "--git", str(lab.source)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**No difference.** ")
    assert "no file that a server is made of differs; nothing was measured." in out
    assert not lab.passes


@pytest.mark.deep("a whole command in a process of its own")
def test_suites_that_were_counted_here_are_named(lab: Lab, tmp_path: Path) -> None:
    base = written(lab, C)
    lab.executed = {"run_statement"}
    lab.functions = {base: {"copy_rows": 9000}, f"{base}#try": {"copy_rows": 9000}}
    answer = patched(lab, tmp_path, "return 0;", "return 1;")
    assert answer.headline == "No difference in any step."
    assert answer.exit_code == 0
    both = C.replace("return 0;", "return 2;")
    lab.executed = set()
    written(lab, f"{C}\n")
    answer = patched(lab, tmp_path, C, both.replace("copied += rows;", "copied += 3 * rows;"))
    assert answer.headline == (
        "Undecided. None of the 2 functions that this patch changes was executed in these steps (copy_rows, "
        "run_statement); suites that execute them: write-heavy (delete, insert, update-index)."
    )


@pytest.mark.deep("a whole command in a process of its own")
def test_what_cannot_be_told_is_said_and_not_claimed(lab: Lab, tmp_path: Path) -> None:
    written(lab, C)
    answer = patched(lab, tmp_path, "LIMIT 10", "LIMIT 11")
    assert answer.headline == "No difference in any step."
    said = "whether these steps execute what is changed is not known: changed outside of functions: copy.c"
    assert said in markdown(answer, "page.html")
    both = C.replace("LIMIT 10", "LIMIT 12").replace("return 0", "return 3")
    written(lab, f"{C}\n")
    answer = patched(lab, tmp_path, C, both)
    assert answer.exit_code == 2
    assert answer.headline.endswith("(run_statement); of what else it changes that cannot be told: copy.c.")
    lab.counts = None
    answer = patched(lab, tmp_path, "return 0", "return 4")
    assert "is not known: nothing was counted" in markdown(answer, "page.html")


def test_commits_are_compared_and_prefixes_have_no_source(lab: Lab) -> None:
    written(lab, C)
    lab.git("checkout", "-q", "-b", "topic")
    written(lab, C.replace("return 0", "return 1"))
    (lab.source / "doc").mkdir()
    (lab.source / "doc/notes.c").write_text("int x;")
    lab.git("add", "doc")
    lab.git("commit", "-q", "-m", "documents")
    sides = sides_of(["topic"], "master", Engine.POSTGRES, str(lab.source), lab.home)
    changed = changed_code(sides, lab.home)
    assert [function.name for function in changed.functions] == ["run_statement"]
    assert changed.outside == ("server.c",)

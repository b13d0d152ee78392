"""Which functions were executed, by the lines of a program that is really run under callgrind."""

import shutil
import subprocess
from pathlib import Path

import pytest

from suites.counting.executed_functions import WatchedFunction, executed

PROGRAM = """volatile int kept[9];
#include "inlined.h"
static int once(int n)
{
  return kept[n] * 3;
}
__attribute__((noinline)) static int never(int n)
{
  return n + 7;
}
int main(int argc, char **argv)
{
  int sum = once(argc) + in_header(argc);
  if (argc > 5)
    sum += never(argc);
  return sum == 4711;
}
"""
HEADER = """static inline int in_header(int n)
{
  return kept[n + 1] << 4;
}
static inline int unused_in_header(int n)
{
  return n << 5;
}
"""
WATCHED = [
    WatchedFunction("once", "src/main.c", frozenset(range(3, 7))),
    WatchedFunction("never", "src/main.c", frozenset(range(7, 11))),
    WatchedFunction("in_header", "include/inlined.h", frozenset(range(1, 5))),
    WatchedFunction("unused_in_header", "include/inlined.h", frozenset(range(5, 9))),
    WatchedFunction("of another file", "other/main.c", frozenset(range(1, 100))),
]


@pytest.mark.parametrize(("flags", "found"), [(["-g"], frozenset({"once", "in_header"})), ([], None)])
def test_functions_that_the_compiler_has_put_into_their_callers(
    tmp_path: Path, flags: list[str], found: frozenset[str] | None
) -> None:
    for program in ("gcc", "valgrind"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    for folder, name, text in (("src", "main.c", PROGRAM), ("include", "inlined.h", HEADER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    compiled = ["gcc", "-O2", *flags, "-I../include", "main.c", "-o", "program"]
    subprocess.run(compiled, cwd=tmp_path / "src", check=True)
    symbols = subprocess.run(["nm", "program"], cwd=tmp_path / "src", check=True, capture_output=True)
    assert b" once\n" not in symbols.stdout, "it has no symbol any more"
    out = tmp_path / "counts"
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--separate-callers=9"]
    subprocess.run([*words, "./program"], cwd=tmp_path / "src", check=True, capture_output=True)
    assert executed([out.read_text()], WATCHED) == found
    assert executed([], WATCHED) is None


def test_a_text_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    text = "fl=(1) /build/src/main.c\nfn=(1) once\n3 10\n+1 20\ncfi=(2) /build/src/../include/inlined.h\n"
    text += "cfn=(2) in_header\ncalls=1 -3 \n* 5\nfi=(2)\n2 7\nfe=(1)\n8 "
    assert executed([text], WATCHED) == frozenset({"once", "in_header"})

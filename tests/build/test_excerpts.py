"""Which part of a log is shown: the first error of the program that failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.compile_commands import LINES_AFTER, LINES_BEFORE, LONGEST_LINE, failed_check, first_error

NOISE = [f"gcc -c file{number}.c" for number in range(50)]

COMPILER = "nbtsort.c:17:3: error: 'x' undeclared (first use in this function)"


@pytest.mark.parametrize(
    "error",
    [
        COMPILER,
        "access.c:1:10: fatal error: gone.h: No such file or directory",
        "/usr/bin/ld: cannot find -lssl: No such file or directory",
        "nbtree.c:(.text+0x12): undefined reference to `gone'",
        "cc1plus: error: unrecognized command-line option '-O9x'",
        "collect2: fatal error: cannot find 'ld'",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "configure: error: library 'ssl' (OpenSSL) is required",
        "CMake Error at CMakeLists.txt:12 (find_package):",
        "error[E0433]: failed to resolve: use of undeclared crate",
        "error: could not find `Cargo.toml`",
    ],
)
def test_the_first_error_is_shown_however_much_follows(error: str) -> None:
    weak = ["rm: cannot remove 'x': No such file or directory"]
    last = ["make: *** [Makefile:4: all] Error 2"]
    shown = first_error([*weak, *NOISE, error, "  the next line", *NOISE, "a.c:1:1: error: another", *last])
    assert shown[LINES_BEFORE] == error
    assert shown[LINES_BEFORE + 1] == "  the next line"
    assert len(shown) == LINES_BEFORE + 1 + LINES_AFTER


def test_a_program_that_only_make_complains_of_is_shown_with_its_last_words() -> None:
    ignored, failed, last = (f"make: *** [{name}] Error 1" for name in "xyz")
    shown = first_error([*NOISE, "bison: cannot go on", f"{ignored} (ignored)", "next", failed, last])
    assert shown[-2:] == [failed, last]
    assert "bison: cannot go on" in shown


def test_a_shell_is_believed_when_no_compiler_complains() -> None:
    assert first_error([*NOISE, "sh: 1: flex: not found", *NOISE])[LINES_BEFORE] == "sh: 1: flex: not found"


def test_no_error_and_long_lines() -> None:
    assert first_error(NOISE) == []
    (line,) = first_error([COMPILER + "x" * 9999])
    assert len(line) == LONGEST_LINE


CONFIG_LOG = """configure:3900: checking for gawk
configure:3912: gcc -c conftest.c >&5
conftest.c:1: error: of a check that may fail
configure:3920: $? = 1
configure: failed program was:
| int x
configure:3950: checking whether the C compiler works
configure:3972: gcc -O9x conftest.c >&5
gcc: error: unrecognized argument in option '-O9x'
configure:3976: $? = 1
configure: failed program was:
| /* confdefs.h */
| int main(void) { return 0; }
configure:4018: error: in `/scratch/source':
configure:4020: error: C compiler cannot create executables
"""


def test_the_check_at_which_configure_gave_up() -> None:
    assert failed_check(CONFIG_LOG) == [
        "configure:3950: checking whether the C compiler works",
        "configure:3972: gcc -O9x conftest.c >&5",
        "gcc: error: unrecognized argument in option '-O9x'",
        "configure:3976: $? = 1",
    ]
    assert failed_check("configure:1: checking x\n") == []


@given(st.lists(st.one_of(st.text(), st.sampled_from([COMPILER, *CONFIG_LOG.splitlines(), "make: *** x"]))))
def test_any_log_has_a_short_excerpt(lines: list[str]) -> None:
    assert len(first_error(lines)) <= LINES_BEFORE + 1 + LINES_AFTER
    assert len(failed_check("\n".join(lines))) <= LINES_BEFORE + LINES_AFTER

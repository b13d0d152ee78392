"""A git repository with a small extension in C that PGXS compiles: a function that works for a while."""

from pathlib import Path

from tests.plain_repository import PlainRepository

MAKEFILE = """MODULE_big = tiny
OBJS = tiny.o
EXTENSION = tiny
DATA = tiny--1.0.sql
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
"""

CONTROL = "default_version = '1.0'\nrelocatable = true\nmodule_pathname = '$libdir/tiny'\n"

SQL = """CREATE FUNCTION tiny_work(integer) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
"""

SOURCE = """#include "postgres.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(tiny_work);

void _PG_init(void);
void _PG_init(void)
{
    %(init)s
}

Datum tiny_work(PG_FUNCTION_ARGS)
{
    int64 n = (int64) PG_GETARG_INT32(0) * %(factor)d;
    volatile int64 sum = 0;
    for (int64 i = 0; i < n; i++)
        sum += i;
    PG_RETURN_INT64(n);
}
"""

NEEDS_PRELOAD = """if (!process_shared_preload_libraries_in_progress)
        ereport(ERROR, (errmsg("tiny must be loaded via shared_preload_libraries")));"""

ONLY_SINCE_18 = "#if PG_VERSION_NUM < 180000\n#error tiny needs Postgres 18\n#endif\n"


class TinyExtension(PlainRepository):
    """The repository; every commit has a tag."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        (path / "Makefile").write_text(MAKEFILE)
        (path / "tiny.control").write_text(CONTROL)
        (path / "tiny--1.0.sql").write_text(SQL)

    def tagged(self, tag: str, *, factor: int = 1, init: str = "", before: str = "") -> str:
        """Commit a source whose function works `factor` times as long, with a tag; return the commit."""
        text = SOURCE % {"factor": factor, "init": init}
        (self.path / "tiny.c").write_text(before + text)
        return self._tag(tag)

    def without(self, name: str, tag: str, *, text: str | None = None) -> str:
        """Commit the source without a file, or with `text` in it, with a tag; return the commit."""
        if text is None:
            (self.path / name).unlink()
        else:
            (self.path / name).write_text(text)
        return self._tag(tag)

    def _tag(self, tag: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", tag)
        self.git("tag", tag)
        return self.git("rev-parse", "HEAD")

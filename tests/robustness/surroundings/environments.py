"""Environments in which people, timers and workflows start the program."""

from tests.robustness.surroundings.answers import Expected, Surroundings

SAME, ANSWER, REFUSAL, SILENCE = Expected.SAME, Expected.ANSWER, Expected.REFUSAL, Expected.SILENCE

RUN = 'exec "$@"'

AS_NOBODY = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'

_SHADOW = (
    'mkdir "$HERE/json" "$HERE/build" && echo "raise SystemExit(3)" | tee "$HERE/json/__init__.py" '
    '"$HERE/build/__init__.py" >"$HERE/sqlalchemy.py" && PYTHONPATH="$HERE"'
)

ENVIRONMENTS = (
    # --- locales and paths
    Surroundings("locale C", f"LC_ALL=C {RUN}"),
    Surroundings(
        "locale POSIX, no UTF-8 mode", f"LC_ALL=POSIX PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 {RUN}", ANSWER
    ),
    Surroundings("output in Latin-1", f"PYTHONIOENCODING=latin-1 {RUN}", ANSWER),
    Surroundings("output in ASCII", f"PYTHONIOENCODING=ascii {RUN}", ANSWER),
    Surroundings("locale that is not installed", f"LC_ALL=de_DE.ISO-8859-1 LANGUAGE=de {RUN}"),
    Surroundings("HOME not set", f"unset HOME; {RUN}"),
    Surroundings("HOME not there", f"HOME=/nonexistent {RUN}"),
    Surroundings("HOME is a file", f'HOME="$0" {RUN}'),
    Surroundings("HOME with bytes that are no UTF-8", f"HOME=$(printf '/tmp/\\377') {RUN}"),
    Surroundings(
        "TIDEMARK_HOME with bytes that are no UTF-8",
        f'odd="$HERE/"$(printf "\\377") && cp -r "$TIDEMARK_HOME" "$odd" && TIDEMARK_HOME="$odd" {RUN}',
        ANSWER,
    ),
    Surroundings(
        "TIDEMARK_HOME with a space, a quote and a percent sign",
        'odd="$HERE/a b\'c%20?#" && cp -r "$TIDEMARK_HOME" "$odd" && TIDEMARK_HOME="$odd" ' + RUN,
        ANSWER,
    ),
    Surroundings("TMPDIR not there", f"TMPDIR=/nonexistent {RUN}"),
    Surroundings("PATH without a slash at its end, with a dot", f"PATH=.:$PATH {RUN}"),
    Surroundings("current folder deleted", f'cd "$HERE" && rmdir "$HERE" && {RUN}', ANSWER),
    Surroundings("started by a link", 'ln -s "$1" "$HERE/mark" && shift && exec "$HERE/mark" "$@"'),
    Surroundings(
        "started by a link on PATH", 'ln -s "$1" "$HERE/m" && shift && PATH="$HERE:$PATH" && exec m "$@"'
    ),
    # --- standard streams
    Surroundings("standard output closed", f"{RUN} >&-", SILENCE),
    Surroundings("standard output full", f"{RUN} >/dev/full", REFUSAL),
    Surroundings("standard error closed", f"{RUN} 2>&-", SILENCE),
    Surroundings("standard error full", f"{RUN} 2>/dev/full", SILENCE),
    Surroundings("standard input closed", f"{RUN} <&-"),
    Surroundings("all streams closed", f"{RUN} <&- >&- 2>&-", SILENCE),
    Surroundings("terminal of one column", f"COLUMNS=1 {RUN}", ANSWER),
    Surroundings("COLUMNS that is no number", f"COLUMNS=wide LINES=-1 {RUN}"),
    Surroundings("colours asked for", f"FORCE_COLOR=1 CLICOLOR_FORCE=1 TERM=xterm-256color {RUN}", ANSWER),
    Surroundings("no terminal", f"unset TERM; NO_COLOR=1 {RUN}"),
    # --- Python's own variables
    Surroundings("modules of ours and of Python shadowed by PYTHONPATH", f"{_SHADOW} {RUN}"),
    Surroundings("PYTHONHOME not there", f"PYTHONHOME=/nonexistent {RUN}"),
    Surroundings("PYTHONSTARTUP and PYTHONINSPECT", f"PYTHONSTARTUP=/nonexistent PYTHONINSPECT=1 {RUN}"),
    Surroundings("warnings are errors", f"PYTHONWARNINGS=error {RUN}"),
    Surroundings("optimised twice", f"PYTHONOPTIMIZE=2 {RUN}"),
    Surroundings("Python's development mode", f"PYTHONDEVMODE=1 {RUN}"),
    Surroundings(
        "a virtual environment of somebody else", f"VIRTUAL_ENV=/nonexistent CONDA_PREFIX=/nonexistent {RUN}"
    ),
    # --- variables of databases, git and GitHub
    Surroundings(
        "variables of libpq",
        "PGOPTIONS='-c work_mem=64kB' PGSERVICE=imagined PGSSLMODE=verify-full PGHOST=localhost "
        f"PGUSER=nobody PGTZ=Mars PGDATESTYLE=German {RUN}",
    ),
    Surroundings(
        "variables of git",
        "GIT_DIR=/nonexistent GIT_WORK_TREE=/nonexistent GIT_OBJECT_DIRECTORY=/nonexistent GIT_TRACE=1 "
        f"GIT_INDEX_FILE=/nonexistent GIT_CONFIG_GLOBAL=/nonexistent {RUN}",
    ),
    Surroundings(
        "variables of a GitHub job",
        f'CI=true GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$HERE/summary" GITHUB_OUTPUT="$HERE/output" {RUN}',
    ),
    Surroundings("time zone far in the east", f"TZ=Pacific/Kiritimati {RUN}"),
    Surroundings("time zone that does not exist", f"TZ=Mars/Olympus {RUN}"),
    # --- limits, signals, rights
    Surroundings("no permission bits by umask", f"umask 777; {RUN}", ANSWER),
    Surroundings("sixteen open files", f"ulimit -n 16; {RUN}", ANSWER),
    Surroundings("128 MiB of address space", f"ulimit -v 131072; {RUN}", ANSWER),
    Surroundings("600 MiB of address space", f"ulimit -v 614400; {RUN}", ANSWER),
    Surroundings("no file may grow", f"trap '' XFSZ; ulimit -f 0; {RUN}", ANSWER),
    Surroundings("a stack of 256 KiB", f"ulimit -s 256; {RUN}", ANSWER),
    Surroundings("ended children are not waited for", f"trap '' CHLD; {RUN}"),
    Surroundings("interrupts ignored", f"trap '' INT HUP TERM PIPE; {RUN}"),
    Surroundings("a user without write access", AS_NOBODY, ANSWER, root=True),
    Surroundings(
        "a read-only mount",
        'exec unshare -m sh -c \'mount --bind "$TIDEMARK_HOME" "$TIDEMARK_HOME" && '
        'mount -o remount,bind,ro "$TIDEMARK_HOME" && exec "$@"\' sh "$@"',
        SAME,
        "unshare",
        root=True,
    ),
    Surroundings(
        "a full disk",
        'exec unshare -m sh -c \'mkdir "$HERE/full" && mount -t tmpfs -o size=4m tmpfs "$HERE/full" && '
        'cp -r "$TIDEMARK_HOME/." "$HERE/full" && TIDEMARK_HOME="$HERE/full" TMPDIR="$HERE/full" && '
        'export TIDEMARK_HOME TMPDIR && cat /dev/zero >"$HERE/full/rest" 2>/dev/null; '
        'exec "$@"\' sh "$@"',
        ANSWER,
        "unshare",
        root=True,
    ),
)

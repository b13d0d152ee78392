"""The options of `run` that make a suite of a user's own files, parsed before any package is installed."""

import argparse
import math
import re

from suites.keys.pgbench_scripts import MAX_PARTITIONS, MAX_RATE, PARTITION_METHODS, PROTOCOLS

USUAL_SUITE = "write-heavy"
"""The suite of a command line that names none."""

PLAIN_GENERATORS = ("pgbench", "queries")
"""The load generators of scripts whose names do not tell."""

MAX_SCALE = 100_000
"""The highest scale factor of pgbench's own tables."""


def add_own_workload(command: argparse.ArgumentParser) -> None:
    """Add the options that make a suite of the user's own files."""
    add = command.add_argument_group("own workload, instead of a suite").add_argument
    load = (
        "fills the database: SQL file, such as a plain dump; dump for pg_restore, of Postgres; or executable "
        "program, told the server by variables such as PGHOST or MYSQL_UNIX_PORT"
    )
    setup = (
        "SQL file that makes and fills tables, after --load, before anything is measured; run by psql, "
        "mysql or mariadb"
    )
    script = (
        "pgbench script, drawn in proportion to its weight, can be repeated; or a sysbench script,"
        " whose name ends with .lua; or a file of SQL, each a step of its own"
    )
    generator = (
        "what runs scripts: pgbench, or Tidemark's own client of SQL files, queries (default: pgbench if all"
        " versions are of Postgres)"
    )
    scale = "scale factor of pgbench's own tables, loaded before --load and --setup; 1 without these two"
    partitions = "partitions of pgbench_accounts"
    method = "how its rows are divided (default: range)"
    define = "variable of pgbench scripts, or option of a sysbench script; can be repeated"
    rate = "transactions per second that arrive whether or not the server keeps up"
    add("--load", metavar="FILE", help=load)
    add("--setup", metavar="FILE", help=setup)
    add("--script", action="append", default=[], metavar="FILE[@WEIGHT]", help=script)
    add("--generator", choices=PLAIN_GENERATORS, help=generator)
    add("--scale", type=_scale, metavar="N", help=scale)
    add("--partitions", type=_partitions, metavar="N", help=partitions)
    add("--partition-method", choices=PARTITION_METHODS, help=method)
    add("--protocol", choices=PROTOCOLS, help="how pgbench sends statements (default: prepared)")
    add("--connect", action="store_true", help="let pgbench connect for each transaction")
    add("--define", action="append", default=[], metavar="NAME=VALUE", help=define)
    add("--rate", type=_rate, metavar="N", help=rate)


def _scale(text: str) -> int:
    return _up_to(MAX_SCALE, text)


def _partitions(text: str) -> int:
    return _up_to(MAX_PARTITIONS, text)


def _up_to(most: int, text: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
    if not 1 <= number <= most:
        raise argparse.ArgumentTypeError(f"must be an integer from 1 to {most}")
    return number


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MAX_RATE or math.isnan(number):
        raise argparse.ArgumentTypeError(f"must be transactions per second, above 0 and up to {MAX_RATE:g}")
    return number

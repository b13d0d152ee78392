"""The options that say what servers get, in every command that builds or measures versions."""

import argparse
from collections.abc import Collection, Mapping, Sequence

from build.errors import shell_line
from runners.values import disk, memory
from suites.additions.variant import KEYS, OPTION, VariantKey

FORMER: Mapping[str, str] = {
    "--set": "setting",
    "--build": "build",
    "--patch": "patch",
    "--extension": "extension",
    "--layer": "layer",
    "--initdb": "initdb",
    "--index": "index",
    "--companion": "companion",
}
"""The options that `--with` has replaced, each with its key; a release later they are unknown options."""


def add_variants(parser: argparse.ArgumentParser, others: Collection[str] = ()) -> None:
    """Add the options that say what servers get: those of variants, and the memory and disk of all.

    `others` are options of the command that are called as one that was replaced.
    """
    add_with(parser, "every version gets, or engine@ref#VARIANT alone", others=others)
    add_declared(parser)


def add_with(
    parser: argparse.ArgumentParser,
    who: str,
    keys: Collection[str] = tuple(KEYS),
    others: Collection[str] = (),
) -> None:
    """Add `--with` with the keys that a command takes, and answer the options that it has replaced.

    `who` gets it, as the help says. `others` are those of `add_variants`.
    """
    each = "; ".join(f"{KEYS[key].form}: {KEYS[key].help}" for key in keys)
    given = f"what {who}; can be repeated. {each}"
    metavar = "[VARIANT:]KEY=VALUE" if "VARIANT" in who else "KEY=VALUE"
    parser.add_argument(OPTION, action="append", default=[], dest="variants", metavar=metavar, help=given)
    for option in (option for option, key in FORMER.items() if key in keys and option not in others):
        parser.add_argument(option, action=_Former, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


class _Former(argparse.Action):
    """Notes an option that was given up, so that `require_no_former` can say all of them at once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.former = [*getattr(namespace, "former", ()), (option_string, str(values))]


def require_no_former(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """End with 2 and the new spelling of all that was given if options were that `--with` has replaced."""
    given = getattr(parsed, "former", ())
    words = [word for option, text in given for word in (OPTION, _respelled(KEYS[FORMER[option]], text))]
    options = ", ".join(dict.fromkeys(option for option, _ in given))
    if given:
        parser.error(f"{OPTION} has replaced {options}: write {shell_line(*words)}")


def _respelled(key: VariantKey[object], text: str) -> str:
    if key.name == "patch":
        variant, equals, file = text.partition("=")
        return f"{variant}:{key.name}={file}" if equals else f"{key.name}={text}"
    head, equals, value = text.partition("=") if key.names else (text, "", "")
    variant, colon, word = head.rpartition(":")
    return f"{variant}{colon}{key.name}{'.' if key.names else '='}{word}{equals}{value}"


def add_declared(parser: argparse.ArgumentParser) -> None:
    """Add the options with the memory and the disk of each server."""
    amount = (
        "memory of each server, such as 1G or 512M, page cache included, in a control group of its own; "
        "data, buffers and log are sized by it instead of the machine's memory"
    )
    parser.add_argument("--memory", type=memory, metavar="SIZE", help=amount)
    speed = (
        "the most that the disk does for each server once data are loaded, such as 2000iops, 100MB/s or "
        "2000iops,100MB/s, of reads and of writes each, in a control group of its own"
    )
    parser.add_argument("--disk", type=disk, metavar="SPEED", help=speed)

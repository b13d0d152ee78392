"""What the command line of `./tidemark bisect` asks for."""

import argparse
import math
from dataclasses import dataclass, replace

from build.extension import parse_extension, require_extensible
from build.version import Engine, Version, parse_revision, parse_version
from runners.bisect.domain.question import (
    Question,
    QuestionError,
    metric_named,
    require_direction,
    require_threshold,
)
from runners.bisect.run.bisect import BisectRequest
from runners.bisect.run.candidates import git_source_of, shown_address
from runners.measuring.variants import (
    compiled_for_layers,
    definition_of,
    require_defined,
    variants_of,
)
from suites.additions.registry import COMPANIONS
from suites.additions.variant import OPTION, Variant
from suites.definition import load_suite


def require_ends(arguments: argparse.Namespace) -> None:
    """Raise QuestionError when good, bad or step are not given."""
    missing = [f"--{name}" for name in ("good", "bad", "step") if getattr(arguments, name) is None]
    if missing:
        raise QuestionError(
            f"{', '.join(missing)} is missing",
            where="bisect",
            hint="see ./tidemark bisect --help",
        )


def parse_request(arguments: argparse.Namespace) -> BisectRequest:
    """Return the request of a command line. Raises QuestionError, VersionError or SuiteError."""
    require_ends(arguments)
    if arguments.server is not None:
        return _of_extension(arguments)
    if arguments.extension:
        raise QuestionError(
            "--extension names what is searched on a --server",
            where=f"--extension {arguments.extension[0]}",
            hint=f"an extension of every commit of a server is {OPTION} extension.NAME=REPO@REF",
        )
    engine = Engine(arguments.engine)
    good, bad = (parse_revision(f"{engine}@{ref}") for ref in (arguments.good, arguments.bad))
    variant = variant_of(good, bad, arguments)
    address = git_source_of(engine, good.ref, bad.ref, arguments.git)
    return _request(arguments, Sought(engine, good.ref, bad.ref, shown_address(address)), variant, address)


def _of_extension(arguments: argparse.Namespace) -> BisectRequest:
    """Return the request to search the commits of an extension on one server.

    Raises QuestionError, ExtensionError, VersionError or SuiteError.
    """
    server = parse_version(arguments.server)
    if arguments.box is not None or arguments.git is not None:
        raise QuestionError(
            "--server searches the repository of --extension", where="--server", hint="omit --box and --git"
        )
    if server.variant or len(arguments.extension) != 1:
        raise QuestionError(
            "what is searched is one extension on one plain version",
            where=f"--server {server}",
            hint=f"--server {server.plain} --extension NAME=REPO, without a ref",
        )
    extension = parse_extension(arguments.extension[0], has_ref=False)
    require_extensible(server, (extension,))
    variants = variants_of(arguments)
    require_defined((server,), variants)
    sought = Sought(
        server.engine,
        arguments.good,
        arguments.bad,
        shown_address(extension.repository),
        extension.name,
        str(server),
    )
    variant = definition_of(server, variants)
    if variant.extensions:
        raise QuestionError(
            f"only {extension.name} is compiled for {server}, and not {variant.extensions[0].name} as well",
            where=f"{OPTION} extension.{variant.extensions[0].name}",
            hint="omit it",
        )
    return replace(_request(arguments, sought, variant, None), extension=extension)


@dataclass(frozen=True)
class Sought:
    """What is searched: the fields of a Question of the same names."""

    engine: Engine
    good: str
    bad: str
    git: str | None
    extension: str = ""
    server: str = ""


def _request(
    arguments: argparse.Namespace, sought: Sought, variant: Variant, address: str | None
) -> BisectRequest:
    metric = metric_named(arguments.metric)
    require_direction(metric, arguments.direction)
    threshold = None if arguments.threshold is None else arguments.threshold / 100
    require_threshold(metric, threshold)
    question = Question(
        engine=sought.engine,
        good=sought.good,
        bad=sought.bad,
        suite=arguments.suite,
        profile=arguments.profile,
        step=arguments.step,
        metric=metric.name,
        direction=arguments.direction,
        confidence=arguments.confidence / 100,
        git=sought.git,
        seconds=arguments.seconds,
        variant=variant.to_json(),
        extension=sought.extension,
        server=sought.server,
        memory=arguments.memory,
        disk="" if arguments.disk is None else str(arguments.disk),
        threshold=threshold,
    )
    return BisectRequest(
        question,
        address,
        budget_seconds=math.inf if arguments.budget is None else arguments.budget * 60,
        build_ahead=arguments.build_ahead,
        again=arguments.again,
        perf=arguments.perf,
        keep_disturbed=arguments.keep_disturbed,
        change=arguments.change,
        variant=variant,
        counts=not arguments.no_exact,
        # Passes hardly scatter, so that the rest of a range takes few more of them.
        whole=metric.is_counted if arguments.all is None else arguments.all,
        # A workflow names the box: what it asks for may come from somebody who must not run code there.
        is_published=arguments.box is not None,
    )


def variant_of(good: Version, bad: Version, arguments: argparse.Namespace) -> Variant:
    """Return what every position of a bisect gets. Raises QuestionError when good and bad differ in it."""
    if good.variant != bad.variant:
        raise QuestionError(
            f"good is {good} and bad is {bad}: two variants",
            where="bisect",
            hint="a bisect compares commits of one variant; to compare variants, use ./tidemark run",
        )
    variants = variants_of(arguments)
    require_defined((good, bad) if good != bad else (good,), variants)
    definition = definition_of(good, variants)
    for name in definition.companions:
        if programs := COMPANIONS[name].build_programs:
            raise QuestionError(
                f"a bisect compiles slim builds, which do not have {', '.join(programs)} for {name}",
                where=f"{OPTION} companion={name}",
                hint="use ./tidemark run for single versions",
            )
    return compiled_for_layers(definition, good.engine, load_suite(arguments.suite).layers)

"""A report gives changes their owners, and mutes what the plan mutes."""

from sqlalchemy import Connection

from build.engines import ENGINES
from build.home import Home
from build.sources.git import local_mirrors
from history.changes import repository
from history.changes.repository import Change
from history.changes.rules.mutes import MutedChanges, apply_mutes
from history.changes.rules.owners import owners_of
from history.changes.stored_rules import Owner, set_owners
from history.errors import stored_version
from history.store.records import ChangeStatus
from history.store.writer import Store
from runners.nightly.plan import Plan
from runners.nightly.plan_rules.commit_files import TouchedFiles, touched_files


def apply_rules(plan: Plan, home: Home, store: Store) -> MutedChanges:
    """Apply the owners and mutes of a plan to all open changes in the history.

    Owners are looked at again in every report, because a change may have been narrowed to one commit since.
    """
    with store.database.reading() as connection:
        # git is asked before anything is written: a night that is being recorded need not wait for it.
        found = {change.id: _owners(plan, home, connection, change) for change in _open(connection)}
    with store.database.writing() as connection:
        for change in _open(connection):
            owners = found.get(change.id)
            if owners is not None and owners != change.owners:
                set_owners(connection, change.id, owners)
        return apply_mutes(connection, plan.mute_rules(), store.now())


def _open(connection: Connection) -> tuple[Change, ...]:
    return repository.load(connection, statuses=[ChangeStatus.OPEN])


def _owners(plan: Plan, home: Home, connection: Connection, change: Change) -> tuple[Owner, ...] | None:
    """Return the owners of a change by the plan; None to keep those that a box with its commits found."""
    rules, files = plan.owner_rules(), TouchedFiles(None)
    if any(rule.paths for rule in rules):
        engine = stored_version(change.first_after.version).engine
        tracked = plan.engines.get(engine)
        source = (tracked.git if tracked else None) or ENGINES[engine].upstream.git
        files = touched_files(connection, change, local_mirrors(engine, home, source))
    if not files.is_settled and change.owners:
        return None
    return owners_of(rules, change, files.paths)

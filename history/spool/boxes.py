"""Whether a box and the others that share its history are told apart: their names and their clocks."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from history.store.schema import machines, sessions
from history.timestamps import to_text

APART = timedelta(minutes=5)
"""How far the clocks of a box and of the history's server may be apart."""

LOOKED_AT = timedelta(days=8)
"""How far back sessions of another box with the same name are looked for; clocks may be a day apart."""


def warnings(
    connection: Connection, own: Collection[str], boots: Collection[str], moment: datetime
) -> Iterator[str]:
    """Yield what is wrong with a box in a history on a server, a sentence each.

    `own` are the uids of the sessions that this box recorded, `boots` the boots in which it did, and `moment`
    is its time.
    """
    yield from _clock(connection, moment)
    yield from _namesakes(connection, own, boots, moment)


def _clock(connection: Connection, moment: datetime) -> Iterator[str]:
    if connection.dialect.name != "postgresql":
        return
    apart = moment - connection.execute(select(func.clock_timestamp())).scalar_one()
    if abs(apart) > APART:
        hours = abs(apart) / timedelta(hours=1)
        side = "ahead of" if apart > timedelta(0) else "behind"
        yield (
            f"the clock of this box is {hours:.1f} hours {side} that of the history's server: its nights are"
            " ordered by its own; set it with timedatectl"
        )


def _namesakes(
    connection: Connection, own: Collection[str], boots: Collection[str], moment: datetime
) -> Iterator[str]:
    """Sessions of another boot that came into the history after the first of ours, under the same name.

    Ids are in the order in which they came, so that no clock decides.
    """
    ours = select(sessions.c.id, machines.c.hostname).join_from(
        sessions, machines, machines.c.id == sessions.c.machine_id
    )
    found = connection.execute(ours.where(sessions.c.uid.in_(own)).order_by(sessions.c.id)).all()
    if not found:
        return
    first, name = found[0].id, found[-1].hostname
    others = (
        select(func.count(), func.max(sessions.c.uid))
        .join_from(sessions, machines, machines.c.id == sessions.c.machine_id)
        .where(
            machines.c.hostname == name,
            sessions.c.id > first,
            sessions.c.uid.not_in(own),
            sessions.c.boot_id.not_in(boots),
            sessions.c.started_at >= to_text(moment - LOOKED_AT),
        )
    )
    number, uid = tuple(connection.execute(others).one())
    if number:
        yield (
            f"another box calls itself {name} too and recorded {number} sessions, such as {uid}: the nights"
            " of both are in the same series; give one of them another name with hostnamectl"
        )

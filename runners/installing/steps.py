"""The actions that install or remove a box, by comparing the machine with what is wanted."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from build.errors import shell_line
from runners.installing import agent
from runners.installing.escaping import InstallError
from runners.installing.files import ENABLED, SUDOERS, UNIT_NAMES, UNITS, File, files
from runners.installing.machine import TargetMachine
from runners.installing.record import Record, load, save
from runners.installing.site import Site

FOLDER_MODE = 0o775
"""The mode of the output folder: its group are who measures and who reports; servers that root measures
manually belong to another user."""

REPORTED = ("backups", "summaries", "spool", "site")
"""The folders in it that both write."""


@dataclass(frozen=True)
class Action:
    """One action on the machine."""

    description: str
    carry_out: Callable[[TargetMachine], None]
    content: str = ""
    """The content of the file that is written."""


@dataclass
class Steps:
    """The actions to carry out."""

    actions: list[Action] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """The modified files that are kept, with their difference from what would be written."""

    notes: list[str] = field(default_factory=list)
    """Notes for the administrator."""


def to_install(site: Site, machine: TargetMachine, *, force: bool) -> Steps:
    """Return the steps that install a box; nothing is changed. Raises InstallError."""
    steps, record = Steps(), load(machine)
    steps.actions += _account(site, machine, steps.notes)
    steps.actions += _home(site, machine)
    changed = False
    for file in files(site):
        actions = list(_file(file, machine, record, steps, force=force))
        changed |= bool(actions) and file.path.parent == UNITS
        steps.actions += actions
    if site.agent is not None:
        steps.actions += _agent(site, machine, record, steps, force=force)
    steps.actions += _services(machine, reload=changed)
    return steps


def to_uninstall(machine: TargetMachine, *, force: bool) -> Steps:
    """Return the steps that remove what was installed, and nothing else. Raises InstallError."""
    steps, record = Steps(), load(machine)
    if machine.is_real and machine.has_systemd and any(name.endswith(".timer") for name in record.digests):
        # Not the services: a running night ends by itself, and the history keeps what it measured.
        stops = ("systemctl", "disable", "--now", *ENABLED)
        steps.actions.append(Action(" ".join(stops), lambda target: target.run(stops)))
    for name in map(PurePosixPath, record.digests):
        text = machine.read(name)
        if text is not None and not record.wrote(name, text) and not force:
            steps.kept[str(machine.path(name))] = "it was modified after it was written"
        elif text is not None:
            steps.actions.append(Action(f"remove {machine.path(name)}", _removing(name)))
        else:
            steps.actions.append(Action(f"forget {machine.path(name)}, which is missing", _removing(name)))
    if record.agent_lines:
        steps.actions.append(_agent_removal(machine, record))
    if steps.actions and machine.is_real and machine.has_systemd:
        reload = ("systemctl", "daemon-reload")
        steps.actions.append(Action(" ".join(reload), lambda target: target.run(reload)))
    return steps


# --- user and folders


def _account(site: Site, machine: TargetMachine, notes: list[str]) -> Iterator[Action]:
    if not machine.is_real:
        notes.append(f"the user {site.user} and services are skipped: this is not the root of the machine")
        return
    own_groups = {site.user: ["--user-group"], site.reporter: ["--no-user-group", "--gid", site.user]}
    homes = {site.user: str(site.home), site.reporter: site.report_environment["HOME"]}
    for user, group in own_groups.items():
        found = machine.account(user)
        if found is None:
            command = ["useradd", "--system", *group, "--no-create-home", "--home-dir", homes[user]]
            command += ["--shell", "/usr/sbin/nologin", user]
            yield Action(f"create the user {user}: {' '.join(command)}", _running(command))
        elif found.user_id == 0 or found.may_log_in:
            raise InstallError(
                f"the user {user} exists already and may log in: it belongs to somebody",
                where=f"home {found.home}",
                hint="use another one with --user, or remove its shell: usermod -s /usr/sbin/nologin",
            )
        elif found.home != homes[user]:
            notes.append(f"the user {user} keeps its home {found.home}: the units set HOME={homes[user]}")


def _home(site: Site, machine: TargetMachine) -> Iterator[Action]:
    path, account = machine.path(site.home), machine.account(site.user)
    making = Action(
        f"create the folder {path}, owner {site.user}, mode {FOLDER_MODE:o}",
        lambda target: target.make_folder(site.home, FOLDER_MODE, site.user),
    )
    if not path.exists():
        yield making
        return
    if not path.is_dir():
        raise InstallError("the output folder is a file", where=str(path), hint="use another with --home")
    status = path.stat()
    owner = status.st_uid if not machine.is_real else account and account.user_id
    reporter = machine.account(site.reporter)
    owners = {owner, reporter and reporter.user_id}
    # The file that check --fix saves there belongs to root.
    foreign = [
        entry
        for entry in path.iterdir()
        if entry.lstat().st_uid not in owners and entry.name != "fitness.json"
    ]
    if machine.is_real and foreign:
        raise InstallError(
            f"{len(foreign)} entries of the output folder do not belong to {site.user}, who runs nights",
            where=str(foreign[0]),
            hint=f"if they are all Tidemark's: {shell_line('chown', '-R', f'{site.user}:', path)}",
        )
    if status.st_uid != owner or status.st_mode & 0o7777 != FOLDER_MODE:
        yield making
    shared = [str(path / name) for name in REPORTED if (path / name).is_dir()]
    if any(not Path(folder).stat().st_mode & 0o020 for folder in shared):
        # As the user who owns them: root would follow the links of others.
        become = ["setpriv", f"--reuid={site.user}", f"--regid={site.user}", "--clear-groups"]
        command = [*(become if account else ()), "chmod", "-R", "g+w", *shared]
        yield Action(f"let the group {site.user} write: {' '.join(command)}", _running(command))


# --- files


def _file(
    file: File, machine: TargetMachine, record: Record, steps: Steps, *, force: bool
) -> Iterator[Action]:
    shown, text = str(machine.path(file.path)), machine.read(file.path)
    if text == file.text:
        mode = machine.path(file.path).stat().st_mode & 0o7777
        if mode != file.mode or not record.wrote(file.path, file.text):
            yield Action(f"adopt {shown}, mode {file.mode:o}", _writing(file), file.text)
        return
    if text is not None and not record.wrote(file.path, text) and not force:
        steps.kept[shown] = _difference(shown, text, file.text)
        return
    verb = "write" if text is None else "replace"
    yield Action(f"{verb} {shown}, mode {file.mode:o}", _writing(file), file.text)


def _writing(file: File) -> Callable[[TargetMachine], None]:
    def write(machine: TargetMachine) -> None:
        if file.path == SUDOERS and machine.is_real:
            _require_sound_sudoers(machine, file)
        machine.write(file.path, file.text, file.mode)
        save(machine, load(machine).with_file(file.path, file.text))

    return write


def _removing(name: PurePosixPath) -> Callable[[TargetMachine], None]:
    def remove(machine: TargetMachine) -> None:
        machine.remove(name)
        save(machine, load(machine).without_file(name))

    return remove


def _require_sound_sudoers(machine: TargetMachine, file: File) -> None:
    """Check a sudoers file before it is installed: an error in any of them disables sudo for everybody."""
    trial = PurePosixPath("/etc/tidemark/sudoers.trial")
    machine.write(trial, file.text, file.mode)
    try:
        machine.run(["visudo", "--check", "--file", str(machine.path(trial))])
    finally:
        machine.remove(trial)


def _difference(shown: str, there: str, wanted: str) -> str:
    lines = difflib.unified_diff(
        there.splitlines(),
        wanted.splitlines(),
        f"{shown} (as it is)",
        f"{shown} (as it would be)",
        lineterm="",
    )
    return "\n".join(lines)


# --- GitHub's runner


def _agent(
    site: Site, machine: TargetMachine, record: Record, steps: Steps, *, force: bool
) -> Iterator[Action]:
    assert site.agent is not None
    agent.require_agent(machine, site.agent)
    name, ours = agent.environment_file(site.agent), agent.wanted_lines(site)
    found = machine.read_checked(name)
    text = found[0] if found else ""
    theirs = agent.conflicts(text, ours, record.agent_lines)
    after = agent.merged(text, ours, record.agent_lines)
    if theirs and not force:
        steps.kept[str(machine.path(name))] = _difference(str(machine.path(name)), text, after)
        return
    if all(line in text.splitlines() for line in ours) and record.agent_lines == ours:
        return

    def write(machine: TargetMachine) -> None:
        # The user of GitHub's runner has to be able to read it, as the file before or the folder says.
        like = found[1] if found else machine.path(name).parent.stat()
        machine.write(name, after, like.st_mode & 0o777 if found else 0o644, like)
        now = load(machine)
        save(machine, Record(now.digests, ours, str(name), now.installed_at))

    yield Action(f"write the hooks to {machine.path(name)}", write, after)
    owner = site.user
    account = machine.account(owner)
    if account is not None and machine.path(site.agent).stat().st_uid != account.user_id:
        steps.notes.append(
            f"GitHub's runner has to run as {owner}: {shell_line('chown', '-R', f'{owner}:', site.agent)}"
        )


def _agent_removal(machine: TargetMachine, record: Record) -> Action:
    name = PurePosixPath(record.agent_file)

    def remove(machine: TargetMachine) -> None:
        found = machine.read_checked(name)
        left = agent.without(found[0] if found else "", record.agent_lines)
        if found and left:
            machine.write(name, left, found[1].st_mode & 0o777, found[1])
        else:
            machine.remove(name)  # it held our lines only
        now = load(machine)
        save(machine, Record(now.digests, (), "", now.installed_at))

    return Action(f"remove the hooks from {machine.path(name)}", remove)


# --- services


def _services(machine: TargetMachine, *, reload: bool) -> Iterator[Action]:
    if not machine.is_real:
        return
    if reload:
        words = ("systemctl", "daemon-reload")
        yield Action(" ".join(words), lambda target: target.run(words))
    for unit in ENABLED:
        is_enabled = machine.output_of(["systemctl", "is-enabled", unit]) == "enabled"
        if unit.endswith(".timer"):
            if not (is_enabled and machine.output_of(["systemctl", "is-active", unit]) == "active"):
                yield _call("systemctl", "enable", "--now", unit)
        elif not is_enabled:
            yield _call("systemctl", "enable", unit)
            # Without waiting: a setting that cannot be changed on this machine must not prevent the
            # installation.
            yield _call("systemctl", "start", "--no-block", unit)


def _call(*words: str) -> Action:
    return Action(" ".join(words), _running(words))


def _running(words: Sequence[str]) -> Callable[[TargetMachine], None]:
    return lambda target: target.run(words)


def unit_states(machine: TargetMachine) -> dict[str, str]:
    """Return the state of every unit by systemd, such as `active`, `inactive` or `failed`."""
    return {unit: machine.output_of(["systemctl", "is-active", unit]) or "unknown" for unit in UNIT_NAMES}

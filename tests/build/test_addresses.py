"""No password and no token of an address is shown, wherever in the address it is."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.addresses import redacted, without_secrets
from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.sources import git
from build.sources.download import DownloadError, download
from build.sources.source import SourceError, obtain
from build.version import Engine, parse_version
from history.errors import HistoryError
from history.store.database import connect
from runners.cli import main
from runners.measuring.session_description import shown_command

SECRET = "hush-hush"
NOWHERE = "127.0.0.1:9"
"""The port of the discard service, where nothing answers."""


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://git.example/pg.git", "https://git.example/pg.git"),
        ("https://me:hush@git.example/pg.git", "https://git.example/pg.git"),
        ("HTTPS://hush@git.example:8443/pg.git", "HTTPS://git.example:8443/pg.git"),
        (
            "https://git.example/pg.git?private_token=hush&x",
            "https://git.example/pg.git?private_token=***&***",
        ),
        ("https://git.example/pg.git#hush", "https://git.example/pg.git#***"),
        ("ssh://git@git.example/pg.git", "ssh://git@git.example/pg.git"),
        ("ssh://git:hush@git.example/pg.git", "ssh://git:***@git.example/pg.git"),
        ("git@git.example:pg.git", "git@git.example:pg.git"),
        ("/srv/git/pg.git", "/srv/git/pg.git"),
        ("file:///srv/git/pg.git", "file:///srv/git/pg.git"),
        ("postgresql+psycopg://me:hush@db/x", "postgresql+psycopg://me:***@db/x"),
        ("postgresql://db/x?sslmode=require&password=hush", "postgresql://db/x?sslmode=require&password=***"),
        ("postgresql://db/x?p%61ssword=hush&host=/run/pg", "postgresql://db/x?p%61ssword=***&host=/run/pg"),
        ("postgresql://db/x?sslmode=a;password=hush", "postgresql://db/x?sslmode=***"),
        ("postgresql://me:hu/sh@db/x", "postgresql://***"),
        ("https://me:12#hush@git.example/pg.git", "https://***"),
        ("https://me:hu?sh@git.example/pg.git", "https://***"),
        ("https://me:@hush/@git.example/pg.git", "https://***"),
        ("https://git.example/@scope/pg.git", "https://git.example/@scope/pg.git"),
        ("postgresql://me:hush@[::1]:5432/x", "postgresql://me:***@[::1]:5432/x"),
        ("http://[hush", "http://***"),
    ],
)
def test_what_is_shown(address: str, shown: str) -> None:
    assert without_secrets(address) == shown
    assert without_secrets(shown) == shown


unquoted = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), max_size=8)
schemes = st.sampled_from(["http", "https", "ssh", "git", "postgresql", "postgresql+psycopg", "sqlite"])


@given(schemes, unquoted, unquoted, st.sampled_from(["@host/x", "@host:1/x?sslmode=on", "@[::1]/x#y"]))
def test_no_password_is_shown_whatever_is_around_it(scheme: str, before: str, after: str, rest: str) -> None:
    assert SECRET not in without_secrets(f"{scheme}://me:{before}{SECRET}{after}{rest}")


values = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="&"), max_size=8)


@given(schemes, st.text("abcdefgh_-%/.", min_size=1, max_size=8), values, values)
def test_no_value_of_a_query_is_shown(scheme: str, name: str, before: str, after: str) -> None:
    address = f"{scheme}://host/x?a=1&{name}={before}{SECRET}{after}&sslmode=require"
    assert SECRET not in without_secrets(address)


@given(st.text(max_size=200))
def test_any_text_can_be_redacted(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)
    assert TidemarkError(text, where=text, hint=text).where == redacted(text)


def test_a_message_of_another_program_is_redacted() -> None:
    said = "unable to access 'https://h/x.git?access_token=hush/': no host; password='hush hush' user=me"
    assert redacted(said) == (
        "unable to access 'https://h/x.git?access_token=***': no host; password=*** user=me"
    )


def test_credentials_stay_out_of_messages_and_manifests_of_a_git_source(home: Home) -> None:
    address = f"https://me:{SECRET}@{NOWHERE}/pg.git?private_token={SECRET}"
    mirror = git.mirror(address, Engine.POSTGRES, home)
    assert mirror.shown == f"https://{NOWHERE}/pg.git?private_token=***"
    with pytest.raises(SourceError) as caught:
        obtain(parse_version("postgres@main"), home, Silent(), address)
    assert "private_token=***" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_download_does_not_quote_what_it_takes_for_a_port(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        download(f"http://me:{SECRET}@host/x.tar.bz2", tmp_path / "x", None, Silent())
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql+psycopg://me:{SECRET}@{NOWHERE}/x",
        f"postgresql+psycopg://me@{NOWHERE}/x?password={SECRET}",
        f"postgresql+psycopg://me:12/{SECRET}@{NOWHERE}/x",
        f"postgresql+none://me:{SECRET}@{NOWHERE}/x",
        f"oracle://me:{SECRET}@{NOWHERE}/x",
        f"postgresql+psycopg://me:{SECRET}@host:port/x",
    ],
)
def test_no_command_prints_the_password_of_a_history(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["compare", "postgres@17.11", "postgres@18.6"], ["history", "show"], ["bisect", "status"]):
        assert main([*words, "--history", address]) == 2
        said = capsys.readouterr()
        assert "tidemark: " in said.err or "compare" in said.err
        assert SECRET not in said.out + said.err


def test_a_mistaken_command_line_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["status", "--git"], ["compare", "postgres@17.11", "postgres@18.6", "--url"]):
        with pytest.raises(SystemExit):
            main([*words, f"https://me:{SECRET}@host/x.git"])
        said = capsys.readouterr().err
        assert f"unrecognized arguments: {words[-1]} https://host/x.git" in said


def test_a_session_keeps_its_command_line_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"postgresql+psycopg://me:{SECRET}@db/x"
    monkeypatch.setattr(sys, "argv", ["tidemark", "run", "--history", address, "postgres@18.6"])
    assert shown_command() == "tidemark run --history 'postgresql+psycopg://me:***@db/x' postgres@18.6"


def test_a_database_is_named_without_its_password() -> None:
    database = connect(f"postgresql+psycopg://me:{SECRET}@{NOWHERE}/x?sslmode=disable&password={SECRET}")
    assert database.where == f"postgresql+psycopg://me:***@{NOWHERE}/x?password=***&sslmode=disable"
    with pytest.raises(HistoryError) as caught, database.reading():
        pass
    assert SECRET not in str(caught.value)

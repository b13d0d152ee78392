"""Our block of an issue's body is rewritten; whatever people wrote, around it or into it, stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.alerting.issue_block import (
    LONGEST_BODY,
    MORE,
    IssueText,
    edited,
    end_marker,
    is_ours_alone,
    is_written,
    new_body,
)

NAME = "2e7b5e116455 0123456789abcdef"
FIRST = IssueText("insert is 9 % slower", "since Monday\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\nBy hand:\n")
SECOND = IssueText("insert is 8 % slower", "since Monday\n\n| a | b |\n|:--|--:|\n| 1 | 3 |\n\nBy hand:\n")

texts = st.text(st.sampled_from("ab \r\n<!->|`#\u202e"), max_size=60)
"""What a person may write; in our comments nobody else knows the nonce."""


def after(title: str, body: str, ours: IssueText = SECOND, sent: IssueText | None = FIRST) -> tuple[str, str]:
    """Title and body after an edit, which the same edit would not change any more."""
    new_title, changed = edited(NAME, title, body, ours, sent)
    result = (title if new_title is None else new_title, body if changed is None else changed)
    assert edited(NAME, *result, ours, ours) == (None, None)
    return result


def old_body(ours: IssueText) -> str:
    """As earlier versions wrote it."""
    return f"{ours.text}\n\n{end_marker(NAME)}\n"


def in_a_browser(body: str) -> str:
    return body.replace("\n", "\r\n")


@given(texts, texts, st.booleans())
def test_what_stands_around_the_block_stays_byte_for_byte(above: str, below: str, browser: bool) -> None:
    body = new_body(NAME, FIRST)
    body = above + (in_a_browser(body) if browser else body) + below
    title, changed = after(FIRST.title, body)
    assert title == SECOND.title
    assert changed.startswith(above)
    assert changed.endswith(below)
    assert changed[len(above) :].startswith(new_body(NAME, SECOND).rstrip("\n"))


@given(
    st.integers(0, 7), st.sampled_from(["mine", "- [ ] done?", "| mine | 2 |"]), st.booleans(), st.booleans()
)
def test_a_line_that_a_person_writes_into_our_text_is_moved_out_of_it(
    place: int, line: str, is_old: bool, browser: bool
) -> None:
    """Wherever it is, in an issue of this version or of an earlier one."""
    lines = FIRST.text.splitlines()
    lines.insert(place, line)
    body = old_body(FIRST) if is_old else new_body(NAME, FIRST)
    body = body.replace(FIRST.text.rstrip(), "\n".join(lines))
    _, changed = after(FIRST.title, in_a_browser(body) if browser else body)
    assert changed.count(line) == 1
    assert changed.count("| 1 | 3 |") == 1
    assert "| 1 | 2 |" not in changed
    kept = changed.replace(new_body(NAME, SECOND).strip(), "")
    assert kept.split("\n", 1)[0 if kept.startswith(line) else 1].strip() == line


@pytest.mark.parametrize("browser", [False, True])
def test_an_issue_of_an_earlier_version_is_taken_over(browser: bool) -> None:
    body = in_a_browser(old_body(FIRST)) if browser else old_body(FIRST)
    assert after(FIRST.title, body)[1].strip() == new_body(NAME, SECOND).strip()
    # It is not known what was sent: all of it may be a person's.
    title, changed = after(FIRST.title, f"{body}a note", sent=None)
    assert title == FIRST.title
    assert changed.startswith("since Monday")
    assert changed.endswith("a note")
    assert "| 1 | 2 |" in changed
    assert "| 1 | 3 |" in changed


def test_a_title_that_a_person_edited_is_theirs_until_it_is_ours_again() -> None:
    title, body = after("look here: insert is 9 % slower", new_body(NAME, FIRST))
    assert title == "look here: insert is 9 % slower"
    assert after(SECOND.title, body, FIRST)[0] == FIRST.title
    assert after("mine", old_body(FIRST))[0] == "mine"


def test_nothing_is_written_when_only_the_ends_of_lines_differ() -> None:
    body = in_a_browser(f"note\n\n{new_body(NAME, FIRST)}")
    assert edited(NAME, FIRST.title, body, FIRST, None) == (None, None)
    assert is_written(NAME, body, f"note\n\n{new_body(NAME, FIRST)}")
    assert not is_written(NAME, body, new_body(NAME, FIRST))


def test_a_box_that_a_person_ticked_is_no_text_of_theirs() -> None:
    listed = IssueText("several", "- [ ] one\n- [x] two\n")
    body = new_body(NAME, listed).replace("- [ ] one", "- [X] one")
    assert after("several", body, listed, listed)[1] == new_body(NAME, listed)


def test_a_body_of_people_leaves_less_room_for_ours() -> None:
    long = IssueText("x", "y" * 70_000)
    assert len(new_body(NAME, long)) < 65_536
    _, changed = after("x", f"{'z' * 60_000}\n{new_body(NAME, FIRST)}", long)
    assert changed.count("z") == 60_000
    assert len(changed) < 65_536
    assert len(changed) > LONGEST_BODY
    assert MORE in changed


def test_only_an_issue_without_a_word_of_a_person_is_ours_alone() -> None:
    body = new_body(NAME, FIRST)
    assert is_ours_alone(NAME, FIRST.title, in_a_browser(body))
    assert is_ours_alone(NAME, "any", old_body(FIRST))
    for title, other in (
        ("mine", body),
        (FIRST.title, f"{body}\nmine"),
        (FIRST.title, f"mine\n{body}"),
        (FIRST.title, body.replace("| 1", "mine")),
        (FIRST.title, f"{old_body(FIRST)}mine"),
        (FIRST.title, "mine"),
    ):
        assert not is_ours_alone(NAME, title, other)

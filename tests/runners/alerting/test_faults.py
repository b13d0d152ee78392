"""Every fault of a tracker, three times in a row: no issue is doubled, lost or silenced."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.runners.alerting.conftest import OTHERS, TIMEOUT, Stand
from tests.runners.alerting.github import Fault
from tests.runners.alerting.pauses import LATER, retry_date

TIMES = 3
"""How often every fault is played, one after the other."""

HTML = b"<!DOCTYPE html><title>Sign in</title>"
NOT_AN_ISSUE = b'{"number": 1}'
FAILED = {"resource": "Issue", "field": "title", "code": "invalid"}

FAULTS: dict[str, Callable[[], Fault]] = {
    "no answer": Fault,
    "no answer in time": lambda: Fault(500, wait=1.3 * TIMEOUT, after=True),
    "cut answer": lambda: Fault(cut=True),
    "truncated JSON": lambda: Fault(200, content=b'{"number": 1, "title": "in', after=True),
    "deep JSON": lambda: Fault(200, content=b"[" * 100_000, after=True),
    "a number of 5,000 digits": lambda: Fault(200, content=b'{"number": ' + b"9" * 5_000 + b"}"),
    "HTML with 200": lambda: Fault(200, {"Content-Type": "text/html"}, content=HTML, after=True),
    "HTML with 502": lambda: Fault(502, {"Content-Type": "text/html"}, content=HTML),
    "JSON that is no issue": lambda: Fault(200, content=NOT_AN_ISSUE, after=True),
    "null": lambda: Fault(200, content=b"null"),
    "an empty answer": lambda: Fault(200, content=b"", after=True),
    "204": lambda: Fault(204, content=b""),
    "202": lambda: Fault(202, content=b"{}", after=True),
    "not gzip": lambda: Fault(200, {"Content-Encoding": "gzip"}, content=b"plain", after=True),
    "no UTF-8": lambda: Fault(200, content=b'"\xff\xfe"'),
    "another host": lambda: Fault(302, {"Location": "http://127.0.0.2:9/login"}),
    "another port": lambda: Fault(307, {"Location": "http://127.0.0.1:9/login"}),
    "no place": lambda: Fault(301, {"Location": "http://[::1/x"}),
    "an endless redirect": lambda: Fault(307, {"Location": "?"}),
    "304": lambda: Fault(304, content=b""),
    "401": lambda: Fault(401),
    "403": lambda: Fault(403),
    "403 of a limit": lambda: Fault(403, message="You have exceeded a secondary rate limit"),
    "404": lambda: Fault(404),
    "410": lambda: Fault(410, message="Issues are disabled for this repo"),
    "422": lambda: Fault(422, message="Validation Failed", errors=(FAILED, "too bad")),
    "429": lambda: Fault(429, LATER),
    "429 with a date": lambda: Fault(429, retry_date()),
    "429 with nonsense": lambda: Fault(429, {"Retry-After": "\u00b2 days"}),
    "429 for ever": lambda: Fault(429, {"Retry-After": "9" * 400}),
    "500": lambda: Fault(500),
    "502 after success": lambda: Fault(502, after=True),
    "503 with a date": lambda: Fault(503, retry_date()),
    "504 after success": lambda: Fault(504, after=True),
}


def met(*methods: str) -> pytest.MarkDecorator:
    """Every fault of GitHub's at each request, and those of other trackers at the first write alone."""
    cases = [("github", name, method) for method in methods for name in FAULTS]
    cases += [(other, name, methods[-1]) for other in OTHERS for name in FAULTS]
    return pytest.mark.parametrize(("github", "name", "method"), cases, indirect=["github"])


@met("GET", "POST")
def test_a_fault_when_an_issue_is_opened(stand: Stand, name: str, method: str) -> None:
    for _ in range(TIMES):
        fault = replace(FAULTS[name](), method=method)
        stand.github.faults = [fault]
        before = len(stand.github.issues)
        code, told = stand.report()
        if stand.github.faults:  # it was carried out before, so that nothing is opened any more
            stand.github.faults = []
            break
        assert code == 2, told
        assert "1 waiting" in told
        assert "alerts wait in the outbox (1)" in told
        assert len(stand.github.issues) <= before + 1
        stand.pause_is_over()
    code, told = stand.report()
    assert (code, len(stand.github.issues), stand.open_issues()) == (0, 1, [1])
    alert = stand.alert()
    assert (alert.issue, alert.is_due, alert.muted, alert.last_error) == (1, False, None, None)


@met("GET", "PATCH")
def test_a_fault_when_an_issue_is_closed(stand: Stand, name: str, method: str) -> None:
    assert stand.report()[0] == 0
    stand.end()
    for _ in range(TIMES):
        stand.github.faults = [replace(FAULTS[name](), method=method)]
        code, told = stand.report()
        if stand.github.faults:  # the lost request was carried out
            assert stand.open_issues() == []
            stand.github.faults = []
            break
        assert code == 2, told
        stand.pause_is_over()
    code, told = stand.report()
    assert (code, len(stand.github.issues), stand.open_issues()) == (0, 1, [])
    assert "0 silenced, 0 waiting" in told
    assert (stand.alert().muted, stand.alert().is_due) == (None, False)
    # It is not silenced: when the change returns, the issue is opened again.
    stand.fail()
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]

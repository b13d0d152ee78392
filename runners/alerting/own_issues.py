"""Which issues of the tracker are an alert's: by the marker that nobody else knows, whatever clocks say."""

from history.store.alert_outbox import Alert, IssueState
from runners.alerting.answers import is_marked, marker_name
from runners.alerting.issue_block import ANY_MARKER, end_marker
from runners.alerting.tracker import Issue, IssueRefusedError, Tracker


class OwnIssues:
    """The issues of alerts in one tracker, in one delivery. All methods raise TrackerError."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._listed: list[Issue] | None = None
        """The tracker's issues with a marker of Tidemark's, once they were listed."""

        self._latest = 0
        """The highest number of an issue when they were listed."""

    def is_known(self, alert: Alert) -> bool:
        """Whether the outbox knows the number of the alert's issue in this tracker's repository."""
        return alert.issue is not None and alert.repository in (None, self._tracker.repository)

    def existing(self, alert: Alert) -> Issue | None:
        """The alert's issue. The outbox may not know of it, because the answer to `create` can be lost."""
        if self.is_known(alert):
            assert alert.issue is not None
            return self._tracker.read(alert.issue)
        ours = self.marked(alert)
        if not ours:
            return None
        # Who closed it is known of an issue that is read alone.
        return self._tracker.read(ours[0].number) if ours[0].state is IssueState.CLOSED else ours[0]

    def marked(self, alert: Alert) -> list[Issue]:
        """The issues that hold the alert's marker, the oldest first.

        Only the tracker's own numbers say which issues are too old: its clock and ours can be far apart.
        """
        if alert.asked_after is not None and alert.repository == self._tracker.repository:
            issues = list(self._tracker.newest(alert.asked_after))
        else:
            issues = self._all()
        return sorted((issue for issue in issues if is_marked(alert, issue)), key=lambda issue: issue.number)

    def latest_number(self, alert: Alert) -> int:
        """The number above which an alert's issue is going to be, or is if it was asked for in vain."""
        if alert.asked_after is not None and alert.repository == self._tracker.repository:
            return alert.asked_after
        self._all()
        return self._latest

    def require(self, alert: Alert, issue: Issue) -> None:
        """Raise IssueRefusedError for an issue that is not surely this alert's: it is somebody's."""
        if issue.moved_to is not None:
            raise IssueRefusedError(
                f"#{alert.issue} was transferred to {issue.moved_to}#{issue.number} and is not changed there",
                where=self._tracker.repository,
                hint="transfer it back, or label it `acknowledged` there",
            )
        if not is_marked(alert, issue):
            raise IssueRefusedError(
                f"#{issue.number} is not changed: its body does not hold {end_marker(marker_name(alert))}",
                where=self._tracker.repository,
                hint="put that line back into its body, or label it `acknowledged`, if it is this alert's",
            )

    def _all(self) -> list[Issue]:
        if self._listed is None:
            self._listed = []
            for issue in self._tracker.newest(0):
                self._latest = max(self._latest, issue.number)
                if ANY_MARKER in issue.body:
                    self._listed.append(issue)
        return self._listed

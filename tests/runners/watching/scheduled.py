"""Stands in for a GitHub that knows of schedules, of the last push, and of releases of its runner."""

from typing import Any

from tests.runners.alerting.github import NOT_FOUND, REPOSITORY, Answer, GitHub

REFUSED = "refused"
"""The state of a workflow that the token may not see."""


class Scheduled(GitHub):
    """The repository `example/alerts` with the workflows."""

    def __init__(self) -> None:
        super().__init__()
        self.workflow_states: dict[str, str] = {}
        """Of each workflow that the repository has, by the name of its file."""
        self.quiet_days = 0.0
        """Since when nothing was pushed."""
        self.is_private = False
        self.releases: dict[str, float] = {}
        """Of GitHub's runner: tag -> days since it was published."""

    def answer(self, method: str, target: str, body: Any) -> Answer:
        path, _, query = target.partition("?")
        if path == "/repos/actions/runner/releases":
            published = {tag: self.moment(-days) for tag, days in self.releases.items()}
            return Answer(200, [{"tag_name": tag, "published_at": at} for tag, at in published.items()])
        if "/actions/workflows/" in path and not query:
            return self._workflow(path.rpartition("/")[2])
        answer = super().answer(method, target, body)
        if path == f"/repos/{REPOSITORY}":
            pushed = {"pushed_at": self.moment(-self.quiet_days), "html_url": f"{self.url}/{REPOSITORY}"}
            return answer._replace(content=answer.content | pushed | {"private": self.is_private})
        return answer

    def _workflow(self, name: str) -> Answer:
        state = self.workflow_states.get(name)
        if state == REFUSED:
            return Answer(403, {"message": "Resource not accessible by personal access token"})
        return NOT_FOUND if state is None else Answer(200, {"state": state, "html_url": self.url})

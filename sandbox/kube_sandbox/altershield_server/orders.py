"""An order."""

from dataclasses import dataclass, field

from kube_sandbox.altershield_server.binding import Body


@dataclass(slots=True, kw_only=True)
class Order:
    id: str
    """The id that the client gives (`bizExecOrderId`)."""

    server_id: str
    platform: str
    scene: str
    scenario: str
    request: Body
    """The request that created the order."""

    closings: list[Body] = field(default_factory=list)
    """The close requests, the newest last (at most 10), for tests. The published server stores nothing of them: it
    accepts calls for a closed order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The texts that a script can select the order by: its id, its title, its applications."""
        apps = [str(app) for app in self.request["changeApps"] or [] if app]
        return (self.id, self.request["changeTitle"], *apps)

    @property
    def crashes_checks(self) -> bool:
        """A content without a type crashes the checks of the order's nodes."""
        contents = self.request["changeContents"] or []
        return any(not isinstance(content.get("contentType"), dict) for content in contents)

    def close(self, request: Body) -> None:
        self.closings = [*self.closings[-9:], request]

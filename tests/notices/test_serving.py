"""`genba serve` tells people what waits for them, with no fleet at work."""

from genba.domain.fleet.records import Escalation, EscalationKind
from tests.fleet.yard import Yard
from tests.notices.receiver import Receiver
from tests.project import Project, until


def test_a_dashboard_sends_what_is_due(project: Project, receiver: Receiver) -> None:
    with Yard(project) as yard:
        yard.set(notify={"webhook": {"url": receiver.address}})
        yard.task(1, "Add a page")
        yard.begin("serve", "--port", "0")
        until(lambda: "serving" in yard.log(), 60)
        assert receiver.posts == []
        with yard.board() as board:
            asked = Escalation(task=1, kind=EscalationKind.QUESTION, question="which colour?")
            board.escalate(asked, None)
        until(lambda: receiver.posts, 60)
        assert receiver.posts[0].json["question"] == "which colour?"

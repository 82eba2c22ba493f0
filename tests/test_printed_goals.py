"""Goals exactly as the documentation prints them, held against a service that runs."""

from tests.project import Project

SERVER = """
import http.server, json, sys

class Login(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        found = json.loads(self.rfile.read(size) or b"{}")
        body = json.dumps({KEY: found.get("user", "nobody")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Login).serve_forever()
"""
SETTINGS = 'verification: {serve: "python3 server.py {port}"}\n'


def served(project: Project, key: str, settings: str = SETTINGS) -> None:
    project.write(".genba/config.yaml", settings)
    project.write("server.py", SERVER.replace("KEY", repr(key)))
    project.agent()


GOALS = ("--goal", "endpoint_responds: POST /api/login → 200", "--goal", "response_contains: $.token exists")


def test_a_response_is_that_of_the_last_endpoint_of_the_task(project: Project) -> None:
    served(project, "token")
    project.genba("task", "add", "Log in", *GOALS, check=0)
    assert project.run("worker", "--issue", "1")["outcome"] == "completed"
    assert project.task(1).status == "done"


def test_a_response_without_the_value_is_rejected(project: Project) -> None:
    served(project, "session")
    project.genba("task", "add", "Log in", *GOALS, check=0)
    result = project.run("worker", "--issue", "1", check=None)
    assert result["merged"] == ""
    assert "response_contains" in result["reason"]


def test_the_same_two_lines_hold_in_the_settings(project: Project) -> None:
    """Another request before it, and its body: the response is that of the nearest endpoint."""
    goals = """
dod:
  - endpoint_responds: POST /other → 200
  - {type: endpoint_responds, url: /api/login, method: POST, body: {user: ada}}
  - response_contains: $.token == "ada"
"""
    served(project, "token", SETTINGS + goals)
    project.issue(1, "Log in")
    assert project.run("worker", "--issue", "1")["outcome"] == "completed"


def test_a_response_without_any_endpoint_is_an_error_and_never_a_pass(project: Project) -> None:
    served(project, "token")
    project.genba("task", "add", "Log in", "--goal", "response_contains: $.token exists", check=0)
    result = project.run("worker", "--issue", "1", check=None)
    assert result["merged"] == ""
    assert "no endpoint_responds stands before it" in result["reason"]

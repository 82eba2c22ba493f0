"""REST: who is asking, who is there, apps and their tokens, the rate limit."""

from tests.standins.github import access, code_shapes, shapes
from tests.standins.github.asking import Answer, Ask, route
from tests.standins.github.hub import not_found
from tests.standins.github.state import Installation


@route("GET", "/user")
def _me(ask: Ask) -> Answer:
    return Answer(data=shapes.private_user(ask.hub, ask.actor))


@route("GET", "/users/{login}")
def _user(ask: Ask) -> Answer:
    return Answer(data=shapes.public_user(ask.hub, ask.hub.user(ask.holes["login"])))


@route("GET", "/meta")
def _meta(_: Ask) -> Answer:
    return Answer(data={"verifiable_password_authentication": False})


@route("GET", "/rate_limit")
def _rate_limit(ask: Ask) -> Answer:
    token = ask.token
    access.new_window(ask.hub, token)

    def part(used: int) -> dict[str, int]:
        return {"limit": token.limit, "remaining": max(0, token.limit - used), "reset": token.reset, "used": used}

    core, graphql = part(token.used), part(token.graphql_used)
    return Answer(data={"resources": {"core": core, "search": part(0), "graphql": graphql}, "rate": core})


@route("GET", "/installation/repositories")
def _installed(ask: Ask) -> Answer:
    installation = ask.token.installation
    if installation is None:
        raise not_found()
    rows = [one for one in ask.hub.repositories.values() if one.owner is installation.account]
    return ask.paged(rows, lambda one: code_shapes.repository(ask.hub, one), wrap="repositories")


# apps sign their requests by a JWT: there is no viewer


@route("GET", "/app")
def _app(ask: Ask) -> Answer:
    app = access.app_of(ask.hub, ask.headers.get("authorization", ""))
    return Answer(
        data={
            "id": app.id,
            "slug": app.slug,
            "client_id": app.client_id,
            "node_id": f"A_{app.id}",
            "owner": shapes.user(ask.hub, app.bot),
            "name": app.slug,
            "description": None,
            "external_url": ask.hub.web,
            "html_url": f"{ask.hub.web}/apps/{app.slug}",
            "created_at": app.bot.created_at,
            "updated_at": app.bot.created_at,
            "permissions": {},
            "events": [],
        }
    )


def _installation(ask: Ask) -> Installation:
    app = access.app_of(ask.hub, ask.headers.get("authorization", ""))
    found = ask.hub.installations.get(ask.hole("installation_id"))
    if found is None or found.app is not app:
        raise not_found()
    return found


def _shape(ask: Ask, one: Installation) -> dict[str, object]:
    place = f"{ask.hub.url}/app/installations/{one.id}"
    return {
        "id": one.id,
        "account": shapes.user(ask.hub, one.account),
        "repository_selection": "all",
        "access_tokens_url": f"{place}/access_tokens",
        "repositories_url": f"{ask.hub.url}/installation/repositories",
        "html_url": f"{ask.hub.web}/organizations/{one.account.login}/settings/installations/{one.id}",
        "app_id": one.app.id,
        "client_id": one.app.client_id,
        "app_slug": one.app.slug,
        "target_id": one.account.id,
        "target_type": one.account.kind,
        "permissions": one.permissions,
        "events": [],
        "created_at": one.created_at,
        "updated_at": one.created_at,
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }


@route("GET", "/app/installations/{installation_id}")
def _get_installation(ask: Ask) -> Answer:
    return Answer(data=_shape(ask, _installation(ask)))


@route("POST", "/app/installations/{installation_id}/access_tokens")
def _token(ask: Ask) -> Answer:
    installation = _installation(ask)
    token = access.installation_token(ask.hub, installation)
    return Answer(
        201,
        {
            "token": token.value,
            "expires_at": token.expires_at,
            "permissions": installation.permissions,
            "repository_selection": "all",
        },
    )


@route("GET", "/repos/{owner}/{repo}/installation")
def _installation_of(ask: Ask) -> Answer:
    app = access.app_of(ask.hub, ask.headers.get("authorization", ""))
    owner = ask.hub.user(ask.holes["owner"])
    for one in ask.hub.installations.values():
        if one.app is app and one.account is owner:
            return Answer(data=_shape(ask, one))
    raise not_found()

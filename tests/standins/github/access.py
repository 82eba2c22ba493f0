"""Who asks, and how often they may: tokens, apps, rate limits."""

import base64
import binascii
import secrets
from typing import Any

from tests.standins.github.faults import SECONDARY
from tests.standins.github.hub import Hub, Refused
from tests.standins.github.state import App, Installation, Token

HOUR, MINUTE = 3600, 60


def viewer(hub: Hub, authorization: str) -> Token | None:
    if not authorization:
        return None
    kind, _, value = authorization.partition(" ")
    value = value.strip()
    if kind.casefold() == "basic":
        try:
            name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise Refused(401, "Bad credentials", kind="UNAUTHORIZED") from None
        value = secret if secret not in ("", "x-oauth-basic") else name
    token = hub.tokens.get(value)
    if token is None or token.revoked or (token.expires_at and hub.now() >= token.expires_at):
        raise Refused(401, "Bad credentials", kind="UNAUTHORIZED")
    return token


def new_window(hub: Hub, token: Token) -> None:
    if hub.seconds() >= token.reset:
        token.reset = int(hub.seconds()) + HOUR
        token.used = token.graphql_used = 0


def spend(hub: Hub, token: Token | None) -> dict[str, str]:
    """Count a REST request; what GitHub says about it in the headers. 403 where nothing is left."""
    if token is None:
        return {}
    new_window(hub, token)
    if token.used >= token.limit:
        headers = limits(token, "core")
        output = f"API rate limit exceeded for user ID {token.user.id}."
        raise Refused(403, output, kind="RATE_LIMITED", headers=headers)
    token.used += 1
    return limits(token, "core")


def give_back(token: Token | None) -> dict[str, str]:
    """A 304 does not count."""
    if token is None:
        return {}
    token.used -= 1
    return limits(token, "core")


def pace(hub: Hub) -> None:
    """Count a change; refuse it by the secondary limit where there were too many in this minute, or in this hour."""
    if hub.changes_allowed is None:
        return
    now = hub.seconds()
    hub.changes = [moment for moment in hub.changes if now - moment < HOUR]
    minute = [moment for moment in hub.changes if now - moment < MINUTE]
    per_minute, per_hour = hub.changes_allowed
    if len(minute) >= per_minute or len(hub.changes) >= per_hour:
        wait = MINUTE - (now - minute[0]) if len(minute) >= per_minute else HOUR - (now - hub.changes[0])
        headers = {"retry-after": str(int(wait) + 1)}
        raise Refused(403, SECONDARY, kind="RATE_LIMITED", headers=headers)
    hub.changes.append(now)


def limits(token: Token, resource: str) -> dict[str, str]:
    used = token.graphql_used if resource == "graphql" else token.used
    return {
        "x-ratelimit-limit": str(token.limit),
        "x-ratelimit-remaining": str(max(0, token.limit - used)),
        "x-ratelimit-used": str(used),
        "x-ratelimit-reset": str(token.reset),
        "x-ratelimit-resource": resource,
    }


def app_of(hub: Hub, authorization: str) -> App:
    """The app that signed a JWT: RS256, not older than it may be, at most ten minutes good."""
    import jwt

    value = authorization.partition(" ")[2]
    try:
        claimed = jwt.decode(value, options={"verify_signature": False})
        name = str(claimed.get("iss", ""))
        app = next(app for app in hub.apps.values() if name in (str(app.id), app.client_id))
        claims: dict[str, Any] = jwt.decode(
            value, app.public_key, algorithms=["RS256"], options={"require": ["exp", "iat", "iss"]}, leeway=60
        )
    except (jwt.PyJWTError, StopIteration):
        raise Refused(401, "A JSON web token could not be decoded", kind="UNAUTHORIZED") from None
    if claims["exp"] - claims["iat"] > 660:
        output = "'Expiration time' claim ('exp') is too far in the future"
        raise Refused(401, output, kind="UNAUTHORIZED")
    return app


def installation_token(hub: Hub, installation: Installation, seconds: int = HOUR) -> Token:
    """A new token of an installation, good for an hour."""
    token = Token(
        value=f"ghs_{secrets.token_hex(18)}",
        user=installation.app.bot,
        scopes=frozenset(),
        expires_at=hub.moment(hub.seconds() + seconds),
        app=installation.app,
        installation=installation,
    )
    hub.tokens[token.value] = token
    return token

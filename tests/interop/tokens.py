"""Bearer tokens, made here from their definition (RFC 7519, HS256 and HS384)."""

import base64
import hashlib
import hmac
import json
import time

LIST, APPLY, READ, APPEND = 2, 4, 8, 16


def _part(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=")


def token(key, capability, selector=None, algorithm="HS256", lives=600, **claims):
    """A token of a base64 key: what it may do, on which journals, for how many seconds."""
    header = {"alg": algorithm, "typ": "JWT"}
    now = int(time.time())
    body = {"cap": capability, "exp": now + lives, "iat": now, **claims}
    body["sel"] = selector or {"include": {"labels": None}, "exclude": {"labels": None}}
    signed = b".".join(_part(json.dumps(part).encode()) for part in (header, body))
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384}[algorithm]
    signature = hmac.new(base64.b64decode(key), signed, digest).digest()
    return (signed + b"." + _part(signature)).decode()


def only(name):
    """The selector of one journal, in the claims' JSON."""
    return {"include": {"labels": [{"name": "name", "value": name}]}, "exclude": {"labels": None}}

"""Tokens: what a broker with keys lets through, and what it refuses (gazette-spec 1.5)."""

import grpc
from journals import expect_error
from tokens import APPEND, APPLY, LIST, READ, only, token
from wire import Broker, pb, selector, spec

EVERYTHING = 0xFFFFFFFF
DENIED = grpc.StatusCode.UNAUTHENTICATED


def tokens_are_checked(address, key):
    def asked(*arguments, **options):
        return Broker(address, token(key, *arguments, **options))

    operator = asked(EVERYTHING)
    operator.create(spec("secret/one"), spec("secret/two"))
    operator.append("secret/one", b"hidden")
    # Case: no token, another's key, no signature, a life that is over.
    other = "b3RoZXIta2V5LW90aGVyLWtleQ=="
    refused = [
        Broker(address),
        Broker(address, token(other, EVERYTHING)),
        Broker(address, "nonsense"),
        asked(EVERYTHING, lives=-60),
    ]
    for broker in refused:
        expect_error(lambda: broker.content("secret/one"), DENIED, "")
        expect_error(lambda: broker.append("secret/one", b"x"), DENIED, "")
    # Case: a token that may do another thing.
    expect_error(lambda: asked(READ).append("secret/one", b"x"), DENIED, "")
    expect_error(lambda: asked(APPEND).content("secret/one"), DENIED, "")
    expect_error(lambda: asked(LIST).create(spec("secret/three")), DENIED, "")
    # Case: what a token is not for is not there.
    one = asked(READ | APPEND | LIST, only("secret/one"), algorithm="HS384")
    assert one.content("secret/one") == b"hidden"
    assert one.append("secret/two", b"x").status == pb.JOURNAL_NOT_FOUND
    shown = [page.journals for page in one.list(selector("secret/", prefix=True))]
    assert [journal.spec.name for journals in shown for journal in journals] == ["secret/one"]
    narrow = asked(APPLY, only("secret/one"))
    expect_error(lambda: narrow.create(spec("secret/three")), DENIED, "")

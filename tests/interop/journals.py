"""What a client of protocol.Journal does, and what it expects to come of it."""

import gzip
import hashlib
import queue
import threading
import time

import grpc
from wire import LIMIT, labels, pb, selector, spec


def check_header(header):
    """The rules by which Gazette's clients take a header (gazette-spec 1.4)."""
    etcd = header.etcd
    assert etcd.cluster_id and etcd.member_id and etcd.raft_term and etcd.revision > 0, header
    assert header.process_id.zone and header.process_id.suffix, header
    route = header.route
    assert -1 <= route.primary < max(len(route.members), 1), header
    assert len(route.endpoints) == len(route.members), header


def append_and_read(broker, _root):
    broker.create(spec("interop/plain", length=1 << 20))
    content = bytes(range(256)) * 1000
    pieces = [content[at : at + 32736] for at in range(0, len(content), 32736)]
    response = broker.append("interop/plain", *pieces)
    check_header(response.header)
    commit = response.commit
    assert (response.status, commit.begin, commit.end) == (pb.OK, 0, len(content))
    assert response.total_chunks == len(pieces) + 1
    sha = hashlib.sha1(content).digest()
    sum = commit.sum
    found = sum.part1.to_bytes(8, "big") + sum.part2.to_bytes(8, "big")
    assert found + sum.part3.to_bytes(4, "big") == sha
    responses = list(broker.read("interop/plain", offset=7))
    check_header(responses[0].header)
    assert not any(response.HasField("header") for response in responses[1:])
    assert b"".join(response.content for response in responses) == content[7:]
    last = responses[-1]
    assert (last.status, last.offset) == (pb.OFFSET_NOT_YET_AVAILABLE, len(content))
    assert broker.content("interop/plain;meta/x", offset=100, end_offset=300) == content[100:300]


def statuses(broker, _root):
    broker.create(spec("interop/fixed", flags=1), spec("interop/blind", flags=2))
    assert broker.append("no/such/journal", b"x").status == pb.JOURNAL_NOT_FOUND
    assert broker.append("interop/plain", b"x", offset=1).status == pb.WRONG_APPEND_OFFSET
    assert broker.append("interop/fixed", b"x").status == pb.NOT_ALLOWED
    assert broker.append("interop/fixed").status == pb.OK
    refused = list(broker.read("interop/blind"))
    assert [response.status for response in refused] == [pb.NOT_ALLOWED]
    # Case: half-closing without the empty message takes everything back.
    head = broker.append("interop/plain").commit.end
    first = pb.AppendRequest(journal="interop/plain")
    expect_error(
        lambda: broker.append_raw([first, pb.AppendRequest(content=b"x")]),
        grpc.StatusCode.UNKNOWN,
        "unexpected EOF",
    )
    assert broker.append("interop/plain").commit.end == head
    expect_error(lambda: broker.append("a/"), grpc.StatusCode.UNKNOWN, "length")
    expect_error(
        lambda: broker.create(spec("../../out/of/tree")), grpc.StatusCode.UNKNOWN, "directory"
    )
    expect_error(
        lambda: broker.create(spec("interop/plain/nested")), grpc.StatusCode.UNKNOWN, "nests"
    )


def expect_error(call, code, text):
    try:
        call()
    except grpc.RpcError as error:
        assert (error.code(), text in error.details()) == (code, True), error
        return
    raise AssertionError(f"expected an error with {text!r}")


def registers(broker, _root):
    broker.create(spec("interop/fenced"))
    response = broker.append("interop/fenced", b"a", union_registers=labels(author="one"))
    assert response.registers == labels(author="one")
    one, two = (pb.LabelSelector(include=labels(author=name)) for name in ("one", "two"))
    refused = broker.append("interop/fenced", b"b", check_registers=two)
    assert (refused.status, refused.registers) == (pb.REGISTER_MISMATCH, labels(author="one"))
    taken = broker.append(
        "interop/fenced", b"c", check_registers=one, union_registers=labels(author="two")
    )
    assert (taken.status, taken.registers) == (pb.OK, labels(author="two"))
    assert broker.content("interop/fenced") == b"ac"


def blocking_read(broker, _root):
    broker.create(spec("interop/followed"))
    stream = broker.read("interop/followed", block=True)
    found = queue.Queue()

    def follow():
        try:
            for response in stream:
                if response.content:
                    found.put(response.content)
        except grpc.RpcError as error:
            found.put(error)

    threading.Thread(target=follow, daemon=True).start()
    for text in (b"one\n", b"two\n", b"three\n"):
        broker.append("interop/followed", text)
        assert found.get(timeout=LIMIT) == text
    stream.cancel()


def snapshot(stream):
    """The names of a snapshot, and its header: pages up to the empty message."""
    names, header = [], None
    for response in stream:
        if response == pb.ListResponse():
            return names, header
        if header is None:
            check_header(response.header)
            header = response.header
        else:
            assert not response.HasField("header")
        assert len(response.journals) <= 25
        names += [journal.spec.name for journal in response.journals]
    raise AssertionError("a watch ended")


def list_and_watch(broker, _root):
    every = selector("watched/", prefix=True)
    broker.create(*(spec(f"watched/{at:02}") for at in range(60)))
    stream = broker.list(every, watch=True)
    names, header = snapshot(stream)
    assert names == [f"watched/{at:02}" for at in range(60)]
    broker.create(spec("watched/more"))
    names, later = snapshot(stream)
    assert names[-1] == "watched/more" and later.etcd.revision > header.etcd.revision
    broker.apply(pb.ApplyRequest.Change(expect_mod_revision=-1, delete="watched/00"))
    assert len(snapshot(stream)[0]) == 60
    stream.cancel()
    # Case: resumed, it begins with the next change, whatever that is.
    resumed = broker.list(every, watch=True, watch_resume=header)
    assert len(snapshot(resumed)[0]) == 60
    resumed.cancel()
    assert sum(len(page.journals) for page in broker.list(every)) == 60


def applies(broker, _root):
    made = broker.create(spec("applied/one"))
    check_header(made.header)
    revision = made.header.etcd.revision
    change = pb.ApplyRequest.Change
    stale = change(expect_mod_revision=revision - 1, upsert=spec("applied/one"))
    both = [change(upsert=spec("applied/two")), stale]
    assert broker.apply(*both).status == pb.ETCD_TRANSACTION_FAILED
    assert [len(page.journals) for page in broker.list(selector("applied/two"))] == [0]
    assert broker.apply().status == pb.OK
    assert broker.apply(change(expect_mod_revision=-1, delete="no/such/one")).status == pb.OK
    deleted = broker.apply(change(expect_mod_revision=revision, delete="applied/one"))
    assert deleted.status == pb.OK and deleted.header.etcd.revision > revision


def suspends(broker, _root):
    kinds = pb.AppendRequest
    broker.create(spec("interop/asleep"))
    broker.append("interop/asleep", b"0123")
    now = broker.append("interop/asleep", suspend=kinds.SUSPEND_NOW)
    assert now.status == pb.SUSPENDED
    kept = broker.append("interop/asleep", b"x", suspend=kinds.SUSPEND_NO_RESUME)
    assert kept.status == pb.SUSPENDED
    # Case: a spec from a file, without `suspend`, does not lose where the journal goes on.
    broker.apply(pb.ApplyRequest.Change(expect_mod_revision=-1, upsert=spec("interop/asleep")))
    listed = next(iter(broker.list(selector("interop/asleep")))).journals[0].spec
    assert (listed.suspend.level, listed.suspend.offset) == (pb.JournalSpec.Suspend.PARTIAL, 4)
    resumed = broker.append("interop/asleep", b"4567")
    assert (resumed.status, resumed.commit.begin) == (pb.OK, 4)


def stored(broker, journal, count, **options):
    """The stored fragments of a journal, when there are so many."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        page = broker.fragments(journal, end_mod_time=1 << 40, **options)
        if len(page.fragments) >= count or page.next_page_token:
            return page
        time.sleep(0.05)
    raise AssertionError(f"{journal}: not {count} fragments in {LIMIT} s")


def opened(root, url):
    """The bytes behind a signed URL of a file store, which leaves out the file root."""
    assert url.startswith("file:///"), url
    return (root / url.removeprefix("file:///")).read_bytes()


def fragments(broker, root):
    ttl = {"seconds": 60}
    for codec, decoded in ((pb.NONE, bytes), (pb.GZIP, gzip.decompress)):
        journal = f"interop/stored-{codec}"
        broker.create(spec(journal, codec))
        contents = [bytes([at]) * 1500 for at in (97, 98, 99)]
        for content in contents:
            broker.append(journal, content)
        page = stored(broker, journal, 3, signatureTTL=ttl)
        check_header(page.header)
        for listed, content in zip(page.fragments, contents, strict=True):
            assert listed.spec.backing_store == "file:///" and listed.spec.mod_time > 0
            name = listed.signed_url.rsplit("/", 1)[1]
            begin, end, rest = name.split("-")
            assert (int(begin, 16), int(end, 16)) == (listed.spec.begin, listed.spec.end)
            assert rest.split(".")[0] == hashlib.sha1(content).hexdigest()
            assert decoded(opened(root, listed.signed_url)) == content
        # Case: pages.
        first = broker.fragments(journal, page_limit=2)
        assert len(first.fragments) == 2 and first.next_page_token == 3000
        rest = broker.fragments(journal, next_page_token=first.next_page_token)
        assert [listed.spec.begin for listed in rest.fragments] == [3000]
        # Case: the URL of a read's metadata.
        metadata = list(broker.read(journal, offset=1600, metadata_only=True))
        assert len(metadata) == 1
        assert decoded(opened(root, metadata[0].fragment_url)) == contents[1]
        assert broker.content(journal) == b"".join(contents)


def store_health(broker, _root):
    healthy = broker.health("file:///")
    check_header(healthy.header)
    assert (healthy.status, healthy.store_health_error) == (pb.OK, "")
    missing = broker.health("file:///no/such/directory/")
    assert missing.status == pb.FRAGMENT_STORE_UNHEALTHY and missing.store_health_error


CHECKS = [
    append_and_read,
    statuses,
    registers,
    blocking_read,
    list_and_watch,
    applies,
    suspends,
    fragments,
    store_health,
]

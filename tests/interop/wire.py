"""The wire: messages and stub made from gazette.proto at run time, and short ways to ask."""

import sys
import tempfile
from pathlib import Path

import grpc
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
# Against hanging, in seconds; it decides nothing else.
LIMIT = 60


def _generate():
    """Makes the Python of gazette.proto in a folder that goes again, and imports it."""
    with tempfile.TemporaryDirectory(prefix="interop-") as out:
        return _import(out)


def _import(out):
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{HERE}", f"-I{well_known}", f"--python_out={out}"]
    arguments += [f"--grpc_python_out={out}", str(HERE / "gazette.proto")]
    if protoc.main(arguments) != 0:
        sys.exit("interop: gazette.proto does not compile")
    sys.path.insert(0, out)
    # Compiled files would be written into a folder that is about to go.
    sys.dont_write_bytecode = True
    import gazette_pb2
    import gazette_pb2_grpc

    return gazette_pb2, gazette_pb2_grpc


pb, services = _generate()


class Broker:
    """A broker at HOST:PORT, with a token or none."""

    def __init__(self, address, token=None):
        self.stub = services.JournalStub(grpc.insecure_channel(address))
        self.metadata = [("authorization", f"Bearer {token}")] if token else []

    def _ask(self, name, request, limit=LIMIT):
        return getattr(self.stub, name)(request, timeout=limit, metadata=self.metadata)

    def apply(self, *changes):
        return self._ask("Apply", pb.ApplyRequest(changes=changes))

    def create(self, *specs):
        response = self.apply(*(pb.ApplyRequest.Change(upsert=spec) for spec in specs))
        assert response.status == pb.OK, response
        return response

    def append(self, journal, *pieces, **options):
        """One append of the pieces: a first message, each piece, an empty message, the end."""
        messages = [pb.AppendRequest(journal=journal, **options)]
        messages += [pb.AppendRequest(content=piece) for piece in pieces]
        return self._ask("Append", iter(messages + [pb.AppendRequest()]))

    def append_raw(self, messages):
        return self._ask("Append", iter(messages))

    def read(self, journal, **options):
        return self._ask("Read", pb.ReadRequest(journal=journal, **options))

    def content(self, journal, **options):
        return b"".join(response.content for response in self.read(journal, **options))

    def list(self, selector=None, **options):
        return self._ask("List", pb.ListRequest(selector=selector, **options))

    def fragments(self, journal, **options):
        return self._ask("ListFragments", pb.FragmentsRequest(journal=journal, **options))

    def health(self, store):
        return self._ask(
            "FragmentStoreHealth", pb.FragmentStoreHealthRequest(fragment_store=store)
        )


def labels(**pairs):
    made = [pb.Label(name=name, value=value) for name, value in sorted(pairs.items())]
    return pb.LabelSet(labels=made)


def selector(name, prefix=False):
    label = pb.Label(name="name", value=name, prefix=prefix)
    return pb.LabelSelector(include=pb.LabelSet(labels=[label]))


def spec(name, codec=None, length=1024, **fields):
    """The spec of a journal whose fragments are short and in the default file store."""
    fragment = pb.JournalSpec.Fragment(
        length=length, compression_codec=codec or pb.NONE, stores=["file:///"]
    )
    fragment.refresh_interval.seconds = 1
    return pb.JournalSpec(name=name, replication=1, fragment=fragment, **fields)

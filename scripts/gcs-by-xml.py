#!/usr/bin/env python3
"""Stands before fake-gcs-server and puts objects by XML: gcs-by-xml.py PORT SERVER_PORT.

The server takes a plain PUT of Google's XML interface only where it looks as if it were signed.
This adds that mark, refuses a put over an object that must be new and names a missing bucket in a
listing, as Google does, and passes everything else on as it is.
"""

import http.client
import http.server
import sys

PORT, SERVER_PORT = int(sys.argv[1]), int(sys.argv[2])
MARK = "X-Goog-Algorithm=GOOG4-RSA-SHA256"
NO_BUCKET = b"<Error><Code>NoSuchBucket</Code><Message>There is no such bucket.</Message></Error>"


class Passer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def ask(self, method, path, body=None, headers=None):
        server = http.client.HTTPConnection("127.0.0.1", SERVER_PORT)
        server.request(method, path, body, headers or {})
        answer = server.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length")
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path
        if self.command == "PUT" and MARK not in path:
            must_be_new = self.headers.get("x-goog-if-generation-match") == "0"
            if must_be_new and self.ask("HEAD", path)[0] == 200:
                self.reply(412, [], b"")
                return
            path += ("&" if "?" in path else "?") + MARK
        status, headers, content = self.ask(self.command, path, body, dict(self.headers))
        if self.command == "PUT" and status == 200:
            # The answer of the XML interface names the object's version in its headers.
            headers = [(name, value) for name, value in headers if name.lower() != "etag"]
            headers.append(("ETag", '"put"'))
        if status == 500 and "list-type=2" in path:
            self.reply(404, [], NO_BUCKET)
            return
        self.reply(status, headers, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Passer).serve_forever()

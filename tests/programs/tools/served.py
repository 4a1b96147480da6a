"""Serves a folder over HTTP, with ranges, and prints the port: served.py FOLDER."""
import http.server
import os
import sys

folder = sys.argv[1]


class Served(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        with open(os.path.join(folder, os.path.basename(self.path)), "rb") as file:
            content = file.read()
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:])


server = http.server.HTTPServer(("127.0.0.1", 0), Served)
print(server.server_port, flush=True)
server.serve_forever()

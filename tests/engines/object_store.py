"""A small object store on loopback that implements as much of the protocol of S3 as readers of Parquet need."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@contextmanager
def object_store(objects):
    """Serve a mapping of "bucket/key" to bytes; yields the options that polars and other readers take."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments):
            """Nothing is logged."""

        def reply(self, status, body, **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", headers.pop("length", None) or str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self):
            url = urlsplit(self.path)
            query, path = parse_qs(url.query), unquote(url.path).lstrip("/")
            if "list-type" in query:
                bucket, prefix = path.strip("/"), query.get("prefix", [""])[0]
                keys = sorted(k.partition("/")[2] for k in objects if k.startswith(f"{bucket}/{prefix}"))
                parts = "".join(
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[f'{bucket}/{key}'])}</Size>"
                    '<ETag>"1"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
                    for key in keys
                )
                body = (
                    f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{parts}</ListBucketResult>"
                )
                return self.reply(200, body.encode(), Content_Type="application/xml")
            if path not in objects:
                return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
            data, request = objects[path], self.headers.get("Range")
            reference = {"ETag": '"1"', "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Accept_Ranges": "bytes"}
            if request is None:
                return self.reply(200, data, **reference)
            start, _, end = request.removeprefix("bytes=").partition("-")
            first = int(start) if start else max(0, len(data) - int(end))
            last = min(int(end), len(data) - 1) if start and end else len(data) - 1
            return self.reply(
                206, data[first : last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}", **reference
            )

        def do_HEAD(self):
            self.do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "aws_endpoint_url": f"http://127.0.0.1:{server.server_port}",
            "aws_access_key_id": "key",  # given, so that nobody asks the metadata service of a cloud
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
    finally:
        server.shutdown()
        server.server_close()

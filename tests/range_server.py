"""A server of ranges on the loopback that can be slow, wrong, or gone, as a test asks for it.

It also takes objects, whole or in parts, as S3 does where buckets are part of the path.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import http.server
import re
import socket
import threading
import time
from collections import deque
from urllib.parse import parse_qsl, unquote


class RangeServer:
    """Serves the bytes of `objects` by path; what else it does is set by the attributes.

    Attributes
    ----------
    objects : dict of str to bytes
    latency : float
        Seconds before an answer.
    bandwidth : float or None
        Bytes per second of all answers together.
    faults : deque of str
        What becomes of the next requests for ranges: "503", "403", "reset", "short", "ok"; "slow"
        pauses before the bytes and "trickle" before each of them, for `slow_seconds`; "elsewhere"
        sends other bytes of the object, as Content-Range says, "whole" all of it, "unsaid" no
        Content-Range, "longer" one of a longer object, and "other" bytes out of `others`.
    others : dict of str to bytes
        Versions of objects that another server behind the same name has.
    requests : list of (str, int, int)
        Path, begin and end of every range that was asked for.
    uploads : dict of str to dict of int to bytes
        The parts of uploads that were neither completed nor aborted.
    writes : list of (str, str, int)
        Kind, path and part number of requests that write: "put", "begin", "part", "complete",
        "abort", "copy", "delete".
    fails : callable
        ``fails(kind, path, part)`` says what becomes of a request that writes: None, a status such
        as 503, or "hang" until `released` is set.
    """

    def __init__(self):
        self.objects, self.requests, self.faults = {}, [], deque()
        self.others = {}
        self.uploads, self.writes, self.fails = {}, [], lambda kind, path, part: None
        self.released = threading.Event()
        self.latency, self.bandwidth, self.slow_seconds = 0.0, None, 30.0
        self.most_at_once = self._at_once = 0
        self._sent_until = 0.0
        self._tags = {}
        self._lock = threading.Lock()
        self._server = None
        self.port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Listen, at the port of before if it was stopped."""
        handler = type("Handler", (_Handler,), {"rules": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        """Refuse connections from now on, and break those that there are."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.break_connections()

    def ranges(self, path):
        return [(begin, end) for name, begin, end in list(self.requests) if name == path]

    def note(self, path, begin, end):
        """Count a request; what is to become of it."""
        with self._lock:
            self.requests.append((path, begin, end))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return self.faults.popleft() if self.faults else "ok"

    def tag_of(self, data):
        """The ETag of an object, computed once."""
        known = self._tags.get(id(data))
        if known is None or known[0] is not data:
            known = self._tags[id(data)] = data, '"' + hashlib.md5(data).hexdigest() + '"'
        return known[1]

    def written(self, kind, path=None):
        """How many requests of a kind that writes came for a path, or for any."""
        return sum(k == kind and path in (None, p) for k, p, _ in list(self.writes))

    def write(self, kind, path, part, upload, body):
        """Carry out a request that writes; the text of the answer."""
        with self._lock:
            if kind == "put":
                self.objects[path] = body
            elif kind == "begin":
                name = f"upload-{len(self.writes)}"
                self.uploads[name] = {}
                return _xml("InitiateMultipartUploadResult", UploadId=name)
            elif kind == "part":
                self.uploads[upload][part] = body
            elif kind == "complete":
                parts = self.uploads.pop(upload)
                listed = [int(number) for number in re.findall(rb"<PartNumber>(\d+)<", body)]
                assert listed == list(range(1, len(parts) + 1)), (listed, list(parts))
                self.objects[path] = b"".join(parts[number] for number in listed)
                return _xml("CompleteMultipartUploadResult", ETag=self.tag_of(self.objects[path]))
            elif kind == "abort":
                self.uploads.pop(upload, None)
            elif kind == "copy":
                self.objects[path] = self.objects[body]
                return _xml("CopyObjectResult", ETag=self.tag_of(self.objects[path]))
            else:
                self.objects.pop(path, None)
                return "<DeleteResult><Deleted><Key>key</Key></Deleted></DeleteResult>"
            return ""

    def over(self):
        with self._lock:
            self._at_once -= 1

    def send(self, file, data):
        """Write an answer as fast as the link allows."""
        step = 1 << 16
        for begin in range(0, len(data), step):
            piece = data[begin : begin + step]
            if self.bandwidth:
                with self._lock:
                    now = time.monotonic()
                    self._sent_until = max(self._sent_until, now) + len(piece) / self.bandwidth
                    wait = self._sent_until - now
                if wait > 0.002:
                    time.sleep(wait)
            file.write(piece)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *args):
        self._connections = set()
        super().__init__(*args)

    def process_request(self, request, address):
        self._connections.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request):
        self._connections.discard(request)
        super().shutdown_request(request)

    def break_connections(self):
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, address):
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    rules: RangeServer

    def log_message(self, *args):
        pass

    def handle_expect_100(self):
        going_on = super().handle_expect_100()
        self.wfile.flush()  # which waits for more otherwise, as the client does
        return going_on

    def do_PUT(self):
        source = self.headers.get("x-amz-copy-source")
        kind = "copy" if source else "part" if "partNumber" in self.path else "put"
        self._write(kind, unquote(source or "").lstrip("/"))

    def do_POST(self):
        if self.path.endswith("?delete"):
            self._write("delete")
        else:
            self._write("complete" if "uploadId" in self.path else "begin")

    def do_DELETE(self):
        self._write("abort" if "uploadId" in self.path else "delete")

    def _write(self, kind, source=""):
        rules, (path, _, query) = self.rules, self.path.partition("?")
        path, query = unquote(path.lstrip("/")), dict(parse_qsl(query))
        part, upload = int(query.get("partNumber", 0)), query.get("uploadId")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("?delete"):  # by which obstore removes a single object, too
            path = f"{path.rstrip('/')}/{re.search('<Key>(.*)</Key>', body.decode())[1]}"
        rules.writes.append((kind, path, part))
        fault = rules.fails(kind, path, part)
        if fault == "hang":
            rules.released.wait(60)
            fault = 503
        unknown = source not in rules.objects if kind == "copy" else upload not in rules.uploads
        if kind in ("copy", "part", "complete") and unknown:
            fault = fault or 404
        if fault:
            self._refuse(fault)
            return
        answer = rules.write(kind, path, part, upload, source if kind == "copy" else body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("ETag", rules.tag_of(body))
        self.end_headers()
        self.wfile.write(answer)

    def do_HEAD(self):
        self._answer(False)

    def do_GET(self):
        self._answer(True)

    def _list(self):
        """The objects in a folder of a bucket."""
        bucket, _, query = self.path.lstrip("/").partition("?")
        bucket, prefix = bucket.strip("/"), dict(parse_qsl(query)).get("prefix", "")
        start = f"{bucket}/{prefix}"
        found = "".join(
            _xml("Contents", Key=name[len(bucket) + 1 :], Size=str(len(data)), ETag="tag",
                 LastModified="2026-11-21T00:00:00.000Z").partition("?>")[2]
            for name, data in sorted(self.rules.objects.items())
            if name.startswith(start) and "/" not in name[len(start) :]
        )  # fmt: skip
        body = f"<ListBucketResult>{found}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, with_body):
        if "list-type=2" in self.path:
            self._list()
            return
        rules, path = self.rules, unquote(self.path.partition("?")[0].lstrip("/"))
        data = rules.objects.get(path)
        begin, end, fault = 0, len(data or b""), "ok"
        asked = self.headers.get("Range")
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last) + 1, end)
            fault = rules.note(path, begin, end)
        try:
            self._reply(data, begin, end, fault, with_body, bool(asked))
        finally:
            if asked:
                rules.over()

    def _reply(self, data, begin, end, fault, with_body, partial):
        rules = self.rules
        if rules.latency:
            time.sleep(rules.latency)
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            self.close_connection = True
            return
        if data is None or fault in ("503", "403"):
            self._refuse(404 if data is None else int(fault))
            return
        tag = rules.tag_of(data)
        if self.headers.get("If-Match") not in (None, tag):
            self._refuse(412)
            return
        if fault == "other":  # there were others when the condition was looked at
            data = rules.others[unquote(self.path.partition("?")[0].lstrip("/"))]
            tag = rules.tag_of(data)
        elif fault == "elsewhere":
            count = end - begin
            begin = begin - count if begin >= count else min(end, len(data) - count)
            end = begin + count
        elif fault == "whole":
            begin, end, partial = 0, len(data), False
        body = data[begin:end]
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(len(body)))
        if partial and fault != "unsaid":
            size = len(data) + (fault == "longer")
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 00:00:00 GMT")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if not with_body:
            return
        if fault == "slow":
            self.wfile.flush()
            time.sleep(rules.slow_seconds)
        if fault == "short":
            body, self.close_connection = body[: len(body) // 2], True
        if fault == "trickle":
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if rules.released.wait(rules.slow_seconds):
                    break
            return
        rules.send(self.wfile, body)

    def _refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _xml(kind, **fields):
    inside = "".join(f"<{name}>{html.escape(value)}</{name}>" for name, value in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{inside}</{kind}>'

#!/usr/bin/env python3
"""Stand-in for object stores: the XML interface of S3 and of Google Cloud Storage, on 127.0.0.1.

It checks signatures (AWS4-HMAC-SHA256, GOOG4-HMAC-SHA256) and hashes of payloads by its own code, knows conditions,
ranges, lists with pages, copies and multi-part uploads, issues credentials, and plays faults. Only for tests.

usage: store_server.py --folder DIR [flags]; prints "port N", then serves until it is killed.
       store_server.py --check-vectors: compares its signatures with those that Amazon has published.
  --folder DIR       objects as files: DIR/BUCKET/KEY. Files that are there at the start are objects, too.
  --buckets A,B      buckets besides the folders of DIR
  --address A        [127.0.0.1]
  --port N           [0: a free one]
  --processes N      that share the port, each with settings and uploads of its own: for reading at speed [1]
  --key ID:SECRET    accepted key; may be repeated [test:test-secret]
  --log FILE         a JSON line for each request: method, path, query, status, bytes, connection, secs
  --set NAME=VALUE   a setting of below; may be repeated
  --seed N           of the faults' random numbers [1]
  --cert F --cert-key F  serves https
  --jwt-modulus HEX  RSA modulus of the service account whose tokens /token issues
Settings, also changed while it runs by `POST /_control` with a JSON object ({"reset": true}: all back to the start):
  public=1           reads need no credentials
  region=NAME        other regions in signatures are refused [us-east-1; "": any]
  redirect=1         ... with 301 and x-amz-bucket-region instead of 400 and <Region>
  clock_secs=N       the server's clock is ahead by N; signatures of more than 900 s of difference are refused
  conditions=0       If-Match and If-None-Match are ignored
  ranges=0           ranges are ignored
  checksums=1        HEAD answers with x-amz-checksum-crc64nvme if it is asked for, as S3 does
  page=N             keys of a page of a list [1000]
  latency_ms=N       wait before each answer
  credential_secs=N  life of issued credentials [3600]
  refuse=CODE        each request is refused with this code: AccessDenied, …
  errors=P           P % of requests get 503 SlowDown ("error_status": another status)
  retry_after=N      ... with Retry-After: N; "date": a date in one second
  resets=P           P % of bodies end in the middle with a reset of the connection
  truncated=P        P % of bodies end in the middle, with the connection closed
  stalls=P           P % of bodies stop in the middle for stall_secs [60]
  corrupt=P          P % of bodies have a changed byte
  shrinks=P          P % of bodies end in the middle, and the object is a tenth as long from then on
  slow_ms=N          wait before each answer that "only" names
  portal=1           each request is answered by a web page, as of a proxy
  lost=P             P % of writes are done, and the connection ends without an answer
  complete_errors=N  the next N completions of uploads answer 200 with an error inside
  only=REGEX         the faults are only for requests whose "METHOD PATH?QUERY" matches
  after=N            and not for the first N of those
  first=N            and only for the first N of the rest
`GET /_control` returns {"requests": N, "uploads": N, "settings": {…}}.
Credentials: STS at POST /, single sign-on at /federation/credentials, a container's at /container (token "container-token"), instance metadata v2 at /latest/…,
Google's metadata server at /computeMetadata/…, OAuth tokens at /token.
"""
import argparse
import base64
import ctypes
import email.utils
import hashlib
import hmac
import html
import json
import math
import os
import random
import re
import signal
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

DEFAULTS = {
    "public": 0, "region": "us-east-1", "redirect": 0, "clock_secs": 0, "conditions": 1, "ranges": 1, "page": 1000,
    "checksums": 0,
    "latency_ms": 0, "credential_secs": 3600, "refuse": "", "errors": 0, "error_status": 503, "retry_after": "",
    "resets": 0, "truncated": 0, "stalls": 0, "stall_secs": 60, "corrupt": 0, "shrinks": 0, "slow_ms": 0, "portal": 0, "lost": 0, "complete_errors": 0,
    "only": "", "after": 0, "first": -1,
}
STATUS = {
    "AccessDenied": 403, "SignatureDoesNotMatch": 403, "InvalidAccessKeyId": 403, "RequestTimeTooSkewed": 403,
    "ExpiredToken": 400, "InvalidToken": 400, "AuthorizationHeaderMalformed": 400, "PermanentRedirect": 301,
    "NoSuchKey": 404, "NoSuchBucket": 404, "NoSuchUpload": 404, "InvalidRange": 416, "PreconditionFailed": 412,
    "BadDigest": 400, "MalformedXML": 400, "InvalidPart": 400, "EntityTooSmall": 400, "XAmzContentSHA256Mismatch": 400,
    "MethodNotAllowed": 405, "NotImplemented": 501, "InternalError": 500, "InvalidRequest": 400,
    "IncompleteBody": 400, "KeyTooLongError": 400,
}


def crc_table(polynomial):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (polynomial if n & 1 else 0)
        table.append(n)
    return table


CRC_TABLE, CRC64_TABLE = crc_table(0x82F63B78), crc_table(0x9A6C9329AC4BC9B5)


class Refusal(Exception):
    def __init__(self, code, message="", extra="", headers=None, status=None):
        super().__init__(code)
        self.code, self.message, self.extra, self.headers = code, message or code, extra, headers or {}
        self.status = status or STATUS[code]


class Broken(Exception):
    """The connection ends here."""


def crc_of(data, bits, table):
    """Reflected CRC. Step i takes byte i of equal blocks at once; then the blocks are joined, and the rest follows."""
    wide = bits // 8
    pieces = [bytes(entry >> 8 * j & 255 for entry in table) for j in range(wide)]
    blocks = max(1, math.isqrt(len(data)))
    length = len(data) // blocks
    state = [255] * wide  # byte j of each block's CRC; the first block begins with ones, the others with zeros
    for i in range(length):
        row = int.from_bytes(data[i:blocks * length:length], "little")
        index = (state[0] ^ row).to_bytes(blocks, "little")
        state = [after ^ int.from_bytes(index.translate(piece), "little")
                 for after, piece in zip(state[1:] + [0], pieces)]
    shifted = []  # each bit of a CRC after a block of zeros
    for bit in range(bits):
        crc = 1 << bit
        for _ in range(length):
            crc = table[crc & 255] ^ crc >> 8
        shifted.append(crc)
    crc = 0
    for lane in zip(*(part.to_bytes(blocks, "little") for part in state)):
        joined = int.from_bytes(bytes(lane), "little")
        for bit in range(bits):
            if crc >> bit & 1:
                joined ^= shifted[bit]
        crc = joined
    for byte in data[blocks * length:]:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ (1 << bits) - 1


def crc32c(data):
    return crc_of(data, 32, CRC_TABLE)


def crc64_nvme(data):
    return crc_of(data, 64, CRC64_TABLE)


def canonical(text):
    return quote(unquote(text), safe="-_.~")


def signature_of(scheme, secret, scope, stamp, method, path, query, headers, payload):
    """Signature of version 4. scope: day, region, service; headers: (name, value), sorted; payload: its hash."""
    closing = scheme.lower() + "_request"
    pairs = sorted((canonical(a), canonical(b)) for a, _, b in (p.partition("=") for p in query.split("&") if p))
    request = "\n".join([
        method, quote(unquote(path), safe="/-_.~"), "&".join(f"{a}={b}" for a, b in pairs),
        *(f"{name}:{' '.join(value.split())}" for name, value in headers), "",
        ";".join(name for name, _ in headers), payload])
    to_sign = "\n".join([f"{scheme}-HMAC-SHA256", stamp, "/".join([*scope, closing]),
                         hashlib.sha256(request.encode()).hexdigest()])
    key = (scheme + secret).encode()
    for part in (*scope, closing, to_sign):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def check_vectors():
    """Compares with the examples of "Authenticating Requests: Using the Authorization Header" in the reference of S3, and
    with the check values of the catalogue of CRCs."""
    crcs = crc32c(b"123456789"), crc64_nvme(b"123456789")
    if crcs != (0xE3069283, 0xAE8B14860A799888):
        sys.exit(f"CRCs of the digits 1 to 9: got {crcs[0]:x} and {crcs[1]:x}")
    empty = hashlib.sha256(b"").hexdigest()
    welcome = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
    at, host = "20130524T000000Z", ("host", "examplebucket.s3.amazonaws.com")

    def rest(payload):
        return [("x-amz-content-sha256", payload), ("x-amz-date", at)]

    for method, path, query, headers, payload, expected in [
            ("GET", "/test.txt", "", [host, ("range", "bytes=0-9"), *rest(empty)], empty,
             "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            ("PUT", "/test%24file.text", "", [("date", "Fri, 24 May 2013 00:00:00 GMT"), host, *rest(welcome),
                                              ("x-amz-storage-class", "REDUCED_REDUNDANCY")], welcome,
             "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            ("GET", "/", "lifecycle", [host, *rest(empty)], empty,
             "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("GET", "/", "prefix=J&max-keys=2", [host, *rest(empty)], empty,
             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")]:
        made = signature_of("AWS4", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ("20130524", "us-east-1", "s3"), at,
                            method, path, query, headers, payload)
        if made != expected:
            sys.exit(f"{method} {path}?{query}: expected {expected}, got {made}")


class Entry:
    """One state of an object."""

    def __init__(self, path, size, etag, md5, generation):
        self.path, self.size, self.etag, self.md5, self.generation = path, size, etag, md5, generation
        self.crc = self.crc64 = None


class Store:
    def __init__(self, arguments):
        self.folder = os.path.abspath(arguments.folder)
        self.lock = threading.RLock()
        self.settings, self.start = dict(DEFAULTS), {}
        for text in arguments.set:
            name, _, value = text.partition("=")
            self.change({name: value})
        self.start = dict(self.settings)
        self.random = random.Random(arguments.seed)
        self.keys = {}  # id: (secret, token or None, expiry or None)
        for text in arguments.key or ["test:test-secret"]:
            name, _, secret = text.partition(":")
            self.keys[name] = (secret, None, None)
        self.bearers = {}
        self.modulus = int(arguments.jwt_modulus, 16) if arguments.jwt_modulus else None
        self.buckets, self.uploads, self.count, self.serial, self.matched = {}, {}, 0, 0, 0
        self.log = open(arguments.log, "a", buffering=1) if arguments.log else None
        os.makedirs(self.folder, exist_ok=True)
        for name in filter(None, arguments.buckets.split(",")):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        for name in sorted(os.listdir(self.folder)):
            if not name.startswith(".") and os.path.isdir(os.path.join(self.folder, name)):
                self.scan(name)

    def scan(self, bucket):
        objects = self.buckets.setdefault(bucket, {})
        root = os.path.join(self.folder, bucket)
        for where, _, names in os.walk(root):
            for name in names:
                path = os.path.join(where, name)
                info = os.stat(path)
                etag = f"{info.st_mtime_ns:x}-{info.st_size}"
                self.serial += 1
                objects[os.path.relpath(path, root)] = Entry(path, info.st_size, etag, None, self.serial)

    def change(self, values):
        if values.get("reset"):
            self.settings = dict(self.start)
            self.matched = 0
        for name, value in values.items():
            if name == "reset":
                continue
            kind = type(DEFAULTS[name])
            self.settings[name] = kind(value)
            if name in ("after", "first"):
                self.matched = 0

    def chance(self, name):
        percent = self.settings[name]
        with self.lock:
            return percent > 0 and self.random.random() * 100 < percent

    def new_file(self, bucket, key):
        """A path for an object's bytes; keys that no path can have are elsewhere."""
        path = os.path.join(self.folder, bucket, key)
        parts = key.split("/")
        plain = all(parts) and "." not in parts and all(len(part.encode()) < 200 for part in parts)
        if plain and not os.path.isdir(path):
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                return path
            except OSError:
                pass
        odd = os.path.join(self.folder, ".odd", bucket)
        os.makedirs(odd, exist_ok=True)
        return os.path.join(odd, hashlib.sha256(key.encode()).hexdigest())

    def temporary(self):
        folder = os.path.join(self.folder, ".tmp")
        os.makedirs(folder, exist_ok=True)
        with self.lock:
            self.serial += 1
            return os.path.join(folder, str(self.serial))

    def commit(self, bucket, key, temporary, etag, md5):
        """Under the lock."""
        path = self.new_file(bucket, key)
        size = os.path.getsize(temporary)
        os.replace(temporary, path)
        self.serial += 1
        entry = Entry(path, size, etag, md5, 1000000 + self.serial)
        self.buckets[bucket][key] = entry
        return entry


class Handler(socketserver.StreamRequestHandler):
    wbufsize = 0
    disable_nagle_algorithm = True

    # --- Connection

    def handle(self):
        self.number = self.server.next_connection()
        try:
            while self.read_head():
                self.began = time.monotonic()
                self.status, self.sent, self.answered, self.is_store = 0, 0, False, True
                try:
                    self.serve()
                except Refusal as refusal:
                    if self.answered:
                        return
                    self.refuse(refusal)
                finally:
                    self.note()
                if self.headers.get("connection", "").lower() == "close" or self.left() > 1 << 20 or self.waits:
                    return
                self.drain()
        except (Broken, ConnectionError, TimeoutError, ssl.SSLError):
            pass

    def read_head(self):
        line = self.rfile.readline(65536)
        if not line.strip():
            return False
        self.method, target, _ = line.decode("latin-1").split(" ", 2)
        if "://" in target:  # as to a proxy
            target = "/" + target.split("://", 1)[1].partition("/")[2]
        self.path, _, self.query = target.partition("?")
        self.headers = {}
        while True:
            line = self.rfile.readline(65536).decode("latin-1").rstrip("\r\n")
            if not line:
                break
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.length = int(self.headers.get("content-length", 0))
        self.taken = 0
        self.waits = self.headers.get("expect", "").lower() == "100-continue"
        self.parameters = dict(parse_qsl(self.query, keep_blank_values=True))
        return True

    def left(self):
        return self.length - self.taken

    def drain(self):
        while self.left() > 0:
            if not self.take(1 << 18):
                raise Broken

    def take(self, most):
        if self.waits:
            self.waits = False
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        data = self.rfile.read(min(most, self.left()))
        self.taken += len(data)
        return data

    def body(self):
        data = b""
        while self.left() > 0:
            piece = self.take(1 << 18)
            if not piece:
                raise Broken
            data += piece
        return data

    def note(self):
        store = self.server.store
        with store.lock:
            store.count += 1
        if store.log and not self.path.startswith("/_control"):
            store.log.write(json.dumps({
                "method": self.method, "path": unquote(self.path), "query": self.query, "status": self.status,
                "bytes": self.sent, "connection": self.number, "range": self.headers.get("range", ""),
                "secs": round(time.monotonic() - self.began, 4)}) + "\n")

    def head(self, status, headers, length):
        self.status, self.answered = status, True
        now = time.time() + self.server.store.settings["clock_secs"]
        lines = [f"HTTP/1.1 {status} X", f"Date: {email.utils.formatdate(now, usegmt=True)}"]
        google = self.headers.get("authorization", "").startswith(("Bearer ", "GOOG4"))
        if self.is_store:
            name = "x-guploader-uploadid" if google else "x-amz-request-id"
            lines.append(f"{name}: R{self.number}-{self.server.store.count}")
        if google and not length and "Content-Type" not in headers:
            lines.append("Content-Type: text/html; charset=UTF-8")  # as Google's answers without a body
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def answer(self, status, data=b"", headers=None):
        text = data.encode() if isinstance(data, str) else data
        head = self.head(status, headers or {}, len(text) if status != 204 else None)
        self.wfile.write(head + (b"" if self.method == "HEAD" else text))
        self.sent += len(text)

    def refuse(self, refusal):
        text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{refusal.code}</Code>'
                f"<Message>{escape(refusal.message)}</Message>{refusal.extra}</Error>")
        self.answer(refusal.status, text, {"Content-Type": "application/xml", **refusal.headers})

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise Broken

    # --- Faults

    def faults(self):
        """True if faults are for this request."""
        store = self.server.store
        s = store.settings
        if s["only"] and not re.search(s["only"], f"{self.method} {unquote(self.path)}?{self.query}"):
            return False
        with store.lock:
            store.matched += 1
            number = store.matched - s["after"]
            return number > 0 and (s["first"] < 0 or number <= s["first"])

    def serve(self):
        store = self.server.store
        s = store.settings
        if self.path == "/_control":
            if self.method == "POST":
                store.change(json.loads(self.body()))
            state = {"requests": store.count, "uploads": len(store.uploads), "settings": s}
            return self.answer(200, json.dumps(state))
        if s["latency_ms"]:
            time.sleep(s["latency_ms"] / 1e3)
        if self.issue_credentials():
            return None
        self.is_faulty = self.faults()
        if self.is_faulty and store.chance("errors"):
            headers = {}
            if s["retry_after"]:
                headers["Retry-After"] = (email.utils.formatdate(time.time() + 1.5, usegmt=True)
                                          if s["retry_after"] == "date" else s["retry_after"])
            self.drain()
            raise Refusal("SlowDown", "Please reduce your request rate.", headers=headers, status=s["error_status"])
        if self.is_faulty and s["slow_ms"]:
            time.sleep(s["slow_ms"] / 1e3)
        if self.is_faulty and s["portal"]:
            self.drain()
            self.is_store = False
            return self.answer(200, "<html><body>Please sign in</body></html>", {"Content-Type": "text/html"})
        if self.is_faulty and s["refuse"]:
            raise Refusal(s["refuse"], "refused by a setting")
        return self.route()

    # --- Credentials

    def issue_key(self):
        store = self.server.store
        with store.lock:
            store.serial += 1
            name, secret, token = f"ASIA{store.serial}", f"secret-{store.serial}", f"token/{store.serial}+=="
            expiry = time.time() + store.settings["credential_secs"]
            store.keys[name] = (secret, token, expiry)
        return name, secret, token, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry))

    def issue_bearer(self):
        store = self.server.store
        with store.lock:
            store.serial += 1
            token = f"ya29.{store.serial}"
            store.bearers[token] = time.time() + store.settings["credential_secs"]
        return json.dumps({"access_token": token, "expires_in": store.settings["credential_secs"],
                           "token_type": "Bearer"})

    def key_json(self):
        name, secret, token, expiry = self.issue_key()
        return json.dumps({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": secret, "Token": token,
                           "Expiration": expiry})

    def issue_credentials(self):
        h = self.headers
        if self.method == "POST" and self.path == "/":
            body = self.body()
            form = dict(parse_qsl(body.decode()))
            action = form.get("Action")
            if action == "AssumeRole":
                self.authenticate(hashlib.sha256(body).hexdigest())
                if "denied" in form["RoleArn"] or form.get("ExternalId", "x") != "x":
                    raise Refusal("AccessDenied", f"not authorized to perform sts:AssumeRole on {form['RoleArn']}")
            elif action != "AssumeRoleWithWebIdentity" or form.get("WebIdentityToken") != "web-identity":
                raise Refusal("InvalidToken", "the web identity is invalid")
            name, secret, token, expiry = self.issue_key()
            self.answer(200, f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<{action}Result><Credentials><AccessKeyId>{name}</AccessKeyId><SecretAccessKey>{secret}
</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{expiry}</Expiration></Credentials>
</{action}Result></{action}Response>""".replace("\n</S", "</S"))
        elif self.path == "/federation/credentials":
            p = self.parameters
            if h.get("x-amz-sso_bearer_token") != "sso-token":
                raise Refusal("UnauthorizedException", "Session token not found or invalid", status=401)
            if p.get("role_name") != "Reader" or p.get("account_id") != "123":
                raise Refusal("ForbiddenException", "No access", status=403)
            name, secret, token, _ = self.issue_key()
            self.answer(200, json.dumps({"roleCredentials": {
                "accessKeyId": name, "secretAccessKey": secret, "sessionToken": token,
                "expiration": int((time.time() + self.server.store.settings["credential_secs"]) * 1000)}}))
        elif self.path == "/container":
            if h.get("authorization") != "container-token":
                raise Refusal("AccessDenied")
            self.answer(200, self.key_json())
        elif self.path == "/latest/api/token":
            if self.method != "PUT" or "x-aws-ec2-metadata-token-ttl-seconds" not in h:
                raise Refusal("AccessDenied")
            self.answer(200, "imds-token")
        elif self.path.startswith("/latest/meta-data/iam/security-credentials/"):
            if h.get("x-aws-ec2-metadata-token") != "imds-token":
                raise Refusal("AccessDenied", status=401)
            self.answer(200, self.key_json() if self.path.endswith("/role") else "role")
        elif self.path == "/computeMetadata/v1/instance/service-accounts/default/token":
            if h.get("metadata-flavor") != "Google":
                raise Refusal("AccessDenied")
            self.answer(200, self.issue_bearer())
        elif self.path == "/token":
            form = dict(parse_qsl(self.body().decode()))
            if not self.is_good_grant(form):
                raise Refusal("InvalidToken", "the grant is invalid")
            self.answer(200, self.issue_bearer())
        else:
            return False
        return True

    def is_good_grant(self, form):
        if form.get("grant_type") == "refresh_token":
            return form.get("refresh_token") == "refresh-me" and form.get("client_secret") == "client-secret"
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" or not self.server.store.modulus:
            return False
        head, claims, signature = form["assertion"].split(".")

        def decode(text):
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

        modulus = self.server.store.modulus
        size = (modulus.bit_length() + 7) // 8
        block = pow(int.from_bytes(decode(signature), "big"), 65537, modulus).to_bytes(size, "big")
        digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(
            f"{head}.{claims}".encode()).digest()
        fields = json.loads(decode(claims))
        return (block == b"\0\1" + b"\xff" * (size - 3 - len(digest)) + b"\0" + digest and
                fields["exp"] > time.time() and "devstorage" in fields["scope"] and json.loads(decode(head)) == {
                    "alg": "RS256", "typ": "JWT"})

    # --- Signatures

    def authenticate(self, payload=None):
        """Returns the expected SHA-256 of the payload, or None. payload: that of a request to another service."""
        store, text = self.server.store, self.headers.get("authorization", "")
        if text.startswith("Bearer "):
            if store.bearers.get(text[7:], 0) < time.time():
                raise Refusal("AccessDenied", "the token is invalid", status=401)
            return None
        if not text:
            if store.settings["public"] and self.method in ("GET", "HEAD"):
                return None
            raise Refusal("AccessDenied", "anonymous requests are refused")
        match = re.fullmatch(r"(AWS4|GOOG4)-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]*)/([a-z0-9]+)/"
                             r"(aws4|goog4)_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", text)
        if not match:
            raise Refusal("InvalidRequest", "the Authorization header is malformed")
        scheme, name, day, region, service, _, signed, signature = match.groups()
        vendor = "x-amz-" if scheme == "AWS4" else "x-goog-"
        if name not in store.keys:
            raise Refusal("InvalidAccessKeyId")
        secret, token, expiry = store.keys[name]
        if expiry and expiry < time.time():
            raise Refusal("ExpiredToken", "The provided token has expired.")
        if self.headers.get("x-amz-security-token") != token:
            raise Refusal("InvalidToken")
        stamp, is_object = self.headers.get(vendor + "date", ""), payload is None
        if is_object != (service in ("s3", "storage")):
            raise Refusal("SignatureDoesNotMatch", f"signed for {service}")
        payload = self.headers.get(vendor + "content-sha256", "") if is_object else payload
        self.check_time(stamp, day)
        expected = store.settings["region"]
        if scheme == "AWS4" and expected and region != expected:
            if store.settings["redirect"]:
                raise Refusal("PermanentRedirect", headers={"x-amz-bucket-region": expected})
            raise Refusal("AuthorizationHeaderMalformed", f"the region {region} is wrong",
                          f"<Region>{expected}</Region>", {"x-amz-bucket-region": expected})
        names = signed.split(";")
        needed = {"host", vendor + "date"} | {vendor + "content-sha256" for _ in range(is_object)} | {
            h for h in self.headers if h.startswith("x-amz-") or h == "content-md5"}
        if names != sorted(names) or needed - set(names):
            raise Refusal("AccessDenied", f"headers are not signed: {needed - set(names)}")
        made = signature_of(scheme, secret, (day, region, service), stamp, self.method, self.path, self.query,
                            [(h, self.headers.get(h, "")) for h in names], payload)
        if not hmac.compare_digest(made, signature):
            raise Refusal("SignatureDoesNotMatch", "the signature does not match")
        if payload == "UNSIGNED-PAYLOAD":
            if not self.server.tls:
                raise Refusal("InvalidRequest", "an unsigned payload over http")
            return None
        return payload

    def check_time(self, stamp, day):
        try:
            at = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
        except ValueError:
            raise Refusal("AccessDenied", "no date") from None
        now = time.time() + self.server.store.settings["clock_secs"]
        if abs(at - now) > 900 or not stamp.startswith(day):
            raise Refusal("RequestTimeTooSkewed")

    # --- Objects

    def route(self):
        store = self.server.store
        bucket, _, key = self.path.lstrip("/").partition("/")
        self.bucket, self.key = unquote(bucket), unquote(key)
        self.payload = self.authenticate()
        if self.bucket not in store.buckets:
            self.drain()
            raise Refusal("NoSuchBucket")
        p = self.parameters
        if not self.key:
            if self.method == "GET":
                return self.list_uploads() if "uploads" in p else self.list()
            raise Refusal("MethodNotAllowed")
        if len(self.key.encode()) > 1024:
            raise Refusal("KeyTooLongError")
        if self.method in ("GET", "HEAD"):
            return self.read()
        if self.method == "PUT":
            return self.put_part() if "uploadId" in p else self.put()
        if self.method == "POST":
            return self.complete() if "uploadId" in p else self.begin_upload()
        if self.method == "DELETE":
            return self.abort() if "uploadId" in p else self.remove()
        raise Refusal("MethodNotAllowed")

    def find(self):
        entry = self.server.store.buckets[self.bucket].get(self.key)
        if entry is None:
            raise Refusal("NoSuchKey", "The specified key does not exist.")
        return entry

    def check_conditions(self, entry):
        """Under the lock."""
        h, s = self.headers, self.server.store.settings
        if not s["conditions"] and self.method == "PUT":
            return
        if h.get("if-none-match") == "*" and entry:
            raise Refusal("PreconditionFailed")
        if "if-match" in h:
            if entry is None:
                raise Refusal("NoSuchKey")
            if h["if-match"].strip('"') != entry.etag:
                raise Refusal("PreconditionFailed")
        if "x-goog-if-generation-match" in h:
            if int(h["x-goog-if-generation-match"]) != (entry.generation if entry else 0):
                raise Refusal("PreconditionFailed")

    def tags(self, entry):
        headers = {"ETag": f'"{entry.etag}"', "x-goog-generation": entry.generation,
                   "Last-Modified": email.utils.formatdate(os.path.getmtime(entry.path), usegmt=True)}
        if entry.crc is None and entry.size < 1 << 20:
            with open(entry.path, "rb") as file:
                entry.crc = base64.b64encode(struct.pack(">I", crc32c(file.read()))).decode()
        if entry.crc:
            headers["x-goog-hash"] = f"crc32c={entry.crc}"
        asked = self.method == "HEAD" and self.headers.get("x-amz-checksum-mode") == "ENABLED"
        if asked and self.server.store.settings["checksums"]:
            if entry.crc64 is None:
                with open(entry.path, "rb") as file:
                    entry.crc64 = base64.b64encode(struct.pack(">Q", crc64_nvme(file.read()))).decode()
            headers["x-amz-checksum-crc64nvme"] = entry.crc64
            headers["x-amz-checksum-type"] = "FULL_OBJECT"
        return headers

    def read(self):
        store = self.server.store
        with store.lock:
            entry = self.find()
            self.check_conditions(entry)
            file = open(entry.path, "rb")
        with file:
            headers = self.tags(entry)
            first, last, status = 0, entry.size - 1, 200
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
            if wanted and store.settings["ranges"] and self.method == "GET":
                first = int(wanted[1])
                last = min(last, int(wanted[2]) if wanted[2] else last)
                if first >= entry.size:
                    raise Refusal("InvalidRange", headers={"Content-Range": f"bytes */{entry.size}"})
                status = 206
                headers["Content-Range"] = f"bytes {first}-{last}/{entry.size}"
            size = last + 1 - first
            self.wfile.write(self.head(status, headers, size))
            if self.method == "GET":
                self.send_body(file, first, size)

    def send_body(self, file, first, size):
        store = self.server.store
        cut = None
        for name in ("resets", "truncated", "stalls", "corrupt", "shrinks"):
            if size and self.is_faulty and store.chance(name):
                cut = name
                break
        if cut is None:
            return self.send_range(file, first, size)
        half = size // 2
        self.send_range(file, first, half)
        if cut == "resets":
            self.reset()
        if cut == "shrinks":
            self.shrink(file)
        if cut in ("truncated", "shrinks"):
            raise Broken
        if cut == "stalls":
            self.server.stop.wait(store.settings["stall_secs"])
            raise Broken
        file.seek(first + half)
        self.wfile.write(bytes([file.read(1)[0] ^ 0x55]))
        return self.send_range(file, first + half + 1, size - half - 1)

    def shrink(self, file):
        store, path = self.server.store, self.server.store.temporary()
        file.seek(0)
        data = file.read()[::-1]
        data = data[:len(data) // 10]
        with open(path, "wb") as out:
            out.write(data)
        md5 = hashlib.md5(data).hexdigest()
        with store.lock:
            store.commit(self.bucket, self.key, path, md5, md5)

    def send_range(self, file, first, size):
        self.sent += size
        if self.server.tls:
            file.seek(first)
            while size > 0:
                piece = file.read(min(size, 1 << 18))
                self.wfile.write(piece)
                size -= len(piece)
            return
        while size > 0:
            done = os.sendfile(self.connection.fileno(), file.fileno(), first, min(size, 1 << 24))
            if done == 0:
                raise Broken
            first, size = first + done, size - done

    def receive(self):
        """The body in a temporary file, checked. Returns the path and its MD5 in hexadecimal."""
        path = self.server.store.temporary()
        md5, sha = hashlib.md5(), hashlib.sha256()
        hashed = self.payload is not None and len(self.payload) == 64
        with open(path, "wb") as file:
            while self.left() > 0:
                piece = self.take(1 << 18)
                if not piece:
                    os.unlink(path)
                    raise Broken
                md5.update(piece)
                if hashed:
                    sha.update(piece)
                file.write(piece)
        said = self.headers.get("content-md5")
        wrong = None
        if said and said != base64.b64encode(md5.digest()).decode():
            wrong = "BadDigest"
        if hashed and sha.hexdigest() != self.payload:
            wrong = "XAmzContentSHA256Mismatch"
        if wrong:
            os.unlink(path)
            raise Refusal(wrong)
        return path, md5.hexdigest()

    def written(self, entry):
        if self.is_faulty and self.server.store.chance("lost"):
            self.reset()
        self.answer(200, b"", {"ETag": f'"{entry.etag}"', "x-goog-generation": entry.generation})

    def source(self):
        """The object that x-amz-copy-source names; under the lock."""
        h = self.headers
        name = unquote(h.get("x-amz-copy-source", h.get("x-goog-copy-source"))).lstrip("/")
        bucket, _, key = name.partition("/")
        entry = self.server.store.buckets.get(bucket, {}).get(key)
        if entry is None:
            raise Refusal("NoSuchKey", "the source does not exist")
        wanted = h.get("x-amz-copy-source-if-match")
        if wanted and wanted.strip('"') != entry.etag:
            raise Refusal("PreconditionFailed")
        return entry

    def is_copy(self):
        return "x-amz-copy-source" in self.headers or "x-goog-copy-source" in self.headers

    def put(self):
        store = self.server.store
        if self.is_copy():
            with store.lock:
                source = self.source()
                path = store.temporary()
                with open(source.path, "rb") as a, open(path, "wb") as b:
                    copy_range(a, b, 0, source.size)
                entry = store.commit(self.bucket, self.key, path, source.etag, source.md5)
            return self.answer(200, f'<CopyObjectResult><ETag>"{entry.etag}"</ETag></CopyObjectResult>',
                               {"x-goog-generation": entry.generation})
        path, md5 = self.receive()
        with store.lock:
            try:
                self.check_conditions(store.buckets[self.bucket].get(self.key))
            except Refusal:
                os.unlink(path)
                raise
            entry = store.commit(self.bucket, self.key, path, md5, md5)
        return self.written(entry)

    def remove(self):
        store = self.server.store
        with store.lock:
            entry = store.buckets[self.bucket].pop(self.key, None)
            if entry:
                os.unlink(entry.path)
            elif self.headers.get("authorization", "").startswith(("Bearer", "GOOG4")):
                raise Refusal("NoSuchKey")
        self.answer(204)

    # --- Uploads of many parts

    def begin_upload(self):
        store = self.server.store
        if "uploads" not in self.parameters:
            raise Refusal("NotImplemented")
        with store.lock:
            store.serial += 1
            number = f"upload-{store.serial}"
            store.uploads[number] = (self.bucket, self.key, {})
        self.answer(200, f"<InitiateMultipartUploadResult><Bucket>{self.bucket}</Bucket><Key>{escape(self.key)}</Key>"
                         f"<UploadId>{number}</UploadId></InitiateMultipartUploadResult>")

    def upload(self):
        found = self.server.store.uploads.get(self.parameters["uploadId"])
        if found is None or found[:2] != (self.bucket, self.key):
            raise Refusal("NoSuchUpload")
        return found[2]

    def put_part(self):
        store = self.server.store
        self.upload()
        if self.is_copy():
            with store.lock:
                source = self.source()
                first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["x-amz-copy-source-range"]).groups()
                path, md5 = store.temporary(), hashlib.md5()
                with open(source.path, "rb") as a, open(path, "wb") as b:
                    copy_range(a, b, int(first), int(last) + 1 - int(first), md5)
                md5 = md5.hexdigest()
        else:
            path, md5 = self.receive()
        with store.lock:
            self.upload()[int(self.parameters["partNumber"])] = (path, md5)
        if self.is_copy():
            return self.answer(200, f'<CopyPartResult><ETag>"{md5}"</ETag></CopyPartResult>')
        if self.is_faulty and store.chance("lost"):
            self.reset()
        return self.answer(200, b"", {"ETag": f'"{md5}"'})

    def complete(self):
        store = self.server.store
        text = self.body().decode()
        wanted = []
        for part in re.findall(r"<Part>(.*?)</Part>", text, re.DOTALL):  # its elements have any order
            number, tag = (re.search(f"<{name}>([^<]*)</{name}>", part) for name in ("PartNumber", "ETag"))
            if not number or not tag:
                raise Refusal("MalformedXML")
            wanted.append((int(number[1]), html.unescape(tag[1]).strip('"')))
        with store.lock:
            parts = self.upload()
            if store.settings["complete_errors"] > 0:
                store.settings["complete_errors"] -= 1
                return self.answer(200, '<?xml version="1.0" encoding="UTF-8"?>\n  <Error><Code>InternalError</Code>'
                                        "<Message>We encountered an internal error.</Message></Error>")
            if not wanted or [n for n, _ in wanted] != sorted({n for n, _ in wanted}):
                raise Refusal("InvalidRequest", "the list of parts is wrong")
            for n, tag in wanted:
                if n not in parts or parts[n][1] != tag:
                    raise Refusal("InvalidPart")
            if any(os.path.getsize(parts[n][0]) < 5 << 20 for n, _ in wanted[:-1]):
                raise Refusal("EntityTooSmall")
            path = store.temporary()
            with open(path, "wb") as out:
                for n, _ in wanted:
                    with open(parts[n][0], "rb") as part:
                        copy_range(part, out, 0, os.path.getsize(parts[n][0]))
            for part, _ in parts.values():
                os.unlink(part)
            etag = hashlib.md5(b"".join(bytes.fromhex(tag) for _, tag in wanted)).hexdigest() + f"-{len(wanted)}"
            entry = store.commit(self.bucket, self.key, path, etag, None)
            del store.uploads[self.parameters["uploadId"]]
        if self.is_faulty and store.chance("lost"):
            self.reset()
        return self.answer(200, "<CompleteMultipartUploadResult>"
                                f'<ETag>"{etag}"</ETag></CompleteMultipartUploadResult>',
                           {"x-goog-generation": entry.generation})

    def abort(self):
        store = self.server.store
        with store.lock:
            for path, _ in self.upload().values():
                os.unlink(path)
            del store.uploads[self.parameters["uploadId"]]
        self.answer(204)

    # --- Lists

    def name(self, text):
        return quote(text, safe="/-_.~*") if self.parameters.get("encoding-type") == "url" else escape(text)

    def list_uploads(self):
        store, p = self.server.store, self.parameters
        with store.lock:
            found = sorted((key, number) for number, (bucket, key, _) in store.uploads.items()
                           if bucket == self.bucket and key.startswith(p.get("prefix", "")))
        found = [f for f in found if f > (p.get("key-marker", ""), p.get("upload-id-marker", ""))]
        page = found[:store.settings["page"]]
        text = "".join(f"<Upload><Key>{self.name(k)}</Key><UploadId>{n}</UploadId></Upload>" for k, n in page)
        if len(page) < len(found):
            text += (f"<NextKeyMarker>{self.name(page[-1][0])}</NextKeyMarker>"
                     f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>")
        self.answer(200, f"<ListMultipartUploadsResult>{self.encoding()}"
                         f"<IsTruncated>{'true' if len(page) < len(found) else 'false'}</IsTruncated>{text}"
                         "</ListMultipartUploadsResult>")

    def encoding(self):
        return "<EncodingType>url</EncodingType>" if self.parameters.get("encoding-type") == "url" else ""

    def list(self):
        store, p = self.server.store, self.parameters
        if p.get("list-type") != "2":
            raise Refusal("NotImplemented", "only list-type=2")
        prefix, delimiter = p.get("prefix", ""), p.get("delimiter", "")
        with store.lock:
            objects = dict(store.buckets[self.bucket])
        items = {}
        for key, entry in objects.items():
            if not key.startswith(prefix):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            items[key if end < 0 else key[:end + 1]] = entry if end < 0 else None
        after = base64.urlsafe_b64decode(p["continuation-token"]).decode() if "continuation-token" in p else ""
        names = sorted((n for n in items if n > after), key=lambda n: n.encode())
        page = names[:min(store.settings["page"], int(p.get("max-keys", 1000)))]
        text = "".join(
            f"<Contents><Key>{self.name(n)}</Key><Size>{items[n].size}</Size>"
            f"<ETag>&quot;{items[n].etag}&quot;</ETag><Generation>{items[n].generation}</Generation></Contents>"
            if items[n] else f"<CommonPrefixes><Prefix>{self.name(n)}</Prefix></CommonPrefixes>" for n in page)
        if len(page) < len(names):
            token = base64.urlsafe_b64encode(page[-1].encode()).decode()
            text += f"<NextContinuationToken>{token}</NextContinuationToken>"
        self.answer(200, '<?xml version="1.0" encoding="UTF-8"?>\n'
                         '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                         f"{self.encoding()}<IsTruncated>{'true' if len(page) < len(names) else 'false'}"
                         f"</IsTruncated>{text}</ListBucketResult>", {"Content-Type": "application/xml"})


def copy_range(source, target, first, size, digest=None):
    source.seek(first)
    while size > 0:
        piece = source.read(min(size, 1 << 20))
        if not piece:
            raise Broken
        if digest:
            digest.update(piece)
        target.write(piece)
        size -= len(piece)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, arguments):
        self.store, self.stop = Store(arguments), threading.Event()
        self.tls = None
        if ":" in arguments.address:
            self.address_family = socket.AF_INET6
        self.connections, self.connection_lock = 0, threading.Lock()
        super().__init__((arguments.address, arguments.port), Handler)
        if arguments.cert:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(arguments.cert, arguments.cert_key)

    def next_connection(self):
        with self.connection_lock:
            self.connections += 1
            return self.connections

    def finish_request(self, request, client_address):
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (OSError, ssl.SSLError)):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-vectors", action="store_true")
    parser.add_argument("--folder", default="store")
    parser.add_argument("--buckets", default="")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--key", action="append")
    parser.add_argument("--log")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cert")
    parser.add_argument("--cert-key")
    parser.add_argument("--jwt-modulus")
    arguments = parser.parse_args()
    if arguments.check_vectors:
        return check_vectors()
    os.environ["TZ"] = "UTC"
    time.tzset()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = Server(arguments)
    print(f"port {server.server_address[1]}", flush=True)
    first = os.getpid()
    for _ in range(arguments.processes - 1):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the first
            if os.getppid() != first:
                os._exit(0)
            break
    return server.serve_forever()


if __name__ == "__main__":
    main()

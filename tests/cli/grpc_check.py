"""Calls to belfry serve over gRPC, and what their answers must be; serve_grpc.sh calls this.

usage: grpc_check.py CASE ADDRESS [ARGUMENT ..]
The module inference_pb2 is made by protoc from proto/inference.proto, in the working folder.
"""
import concurrent.futures
import csv
import os
import socket
import struct
import sys
import time

import grpc

sys.path.insert(0, os.getcwd())
import inference_pb2 as pb

CASE, ADDRESS, ARGUMENTS = sys.argv[1], sys.argv[2], sys.argv[3:]
SERVICE = "/inference.GRPCInferenceService/"


def channel(credentials=None):
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    if credentials is not None:
        return grpc.secure_channel(ADDRESS, credentials, options)
    return grpc.insecure_channel(ADDRESS, options)


def call(method, request, on=None, timeout=20, metadata=None, **more):
    one = on or channel()
    answer = getattr(pb, method + "Response")
    send = one.unary_unary(SERVICE + method, type(request).SerializeToString, answer.FromString)
    return send(request, timeout=timeout, metadata=metadata, **more)


def fails(code, part, *arguments, **named):
    try:
        got = call(*arguments, **named)
    except grpc.RpcError as error:
        assert error.code() == code and part in error.details(), (error.code(), error.details())
        return
    raise AssertionError(f"expected {code}, got {got}")


def digits(path):
    with open(path) as file:
        return [[float(cell) for cell in row[:64]] for row in list(csv.reader(file))[1:]]


def expected(path):
    with open(path) as file:
        return [[struct.pack("<f", float(cell)) for cell in row[1:]] for row in csv.reader(file)]


def request(rows, raw=False, **more):
    flat = [value for row in rows for value in row]
    one = pb.ModelInferRequest(model_name="digits", **more)
    tensor = one.inputs.add(name="x", datatype="FP32", shape=[len(rows), 64])
    if raw:
        one.raw_input_contents.append(struct.pack(f"<{len(flat)}f", *flat))
    else:
        tensor.contents.fp32_contents.extend(flat)
    return one


def same_bits(data, predicted):
    """Typed and raw contents give the bits of belfry predict with the same batch."""
    rows, want, on = digits(data)[:21], expected(predicted)[:21], channel()
    for first in range(0, 21, 7):
        batch, bits = rows[first:first + 7], b"".join(sum(want[first:first + 7], []))
        got = call("ModelInfer", request(batch, id="7"), on)
        assert got.id == "7" and got.model_name == "digits" and got.model_version == "60", got
        output = got.outputs[0]
        assert list(output.shape) == [7, 10] and output.datatype == "FP32" and not got.raw_output_contents
        assert struct.pack("<70f", *output.contents.fp32_contents) == bits
        asked = request(batch, raw=True, model_version="60")
        asked.outputs.add(name="predictions")
        got = call("ModelInfer", asked, on)
        assert got.raw_output_contents[0] == bits and not got.outputs[0].contents.fp32_contents


def table(data, predicted):
    """Texts of cells, and the name of the class."""
    with open(data) as file:
        rows = list(csv.DictReader(file))[:32]
    with open(predicted) as file:
        want = list(csv.DictReader(file))[:32]
    for raw in (False, True):
        one = pb.ModelInferRequest(model_name="penguins")
        for name in [name for name in rows[0] if name != "Species"]:
            tensor = one.inputs.add(name=name, datatype="BYTES", shape=[len(rows)])
            texts = [row[name].encode() for row in rows]
            if raw:
                one.raw_input_contents.append(b"".join(struct.pack("<I", len(t)) + t for t in texts))
            else:
                tensor.contents.bytes_contents.extend(texts)
        one.outputs.add(name="class")
        got, names = call("ModelInfer", one), [row["prediction"].encode() for row in want]
        assert got.outputs[0].datatype == "BYTES"
        if raw:
            assert got.raw_output_contents[0] == b"".join(struct.pack("<I", len(n)) + n for n in names)
        else:
            assert list(got.outputs[0].contents.bytes_contents) == names


def metadata():
    on = channel()
    assert call("ServerLive", pb.ServerLiveRequest(), on).live
    assert call("ServerReady", pb.ServerReadyRequest(), on).ready
    assert call("ServerMetadata", pb.ServerMetadataRequest(), on).name == "belfry"
    assert call("ModelReady", pb.ModelReadyRequest(name="digits"), on).ready
    assert call("ModelReady", pb.ModelReadyRequest(name="digits", version="60"), on).ready
    assert not call("ModelReady", pb.ModelReadyRequest(name="digits", version="61"), on).ready
    got = call("ModelMetadata", pb.ModelMetadataRequest(name="digits"), on)
    assert got.versions == ["60"] and got.inputs[0].name == "x" and list(got.inputs[0].shape) == [-1, 64]
    assert got.outputs[0].datatype == "FP32" and list(got.outputs[0].shape) == [-1, 10], got


def wrong():
    """Each wrong request gets its code and a reason, and the connection stays."""
    on, code, good = channel(), grpc.StatusCode, [[1.0] * 64]
    fails(code.NOT_FOUND, 'no model "no"', "ModelMetadata", pb.ModelMetadataRequest(name="no"), on)
    fails(code.NOT_FOUND, "version", "ModelInfer", request(good, model_version="61"), on)
    fails(code.NOT_FOUND, 'no label "x"', "ModelInfer", request(good, model_version="x"), on)
    fails(code.INVALID_ARGUMENT, "64 elements in fp32_contents, got 63", "ModelInfer",
          pb.ModelInferRequest(model_name="digits", inputs=[{
              "name": "x", "datatype": "FP32", "shape": [1, 64], "contents": {"fp32_contents": [1] * 63}}]), on)
    fails(code.INVALID_ARGUMENT, "not given", "ModelInfer", pb.ModelInferRequest(model_name="digits"), on)
    for change, part in (({"name": "y"}, 'no input "y"'), ({"datatype": "FP64"}, "expected FP32"),
                         ({"shape": [1, 63]}, "expected FP32"), ({"shape": [-1, 64]}, "sizes"),
                         ({"shape": [2**31 - 1, 64]}, "less data"), ({"shape": [1] * 9}, "sizes")):
        one = request(good)
        for field, value in change.items():
            if field == "shape":
                del one.inputs[0].shape[:]
                one.inputs[0].shape.extend(value)
            else:
                setattr(one.inputs[0], field, value)
        fails(code.INVALID_ARGUMENT, part, "ModelInfer", one, on)
    one = request(good)
    one.inputs[0].datatype = "INT4"
    fails(code.UNIMPLEMENTED, "INT4", "ModelInfer", one, on)
    one = request(good)
    one.outputs.add(name="no")
    fails(code.INVALID_ARGUMENT, 'no output "no"', "ModelInfer", one, on)
    one = request(good)
    for _ in range(2):
        one.outputs.add(name="predictions")
    fails(code.INVALID_ARGUMENT, "asked for twice", "ModelInfer", one, on)
    fails(code.INVALID_ARGUMENT, "more than --max_examples 400", "ModelInfer", request(good * 401), on)
    one = request(good, raw=True)
    one.inputs[0].contents.fp32_contents.append(1)
    fails(code.INVALID_ARGUMENT, "got both", "ModelInfer", one, on)
    one = request(good)
    one.inputs[0].ClearField("contents")
    fails(code.INVALID_ARGUMENT, "got neither", "ModelInfer", one, on)
    one = request(good, raw=True)
    one.raw_input_contents[0] += b"x"
    fails(code.INVALID_ARGUMENT, "256 bytes, got 257", "ModelInfer", one, on)
    one.raw_input_contents.append(b"x")
    fails(code.INVALID_ARGUMENT, "of none or all", "ModelInfer", one, on)
    large = request(good, raw=True)
    large.raw_input_contents[0] = bytes(3 << 20)
    fails(code.RESOURCE_EXHAUSTED, "", "ModelInfer", large, on)
    fails(code.UNIMPLEMENTED, "", "ModelInfer", request(good), on, compression=grpc.Compression.Gzip)
    for path in ("/inference.GRPCInferenceService/No", "/x"):
        try:
            on.unary_unary(path, None, None)(b"", timeout=20)
            raise AssertionError("an unknown method is answered")
        except grpc.RpcError as error:
            assert error.code() == code.UNIMPLEMENTED, error
    try:
        on.unary_unary(SERVICE + "ModelInfer", None, None)(b"\xff\xff", timeout=20)
        raise AssertionError("a malformed message is answered")
    except grpc.RpcError as error:
        assert error.code() == code.INVALID_ARGUMENT and "malformed" in error.details(), error
    assert len(call("ModelInfer", request(good), on).outputs[0].contents.fp32_contents) == 10


def secure(expected_code, token, *files):
    """One call with a token and TLS files ends with a code."""
    texts = [open(path, "rb").read() for path in files]
    one = channel(grpc.ssl_channel_credentials(*texts) if texts else None)
    metadata = [("authorization", token)] if token else None
    if not texts:
        assert call("ServerReady", pb.ServerReadyRequest(), one).ready, "health needs no token"
    if expected_code == "OK":
        assert call("ModelMetadata", pb.ModelMetadataRequest(name="digits"), one, metadata=metadata).name == "digits"
    else:
        fails(grpc.StatusCode[expected_code], "", "ModelMetadata", pb.ModelMetadataRequest(name="digits"), one,
              metadata=metadata)


def full(data):
    """With one thread and no queue some of many requests are refused, and the others are answered."""
    one, on = request(digits(data) * 8, raw=True), channel()

    def send(_):
        try:
            call("ModelInfer", one, on)
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = set(pool.map(send, range(24)))
    assert codes == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}, codes


def frames(method, message, streams, window=1 << 20, more=()):
    """Sends calls as frames of HTTP/2, and returns the socket. `window`: bytes of an answer that the client accepts."""
    def frame(kind, flags, stream, data):
        return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data

    def header(name, value):  # HPACK: a literal without an index
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    head = b"".join(header(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", (SERVICE + method).encode()),
        (b":authority", b"x"), (b"te", b"trailers"), (b"content-type", b"application/grpc"), *more))
    host, port = ADDRESS.rsplit(":", 1)
    one = socket.create_connection((host, int(port)), timeout=20)
    one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, window)))
    for stream in streams:
        data = b"\0" + struct.pack(">I", len(message)) + message
        one.sendall(frame(1, 4, stream, head) + frame(0, 1, stream, data))
    return one


def patient():
    """The longest deadline of gRPC has more nanoseconds than 64 bits: the answer is a frame of data."""
    with frames("ModelInfer", request([[1.0] * 64]).SerializeToString(), (1,),
                more=((b"grpc-timeout", b"99999999H"),)) as one:
        file = one.makefile("rb")
        while (head := file.read(9))[3] != 0:
            assert head[3] != 1 or not head[4] & 1, "the call ends without an answer"
            file.read(int.from_bytes(head[:3], "big"))


def unread():
    """Clients that leave their answers unread lose them after --timeout_secs 2, and others are answered again."""
    on, held, deadline = channel(), [], time.monotonic() + 60

    def is_refused():
        try:
            assert call("ServerLive", pb.ServerLiveRequest(), on).live
            return False
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
            return True
    is_refused()  # the channel is connected before the time of the held calls begins
    while not is_refused():  # they have not come yet, or were held for their time already: more are sent
        assert time.monotonic() < deadline, "no call is held"
        held.append(frames("ServerLive", b"", (1, 3), window=0))
        time.sleep(0.02)
    deadline = time.monotonic() + 25  # less than the default of 30
    while is_refused():
        assert time.monotonic() < deadline, "the answers are held"
        time.sleep(0.02)
    for each in held:
        each.close()


def early(data):
    """A request waits for others for half of its time at most: without the client's deadline it would be 10 s."""
    call("ModelInfer", request(digits(data)[:1]), timeout=9)


def stopping(data):
    """A call in progress is answered when the server stops; prints when it has begun."""
    one, on = request(digits(data) * 30, raw=True), channel()
    send = on.unary_unary(SERVICE + "ModelInfer", pb.ModelInferRequest.SerializeToString,
                          pb.ModelInferResponse.FromString)
    calls = [send.future(one, timeout=60) for _ in range(4)]
    print("begun", flush=True)
    answered = sum(len(each.result().raw_output_contents) for each in calls)
    print("answered", answered, flush=True)


globals()[CASE](*ARGUMENTS)

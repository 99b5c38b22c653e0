"""Requests to belfry serve, and what their answers must be; serve.sh calls this.

usage: serve_check.py CASE URL [ARGUMENT ..]
"""
import concurrent.futures
import csv
import http.client
import json
import math
import os
import socket
import struct
import sys
import time
import urllib.parse

CASE, URL, ARGUMENTS = sys.argv[1], sys.argv[2], sys.argv[3:]
HOST, PORT = urllib.parse.urlparse(URL).hostname, urllib.parse.urlparse(URL).port


def ask(path, body=None, headers=None, method=None, connection=None):
    """Returns code, headers and bytes of an answer."""
    one = connection or http.client.HTTPConnection(HOST, PORT, timeout=20)
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    one.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
    answer = one.getresponse()
    data = answer.read()
    if connection is None:
        one.close()
    return answer.status, answer.headers, data


def good(path, body=None, headers=None, connection=None):
    code, head, data = ask(path, body, headers, connection=connection)
    assert code == 200, (path, code, data[:300])
    return json.loads(data) if head["Content-Type"] == "application/json" else (head, data)


def f32(number):
    return struct.pack("<f", float(number))


def bits(rows):
    return [[f32(value) for value in row] for row in rows]


def digits(path):
    with open(path) as file:
        return [[float(cell) for cell in row[:64]] for row in list(csv.reader(file))[1:]]


def expected(path):
    with open(path) as file:
        return [[f32(cell) for cell in row[1:]] for row in csv.reader(file)]


def v2_input(rows, **more):
    return {"name": "x", "datatype": "FP32", "shape": [len(rows), 64], **more}


def same_bits(data, predicted):
    """Every form gives the bits of belfry predict with the same batch."""
    rows, want = digits(data)[:21], expected(predicted)[:21]
    connection = http.client.HTTPConnection(HOST, PORT, timeout=20)
    for first in range(0, 21, 7):
        batch, answer = rows[first:first + 7], want[first:first + 7]
        flat = [value for row in batch for value in row]
        binary = struct.pack("<%df" % len(flat), *flat)
        v1, v2 = "/v1/models/digits:predict", "/v2/models/digits/infer"
        assert bits(good(v1, {"instances": batch}, connection=connection)["predictions"]) == answer
        named = {"instances": [{"x": row} for row in batch], "signature_name": "serving_default"}
        assert bits(good(v1, named)["predictions"]) == answer
        assert bits(good(v1, {"inputs": batch})["outputs"]) == answer
        assert bits(good(v1, {"inputs": {"x": batch}})["outputs"]) == answer
        for lists in (batch, flat):
            got = good(v2, {"id": "7", "inputs": [v2_input(batch, data=lists)]})
            assert got["id"] == "7" and got["model_name"] == "digits", got
            output = got["outputs"][0]
            assert output["shape"] == [7, 10] and output["datatype"] == "FP32", output
            assert [f32(value) for value in output["data"]] == sum(answer, []), "data are not flat"
        head = json.dumps({"inputs": [v2_input(batch, parameters={"binary_data_size": len(binary)})],
                           "outputs": [{"name": "predictions", "parameters": {"binary_data": True}}]})
        sizes = {"Inference-Header-Content-Length": str(len(head))}
        got_head, data = good(v2, head.encode() + binary, sizes)
        length = int(got_head["Inference-Header-Content-Length"])
        output = json.loads(data[:length])["outputs"][0]
        assert output["parameters"]["binary_data_size"] == 280 and "data" not in output, output
        assert data[length:] == b"".join(sum(answer, [])), "bits of the binary form"
        whole = {"inputs": [v2_input(batch, data=flat)], "parameters": {"binary_data_output": True}}
        assert good(v2, whole)[1][-280:] == b"".join(sum(answer, []))
    connection.close()


def table(data, predicted):
    """Cells by name: the rows of a CSV file, with texts and missing values."""
    with open(data) as file:
        rows = list(csv.DictReader(file))
    with open(predicted) as file:
        want = list(csv.DictReader(file))
    assert any(cell in ("", "NA") for row in rows for cell in row.values()), "no value is missing"
    for first in range(0, len(rows) - 31, 32):
        table_batch(rows[first:first + 32], want[first:first + 32])


def table_batch(rows, want):
    label, classes = next(iter(rows[0])), [k for k in want[0] if k.startswith("p_")]
    numbers = [k for k in rows[0] if "(" in k]
    path = "/v1/models/penguins:predict"

    def matches(predictions, names):
        assert names == [row["prediction"] for row in want], names
        assert bits(predictions) == [[f32(row[k]) for k in classes] for row in want]

    def cell(name, text):
        return float(text) if name in numbers and text not in ("", "NA") else text

    texts = [{k: v for k, v in row.items() if k != label} for row in rows]
    typed = [{k: (cell(k, v) if v not in ("", "NA") else None) for k, v in row.items()} for row in texts]
    for instances in (texts, typed):
        got = good(path, {"instances": instances})["predictions"]
        matches([one["predictions"] for one in got], [one["class"] for one in got])
        columns = {k: [row[k] for row in instances] for k in instances[0]}
        got = good(path, {"inputs": columns})["outputs"]
        matches(got["predictions"], got["class"])
    inputs = [{"name": k, "shape": [32], "datatype": "FP64" if k in numbers else "BYTES",
               "data": [row[k] for row in typed]} for k in typed[0]]
    got = {o["name"]: o for o in good("/v2/models/penguins/infer", {"inputs": inputs})["outputs"]}
    flat = got["predictions"]["data"]
    matches([flat[i:i + 3] for i in range(0, 96, 3)], got["class"]["data"])
    # The same in the binary form: a number is a double and NaN if it is missing, a text has its length.
    parts = []
    for one in inputs:
        values = one.pop("data")
        if one["datatype"] == "FP64":
            parts.append(struct.pack("<32d", *[math.nan if v is None else v for v in values]))
        else:
            texts = [("" if v is None else v).encode() for v in values]
            parts.append(b"".join(struct.pack("<I", len(t)) + t for t in texts))
        one["parameters"] = {"binary_data_size": len(parts[-1])}
    head = json.dumps({"inputs": inputs, "outputs": [{"name": "class", "parameters": {"binary_data": True}}]})
    got_head, data = good("/v2/models/penguins/infer", head.encode() + b"".join(parts),
                          {"Inference-Header-Content-Length": str(len(head))})
    data = data[int(got_head["Inference-Header-Content-Length"]):]
    names = []
    while data:
        length = struct.unpack("<I", data[:4])[0]
        names.append(data[4:4 + length].decode())
        data = data[4 + length:]
    assert names == [row["prediction"] for row in want], names


def wrong():
    """Requests that are refused: path, body, headers, code, words of the error."""
    row = [0.0] * 64
    digits_v1, digits_v2 = "/v1/models/digits:predict", "/v2/models/digits/infer"
    penguins = "/v1/models/penguins:predict"
    bird = {"Island": "Dream", "Beak Length (mm)": 40, "Beak Depth (mm)": 18, "Flipper Length (mm)": 190,
            "Body Mass (g)": 3500, "Sex": None}

    def v2(**more):
        return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": row, **more}]}

    cases = [
        ("/v2/models/nothing", None, 404, 'no model "nothing"'),
        ("/v2/models/digits/versions/7", None, 404, "does not have this version"),
        ("/v2/models/digits/versions/x/infer", v2(), 404, "does not have this version"),
        ("/v3", None, 404, "no path /v3"),
        ("/v1/models/digits:classify", {}, 404, "no path"),
        (digits_v2, None, 405, "expected POST"),
        ("/v2/health/live", {}, 405, "expected GET"),
        (digits_v1, "{", 400, "request:1:"),
        (digits_v1, "", 400, "not valid JSON"),
        (digits_v1, {}, 400, "neither"),
        (digits_v1, {"instances": [row], "inputs": [row]}, 400, "both"),
        (digits_v1, {"instances": []}, 400, "a list of examples"),
        (digits_v1, {"inputs": []}, 400, "expected FP32"),
        (digits_v1, {"instances": [row[1:]]}, 400, "[1, 63]"),
        (digits_v1, {"instances": [row, row[1:]]}, 400, "got one of 63"),
        (digits_v1, {"instances": [row, "x"]}, 400, "expected lists beside lists"),
        (digits_v1, {"instances": [row[1:] + ["x"]]}, 400, 'element 63: expected a number of type f32, got "x"'),
        (digits_v1, {"instances": [{"y": row}]}, 400, 'there is no input "y"; the inputs are "x"'),
        (digits_v1, {"instances": [{"x": row}, row]}, 400, "instance 1"),
        (digits_v1, {"instances": [row], "signature_name": "other"}, 400, "serving_default"),
        (digits_v1, '{"instances":' + "[" * 300 + "]" * 300 + "}", 400, "at most 8 dimensions"),
        (digits_v1, '{"instances":[' + "[" + "0," * 9999 + "0]" + ",0" * 9999 + "]}", 400, "expected FP32"),
        (digits_v2, {}, 400, 'a list \\"inputs\\"'),
        (digits_v2, {"inputs": []}, 400, 'not given: "x"'),
        (digits_v2, {"inputs": v2()["inputs"] * 2}, 400, "given twice"),
        (digits_v2, v2(name="y"), 400, 'no input "y"'),
        (digits_v2, v2(name=7), 400, "a name and a datatype"),
        (digits_v2, v2(datatype="FP64"), 400, "expected FP32 [?, 64], got FP64 [1, 64]"),
        (digits_v2, v2(datatype="FP33"), 501, 'of type "FP33"'),
        (digits_v2, v2(datatype="BYTES"), 400, "expected FP32"),
        (digits_v2, v2(shape=[2, 64]), 400, "expected 128 elements, got 64"),
        (digits_v2, v2(shape=[2000000000, 64]), 400, "less data than its shape"),
        (digits_v2, v2(shape=[-1, 64]), 400, "a shape of at most 8 sizes"),
        (digits_v2, v2(shape=[0, 64], data=[]), 400, "expected"),
        (digits_v2, v2(shape="x"), 400, "a shape of at most 8 sizes"),
        (digits_v2, v2(data=row + [0.0]), 400, "expected"),
        (digits_v2, v2(parameters={"binary_data_size": 256}), 400, "0 bytes that are left"),
        (digits_v2, {**v2(), "outputs": [{"name": "no"}]}, 400, 'there is no output "no"'),
        (digits_v2, {**v2(), "outputs": [{"name": "predictions"}] * 2}, 400, "asked for twice"),
        (digits_v2, v2(shape=[401, 64], data=row * 401), 400, "401 examples, more than --max_examples 400"),
        (penguins, {"instances": [{**bird, "Beak Length (mm)": "long"}]}, 400, "instance 0"),
        (penguins, {"instances": [bird, {k: v for k, v in bird.items() if k != "Sex"}]}, 400, "null is a missing value"),
        (penguins, {"instances": [[1, 2, 3, 4, 5, 6]]}, 400, "has 6 inputs"),
        (penguins, {"inputs": {k: [v] for k, v in bird.items() if k != "Sex"}}, 400, 'not given: "Sex"'),
        (penguins, {"inputs": {k: [v] * (1 + (k == "Sex")) for k, v in bird.items()}}, 400, "penguins"),
    ]
    for path, body, want, words in cases:
        code, head, data = ask(path, body)
        text = json.loads(data)["error"]
        assert code == want and words.replace("\\", "") in text, (path, str(body)[:80], code, text)
        assert len(text) < 2000 and head["Content-Type"] == "application/json", text
    sizes = "Inference-Header-Content-Length"
    for headers, want, words in [({sizes: "x"}, 400, sizes), ({sizes: "99999"}, 400, sizes),
                                 ({sizes: "2"}, 400, "not valid"), ({"Content-Encoding": "gzip"}, 501, "identity")]:
        code, _, data = ask(digits_v2, v2(), headers)
        assert code == want and words in json.loads(data)["error"], (headers, code, data)
    code, _, data = ask(digits_v2, "x" * (1 << 20) + "y")
    assert code == 413 and "1048576" in json.loads(data)["error"], (code, data)
    code, _, data = ask(digits_v2, (piece for piece in [b"{", b"}"]))  # chunked
    assert code == 400 and b"inputs" in data, (code, data)
    assert good(digits_v1, {"instances": [row]})  # it still answers
    # A path is not cut off, and no header line is ignored.
    assert ask("/v2/health/live%00more")[0] == 400
    many = {f"X-{i}": "x" for i in range(62)}  # besides Host and Accept-Encoding
    code, _, data = ask("/v2", headers=many)
    assert code == 431 and b"header lines" in data, (code, data)
    assert ask("/v2", headers=dict(list(many.items())[:60]))[0] == 200
    assert ask("/v2", headers={"X": "x" * 20000})[0] == 400
    # Bytes that are no HTTP get an error or an end, and no echo.
    for raw in (b"nonsense\r\n\r\n", b"GET /v2 HTTP/parrot\r\n\r\n", b"GET /v2\x00 HTTP/1.1\r\n\r\n",
                b"POST /v2/models/digits/infer HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n",
                # A body with an end that a proxy could see elsewhere, then a second request.
                *(b"POST /v2/models/digits/infer HTTP/1.1\r\n" + framing + b"\r\n\r\n0\r\n\r\nGET /v2 HTTP/1.1\r\n\r\n"
                  for framing in (b"Content-Length: 5\r\nTransfer-Encoding: chunked",
                                  b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 5x",
                                  b"Content-Length: 0x5", b"Content-Length: +5"))):
        with socket.create_connection((HOST, PORT), timeout=20) as one:
            one.sendall(raw)
            got = b""
            while piece := one.recv(4096):
                got += piece
            assert not got or (got.startswith(b"HTTP/1.1 ") and b"200 OK" not in got), got[:200]
            assert b"parrot" not in got


def memory():
    """A body of many values is read to its end: its memory is bounded by its size."""
    path = "/v1/models/digits:predict"
    code, _, data = ask(path, '{"instances":[' + "{}," * 1500000 + "{}]}")
    assert code == 400 and "instance 0" in json.loads(data)["error"], (code, data)
    code, _, data = ask(path, '{"instances":[' + "0," * 1500000 + "0]}")
    assert code == 400 and "expected FP32" in json.loads(data)["error"], (code, data)


def unread():
    """A body that would drip for 13 minutes is given up after --timeout_secs 2, not after the default of 30."""
    begun = time.monotonic()
    with socket.create_connection((HOST, PORT), timeout=20) as one:
        one.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
        one.settimeout(0.2)
        answer = b""
        while not answer and time.monotonic() - begun < 25:
            try:
                one.sendall(b" " * 256)
                answer = one.recv(4096) or b"closed"
            except socket.timeout:
                pass
            except OSError:
                answer = b"closed"
    assert answer == b"closed" or b" 408 " in answer, answer


def crowd(connections):
    """One connection more than allowed is refused; others are answered again when some have closed."""
    held, deadline = [], time.monotonic() + 60
    while len(held) < int(connections):  # connections of a client before may not have ended yet
        assert time.monotonic() < deadline, len(held)
        one = http.client.HTTPConnection(HOST, PORT, timeout=20)
        if ask("/v2/health/live", connection=one)[0] == 200:
            held.append(one)
        else:
            one.close()
    code, _, data = ask("/v2/health/live")
    assert code == 503 and "connections" in json.loads(data)["error"], (code, data)
    for one in held:
        one.close()
    while ask("/v2/health/live")[0] != 200:
        assert time.monotonic() < deadline


def under_load(data, folder_file, *predicted):
    """Sends requests until the file appears. Each answer is entirely of one version. When a version answers
    that did not before, its number is appended to load.log. Prints the counts of answers."""
    rows = digits(data)[:7]
    answers = {version: expected(path)[:7] for version, path in (pair.split("=") for pair in predicted)}
    request = {"inputs": [v2_input(rows, data=rows)]}

    def send(_):
        seen, last, one = {}, None, http.client.HTTPConnection(HOST, PORT, timeout=20)
        while True:
            try:
                open(folder_file).close()
                break
            except FileNotFoundError:
                pass
            got = good("/v2/models/digits/infer", request, connection=one)
            version, flat = got["model_version"], [f32(v) for v in got["outputs"][0]["data"]]
            assert flat == sum(answers[version], []), "an answer mixes versions"
            seen[version] = seen.get(version, 0) + 1
            if version != last:
                with open("load.log", "a") as log:
                    log.write(version + "\n")
            last = version
        one.close()
        return seen

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        total = {}
        for seen in pool.map(send, range(4)):
            for version, count in seen.items():
                total[version] = total.get(version, 0) + count
    print(json.dumps(total))
    assert set(total) == set(answers), total


def live(data, end_file, *predicted):
    """Sends rows of a CSV file, as texts, until the file appears. Each answer has the bits of the checkpoint that it
    names, and the steps of checkpoints do not fall. Appends each step that answers to load.log."""
    with open(data) as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "clicked"]
    answers = {}
    for version, path in (pair.split("=") for pair in predicted):
        with open(path) as file:
            answers[version] = [f32(cell) for row in csv.DictReader(file) for name, cell in row.items()
                                if name.startswith("p_")]
    request = {"inputs": [{"name": name, "datatype": "BYTES", "shape": [len(rows)],
                           "data": [row[name] for row in rows]} for name in names]}

    def send(_):
        steps, one = [], http.client.HTTPConnection(HOST, PORT, timeout=20)
        while not os.path.exists(end_file):
            got = good("/v2/models/live/infer", request, connection=one)
            version, flat = got["model_version"], [f32(v) for v in got["outputs"][0]["data"]]
            assert flat == answers[version], "an answer of step %s has other bits" % version
            if not steps or steps[-1] != int(version):
                steps.append(int(version))
                with open("load.log", "a") as log:
                    log.write(version + "\n")
        one.close()
        return steps

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for steps in pool.map(send, range(3)):
            assert steps == sorted(steps), steps


def places(signature):
    """The index of a category's value is answered as the value."""
    with open(signature) as file:
        values = next(one["values"] for one in json.load(file)["inputs"] if one["name"] == "item")
    texts = values[:3] + [values[-1], "nothing"]

    def send(datatype, data):
        cells = {"user": ["u7"] * 5, "kind": ["a"] * 5}
        inputs = [{"name": k, "datatype": "BYTES", "shape": [5], "data": v} for k, v in cells.items()]
        inputs.append({"name": "price", "datatype": "FP64", "shape": [5], "data": [2.5] * 5})
        inputs.append({"name": "item", "datatype": datatype, "shape": [5], "data": data})
        return ask("/v2/models/two/infer", {"inputs": inputs})

    code, _, by_text = send("BYTES", texts)
    assert code == 200, by_text
    _, _, by_index = send("INT64", [0, 1, 2, len(values) - 1, -1])
    assert by_text == by_index, (by_text, by_index)
    code, _, data = send("INT64", [0, 1, 2, 3, len(values) + 1])
    assert code == 400 and "expected the index of a value" in json.loads(data)["error"], data


def full(data):
    """With one thread and no queue some of many requests get 429, and the others are answered."""
    rows = digits(data) * 8
    body = json.dumps({"inputs": [v2_input(rows, data=rows)]})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask("/v2/models/digits/infer", body), range(24)))
    codes = {code for code, _, _ in answers}
    assert codes == {200, 429}, codes
    refused = next(answer for answer in answers if answer[0] == 429)
    assert refused[1]["Retry-After"] == "1" and "--queue" in json.loads(refused[2])["error"]


def joined(batches, *predicted):
    """Requests at the same time run together, and each has the bits of a run by itself: `predicted` are those of
    batches of 1 and of 3."""
    rows = digits(batches)
    connections = [http.client.HTTPConnection(HOST, PORT, timeout=20) for _ in range(8)]

    def send(job):
        index, first, size = job
        batch = {"inputs": [v2_input(rows[first:first + size], data=rows[first:first + size])]}
        return [f32(v) for v in good("/v2/models/digits/infer", batch, connection=connections[index])["outputs"][0]["data"]]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for size, path in zip((1, 3), predicted):
            want = expected(path)
            before = gate_numbers()
            for first in range(0, 8 * 8 * size, 8 * size):
                jobs = [(i, first + i * size, size) for i in range(8)]
                for (_, at, _), got in zip(jobs, pool.map(send, jobs)):
                    assert got == sum(want[at:at + size], []), (size, at)
            runs, requests = (b - a for a, b in zip(before, gate_numbers()))
            assert requests == 64 and runs < 48, (runs, requests)
    wrong = ask("/v2/models/digits/infer", {"inputs": [v2_input([[0] * 63], data=[0] * 63)]})
    assert wrong[0] == 400, wrong


def gate_numbers():
    values = dict(line.rsplit(" ", 1) for line in good("/metrics")[1].decode().splitlines() if line[0] != "#")
    return int(values["belfry_serve_runs_total"]), int(values["belfry_serve_run_requests_total"])


def label(name, version=None):
    """A label stands for its version in both protocols, or is unknown."""
    path = f"models/digits/labels/{name}"
    v1 = ask(f"/v1/{path}:predict", {"instances": [[0] * 64]})
    code, _, data = ask(f"/v2/{path}/infer", {"inputs": [v2_input([[0] * 64], data=[0] * 64)]})
    assert v1[0] == code == (404 if version is None else 200), (v1, code, data)
    if version is None:
        assert f'no label "{name}"' in json.loads(data)["error"], data
    else:
        assert json.loads(data)["model_version"] == version, data
        status = good(f"/v1/{path}")["model_version_status"]
        assert [one["version"] for one in status] == [version], status


def shares(stable, canary, percent):
    """Requests without a version are divided by their ids, or in turns. The version of each id goes to shares.txt."""
    path, percent = "/v2/models/digits/infer", int(percent)
    body = {"inputs": [v2_input([[0] * 64], data=[0] * 64)]}
    one = http.client.HTTPConnection(HOST, PORT, timeout=20)

    def version(of_id):
        return good(path, {"id": of_id, **body}, connection=one)["model_version"]

    chosen = {str(i): version(str(i)) for i in range(400)}
    assert set(chosen.values()) <= {stable, canary}, chosen
    count = list(chosen.values()).count(canary)
    assert abs(count - 4 * percent) < 40, count
    assert all(version(i) == chosen[i] for i in list(chosen)[:20]), "an id has two versions"
    for form in ("v1", "v2", "empty"):
        got = []
        for _ in range(100):
            if form == "v1":
                answer = ask("/v1/models/digits:predict", {"instances": [[0] * 64]}, connection=one)
                got.append(answer[1]["Model-Version"])
            else:
                got.append(good(path, {"id": "", **body} if form == "empty" else body, connection=one)["model_version"])
        assert abs(got.count(canary) - percent) <= 2, (form, got)
    if percent < 100:  # a number has nothing to do with shares
        assert good(path.replace("/infer", "/versions/%s/infer" % stable), body)["model_version"] == stable
    values = dict(line.rsplit(" ", 1) for line in good("/metrics")[1].decode().splitlines() if line[0] != "#")
    for number in {canary} if percent == 100 else {stable, canary}:
        labels = 'model="digits",version="%s"' % number
        total = int(values["belfry_serve_version_requests_total{%s,code=\"200\"}" % labels])
        assert total == int(values["belfry_serve_version_seconds_count{%s}" % labels]) > 50, values
    with open("shares.txt", "w") as file:
        file.writelines("%s %s\n" % pair for pair in chosen.items())


def versions(*numbers):
    got = good("/v2/models/digits")["versions"]
    assert got == list(numbers), got


def metrics():
    head, data = good("/metrics")
    lines = data.decode().splitlines()
    assert head["Content-Type"].startswith("text/plain; version=0.0.4")
    names = {line.split(" ")[2] for line in lines if line.startswith("# TYPE ")}
    histograms = {"belfry_serve" + part + "_seconds" for part in ("", "_version", "_stage")}  # their samples have longer names
    assert {line.split("{")[0].split(" ")[0] for line in lines if line[0] != "#"} >= names - histograms
    values = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    assert int(values['belfry_serve_requests_total{model="digits",code="200"}']) > 0
    assert int(values['belfry_serve_requests_total{model="digits",code="400"}']) > 0
    buckets = [int(v) for k, v in values.items() if k.startswith('belfry_serve_seconds_bucket{model="digits"')]
    assert buckets == sorted(buckets) and buckets[-1] == int(values['belfry_serve_seconds_count{model="digits"}'])
    assert 'belfry_serve_version{model="penguins",version="50"}' in values
    total, stages = float(values['belfry_serve_seconds_sum{model="digits"}']), 0
    for stage in ("read", "queue", "run", "write"):
        labels = '{model="digits",stage="%s"}' % stage
        assert int(values["belfry_serve_stage_seconds_count" + labels]) == buckets[-1]
        stages += float(values["belfry_serve_stage_seconds_sum" + labels])
    assert abs(stages - total) < 1e-6 * total, (stages, total)


globals()[CASE](*ARGUMENTS)

#!/usr/bin/env python3
"""Runs the pods of an object in the stand-in for kubectl, as processes on the loopback, to their end.

usage: KUBE=FOLDER play.py NAMESPACE KIND NAME VOLUME BIN [--kill ROLE-INDEX@STEP]…
VOLUME is the folder that pods see at the mount, BIN the folder of belfry. The program acts as controllers and nodes:
it expands variables, numbers pods, resolves the master's name in the job's network, probes ports, replaces killed
pods, ends the job on exit codes of the failure policy, and sends SIGTERM to a suspended job. It writes conditions into
the object. --kill kills a pod (SIGKILL) once a checkpoint of that step, or a later one, exists. Every pod is on
127.0.0.1, with a free port instead of the manifest's.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

kube = pathlib.Path(os.environ["KUBE"])
namespace, kind, job, volume, binaries = sys.argv[1:6]
kills = [tuple(w.split("@")) for w in sys.argv[7::2]]
place = kube / "objects" / f"{namespace}.{kind}.{job}.json"
DEADLINE = time.monotonic() + 240
CODES_OF_TFJOB = range(1, 128)  # ExitCode: permanent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def expand(text, variables):
    """Expands $(NAME) as Kubernetes does; $$ is $."""
    def one(found):
        if found.group(0) == "$$":
            return "$"
        return variables.get(found.group(1), found.group(0))
    return re.sub(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)", one, text)


def update(change):
    value = json.loads(place.read_text())
    change(value)
    part = place.with_suffix(".play")
    part.write_text(json.dumps(value))
    part.replace(place)


class Pod:
    def __init__(self, group, index):
        self.group, self.index = group, index
        self.port, self.starts, self.process, self.ready = free_port(), 0, None, False
        self.spec = group["template"]["spec"]
        self.container = self.spec["containers"][0]
        self.done = False

    def name(self):
        return f"{self.group['role']}-{self.index}"

    def local(self, text):
        """Replaces names and paths of the cluster by those of this host."""
        master = pods[0]
        text = text.replace(f"{job}-master-0-0.{job}:7077", f"127.0.0.1:{master.port}")
        text = text.replace("127.0.0.1:7077", f"127.0.0.1:{self.port}")
        for mount in self.container["volumeMounts"]:
            here = volume if mount["name"] == "models" else str(secret_folder(self.spec))
            text = re.sub(rf"{re.escape(mount['mountPath'])}(?=/|$|\")", here, text)
        return text

    def environment(self):
        fields = {
            "status.podIP": "127.0.0.1",
            "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(self.index),
        }
        variables = {}
        for item in self.container["env"]:
            if "valueFrom" in item:
                variables[item["name"]] = fields[item["valueFrom"]["fieldRef"]["fieldPath"]]
            else:
                variables[item["name"]] = self.local(expand(item["value"], variables))
        if kind == "tfjob":
            variables["TF_CONFIG"] = self.tf_config()
        return variables

    def tf_config(self):
        names = {"Chief": "chief", "Worker": "worker", "PS": "ps"}
        cluster = {}
        for pod in pods:
            if pod.group["spec"] in names:
                cluster.setdefault(names[pod.group["spec"]], []).append(f"127.0.0.1:{pod.port}")
        task = {"type": self.group["spec"].lower(), "index": self.index}
        return json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})

    def start(self):
        words = self.environment()
        suffix = f"x{self.starts}"
        self.starts += 1
        command = [self.local(expand(w, words)) for w in self.container["command"]]
        kept = {k: v for k, v in os.environ.items() if k in ("TMPDIR", "ASAN_OPTIONS", "TSAN_OPTIONS", "HOME")}
        path = f"{binaries}:{os.environ['PATH']}"
        middle = f"{self.name()}" if kind == "tfjob" else f"{self.group['role']}-0-{self.index}-{suffix}"
        log = kube / "logs" / f"{job}-{middle}.log"
        log.parent.mkdir(exist_ok=True)
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                command, env=kept | {"PATH": path} | words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.local(self.container["workingDir"]), executable=os.path.join(binaries, command[0]))
        self.ready = False

    def probe(self):
        if self.ready or self.done or "readinessProbe" not in self.container:
            return
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            self.ready = True
        except OSError:
            pass


def secret_folder(spec):
    name = next(v["secret"]["secretName"] for v in spec["volumes"] if v["name"] == "secret")
    folder = kube / "secrets" / name
    if not folder.exists():
        folder.mkdir(parents=True)
        value = json.loads((kube / "objects" / f"{namespace}.secret.{name}.json").read_text())
        (folder / "secret").write_text(value["stringData"]["secret"])
        (folder / "secret").chmod(0o400)
    return folder


def groups_of(value):
    if kind == "tfjob":
        for spec, part in value["spec"]["tfReplicaSpecs"].items():
            yield {"role": spec.lower(), "spec": spec, "count": part["replicas"], "template": part["template"],
                   "limit": value["spec"]["runPolicy"]["backoffLimit"], "final": CODES_OF_TFJOB}
        return
    for part in value["spec"]["replicatedJobs"]:
        spec = part["template"]["spec"]
        final = [r["onExitCodes"]["values"] for r in spec["podFailurePolicy"]["rules"] if "onExitCodes" in r]
        yield {"role": part["name"], "count": spec["completions"], "template": spec["template"],
               "limit": spec["backoffLimit"], "final": final[0]}


def end_all():
    for pod in pods:
        if pod.process.poll() is None:
            pod.process.terminate()
    for pod in pods:
        try:
            pod.process.wait(max(1, DEADLINE - time.monotonic()))
        except subprocess.TimeoutExpired:
            pod.process.kill()
            pod.process.wait()


def finish(condition, message=""):
    end_all()
    update(lambda v: v.update(status={"conditions": [
        {"type": "Created", "status": "True"}, {"type": condition, "status": "True", "message": message}]}))
    print(condition, message, " ".join(f"{p.name()}:{p.starts}" for p in pods))
    sys.exit(0)


def kill_one():
    who, step = kills[0]
    folder = next(v["value"] for v in pods[0].container["env"] if v["name"] == "BELFRY_MODEL_DIR")
    saved = [p.name[5:] for p in pathlib.Path(pods[0].local(folder)).glob("ckpt-*")]
    if any(name.isdigit() and int(name) >= int(step) for name in saved):
        next(p for p in pods if p.name() == who).process.send_signal(signal.SIGKILL)
        kills.pop(0)


def look_after(pod):
    code = pod.process.poll()
    if code is None or pod.done:
        return
    code = code if code >= 0 else 128 - code
    if code == 0:
        pod.done = True
        if pod is pods[0]:
            finish("Succeeded" if kind == "tfjob" else "Completed")
    elif code in pod.group["final"]:
        finish("Failed", f"{pod.name()} ended with exit code {code}")
    elif pod.starts > pod.group["limit"]:
        finish("Failed", f"{pod.name()} has been started too often")
    else:
        pod.start()


def is_suspended():
    spec = json.loads(place.read_text())["spec"]
    return spec.get("suspend") or spec.get("runPolicy", {}).get("suspend")


pods = [Pod(group, i) for group in groups_of(json.loads(place.read_text())) for i in range(group["count"])]
for pod in reversed(pods):  # the master comes last, as others wait for it
    pod.start()
told = False
while time.monotonic() < DEADLINE:
    for pod in pods:
        look_after(pod)
        pod.probe()
    if kills:
        kill_one()
    if pods[0].ready and not told:
        told = True
        state = {"conditions": [{"type": "Running", "status": "True"}]} if kind == "tfjob" else {
            "replicatedJobsStatus": [{"name": "master", "ready": 1, "active": 1, "succeeded": 0, "failed": 0}]}
        update(lambda v: v.update(status=state))
    if is_suspended():
        finish("Suspended")
    time.sleep(0.02)
end_all()
sys.exit("play.py: out of time")

"""Every flag of training in every way to run a job (a "deal"); deals.sh calls this.

A flag that a deal accepts must show there: the run with it differs from the same run without it, in exit
codes, results, log, or files. Else the flag is silent, and the test fails. It also fails for a flag that
has no row in the table.

Every third flag is tried in one of the six deals that start many processes, the next of them in the next deal, and
all are tried wherever the table has a word for it. BELFRY_THOROUGH=1, or flags as arguments, try all.

usage: deals.py BUILD_FOLDER TABLE [FLAG ..]
"""
import concurrent.futures
import glob
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

BUILD, TABLE, ONLY = sys.argv[1], sys.argv[2], sys.argv[3:]
BELFRY = os.path.join(BUILD, "tools/belfry")
PROGRAM = os.path.join(BUILD, "tests/own_program")
LOCAL = [BELFRY, "local", "train", "--distributed", "--worker_count=2"]
DEADLINE = int(os.environ.get("patience", 300))  # seconds for one run: a loaded machine needs less

# --- Data -------------------------------------------------------------------------------------------


def write(path, lines):
    with open(path, "w") as out:
        out.write("".join(line + "\n" for line in lines))


def make_data():
    table, numbers, ids = ["size,color,grade,heavy,light"], [], ["user,item,tags,hour,clicked"]
    for i in range(40):
        size, red = i * 37 % 41 / 4, i % 3 == 0
        grade = "high" if size + 3 * red > 6 else "low"
        table.append(f"{size},{'red' if red else 'blue'},{grade},{int(size > 4)},{int(size < 7)}")
        numbers.append(",".join(str((i * k * 7 + k) % 9 / 8) for k in range(1, 17)) + f",{i % 3}")
        ids.append(f"u{i * 7 % 5},i{i * 3 % 7},t{i % 4}|t{i % 3},{i % 24 / 24},{int(i % 3 > 0)}")
    write("t.csv", table)
    write("weights.csv", ids[:1] + [re.sub(r"\|t", ":0.5|t", line) for line in ids[1:]])
    write("settings.yaml", ["train_steps: 3", "learning_rate: 0.5"])
    os.makedirs("data"), os.makedirs("other")
    write("data/below.csv", table)
    write("other/below.csv", table[:1] + table[5:20])
    with open("all.yaml", "w") as out:
        subprocess.run([BELFRY, "columns", "t.csv", "--label_column=grade"], stdout=out, stderr=subprocess.DEVNULL,
                       check=True)
    with open("columns.yaml", "w") as out:
        subprocess.run([BELFRY, "columns", "t.csv", "--label_column=grade", "--ignore=size"], stdout=out,
                       stderr=subprocess.DEVNULL, check=True)
    write("wrong.csv", table[:9] + ["x,red,high,0,0"] + table[10:])
    write("u.csv", table[:1] + table[5:20])
    write("n.csv", [",".join(f"x{k}" for k in range(16)) + ",label"] + numbers)
    write("broken.csv", [",".join(f"x{k}" for k in range(16)) + ",label"] + numbers[:-1] + ["x" + numbers[-1]])
    write("cluster.yaml", ["workers: {count: 1}", "parameter_servers: {count: 2}"])
    write("ids.csv", ids)
    write("text.txt", [f"line {i} of {i * 7 % 11} words" for i in range(12)])
    write("text.jsonl", [json.dumps({"text": f"line {i} of text", "title": f"{i}: a longer title"}) for i in range(12)])
    with open("text.bin", "wb") as out:
        out.write(b"".join((i * 5 % 251).to_bytes(4, "little") for i in range(150)))
    one([BELFRY, "train_and_evaluate", "--model_dir=before"] + COMMON + CONTEXTS["numbers"])
    one([BELFRY, "export", "--model_dir=before", "--export_dir=onnx"])
    source = os.environ.get("BELFRY_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    one([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-I{source}/include", f"{source}/examples/my_model/my_model.c",
         "-o", "package.so"])
    for name, seed in (("train", 1), ("eval", 2)):
        made = subprocess.run([f"{source}/examples/clicks/make_data", "600", str(seed)], capture_output=True, text=True)
        write(f"clicks-{name}.csv", made.stdout.splitlines())


SMALL_GPT = ["--layers=1", "--heads=2", "--token_width=8", "--context=4"]
CONTEXTS = {
    "table": ["--train_files=t.csv", "--label_column=grade", "--ignore=heavy,light"],
    "described": ["--train_files=t.csv", "--label_column=grade"],
    "sizes": ["--train_files=t.csv", "--label_column=size", "--ignore=heavy,light"],
    "wrong": ["--train_files=wrong.csv", "--columns=all.yaml"],
    "below": ["--train_files=below.csv", "--label_column=grade"],
    "onnx": ["--train_files=n.csv", "--model=onnx/model.onnx", "--class_count=3"],
    "package": ["--train_files=n.csv", "--package=./package.so", "--class_count=3", "--feature_scale=1"],
    "two": ["--train_files=t.csv", "--ignore=grade"],
    "broken": ["--train_files=broken.csv", "--model=dnn", "--hidden_units=4", "--feature_scale=1", "--class_count=3"],
    "weights": ["--train_files=weights.csv", "--model=wide_deep", "--id_columns=user,item", "--id_list_columns=tags",
                "--hidden_units=4", "--embedding_width=4", "--feature_scale=1", "--class_count=2"],
    "numbers": ["--train_files=n.csv", "--model=dnn", "--hidden_units=4", "--feature_scale=1", "--class_count=3"],
    "cnn": ["--train_files=n.csv", "--model=cnn", "--filters=2", "--window=3", "--dense_units=4",
            "--feature_scale=1", "--class_count=3"],
    "resnet": ["--train_files=n.csv", "--model=resnet", "--blocks=1", "--width=2", "--feature_scale=1",
               "--class_count=3"],
    "gru": ["--train_files=n.csv", "--model=gru", "--recurrent_units=3", "--feature_scale=1", "--class_count=3"],
    "text": ["--train_files=text.txt", "--model=gpt"] + SMALL_GPT,
    "lines": ["--train_files=text.jsonl", "--model=gpt"] + SMALL_GPT,
    "tokens": ["--train_files=text.bin", "--model=gpt", "--vocabulary=300"] + SMALL_GPT,
    "texts": ["--train_files=t.csv", "--model=encoder"] + SMALL_GPT,
    "ids": ["--train_files=ids.csv", "--model=wide_deep", "--id_columns=user,item", "--id_list_columns=tags",
            "--hidden_units=4", "--embedding_width=4", "--feature_scale=1", "--class_count=2"],
}
COMMON = ["--train_batch_size=4", "--train_steps=4", "--num_threads=1", "--eval_share=0.25",
          "--log_level=debug"]

# --- Runs -------------------------------------------------------------------------------------------

NOISE = re.compile(r"[0-9.]+ examples/s|ETA [0-9.]+ s|\(pid [0-9]+\)|pid [0-9]+|127\.0\.0\.1:[0-9]+|in [0-9.]+ m?s")
MEASURED = ("time", "pid", "examples_per_second", "eta_seconds")
TIMED = re.compile(" is the slowest: |cannot reach the master")
TIMES = ("train_seconds", "examples_per_second")


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BELFRY_")}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", **more}


def call(commands):
    """Runs processes side by side: (words, environment) each. Codes and texts, in that order."""
    processes = [subprocess.Popen([w for w in words if not w.startswith("BELFRY_")],
                                  env={**env, **dict(w.split("=", 1) for w in words if w.startswith("BELFRY_"))}, 
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for words, env in commands]
    def end(process):
        try:
            out, err = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return process, out, err

    # If one is refused, the others would wait for it.
    ends = []
    with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(end, process) for process in processes]):
            process, out, err = done.result()
            if process.returncode < 0:
                continue
            ends.append((processes.index(process), process.returncode, out, err))
            if process.returncode > 0:
                for other in processes:
                    other.kill()
    return [found[1:] for found in sorted(ends)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def by_hand(folder, flags):
    cluster = ('{"chief": ["127.0.0.1:%d"], "ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:0"]}' % free_port())
    commands = []
    for role in ("chief", "worker", "ps", "evaluator"):
        task = '{"cluster": %s, "task": {"type": "%s", "index": 0}}' % (cluster, role)
        commands.append(([BELFRY, "train_and_evaluate", f"--model_dir={folder}"] + flags,
                         environment(TF_CONFIG=task, BELFRY_SECRET="0123456789abcdef")))
    return call(commands)


def one(words):
    return call([(words, environment())])


def program(folder, flags):
    return one([PROGRAM, "clicks-train.csv", "clicks-eval.csv", "1", f"--model_dir={folder}"] + flags)


def many_programs(folder, flags):
    return one(LOCAL + [f"--job_dir={folder}", "--", PROGRAM, "clicks-train.csv", "clicks-eval.csv", "1"] + flags)


def submitted(folder, flags):
    words = [BELFRY, "jobs", "submit", "training", "sent", "--config=cluster.yaml", f"--job_dir={folder}",
             "--replace", "--wait", "--stream_logs", "--"]
    return call([(words + flags, environment(XDG_STATE_HOME=os.path.abspath(folder + ".state")))])


DEALS = {
    "one": lambda d, f: one([BELFRY, "train_and_evaluate", f"--model_dir={d}"] + f),
    "cluster": lambda d, f: one(LOCAL + [f"--job_dir={d}", "--"] + f),
    "evaluator": lambda d, f: one(LOCAL + ["--evaluator_count=1", f"--job_dir={d}", "--"] + f),
    "hand": by_hand,
    "study": lambda d, f: one([BELFRY, "cross_validate", "--folds=2", "--parallel=1", f"--model_dir={d}"] + f),
    "submitted": submitted,
    "program": program,
    "programs": many_programs,
    "resumed": lambda d, f: one([BELFRY, "train_and_evaluate", f"--model_dir={d}"] + f), # of a complete run
}
# Flags that only these verbs have, passed to them and not to the trainings: (folder, training, flags).
OWN = {
    "tune": lambda d, t, f: one([BELFRY, "tune", "--try=l2=0.1|0.2", "--trials=2", "--parallel=1", f"--model_dir={d}"] +
                                t + ["--model=linear"] + f),
    "cross_validate": lambda d, t, f: one([BELFRY, "cross_validate", "--folds=2", f"--model_dir={d}"] +
                                          [word for word in t if not word.startswith("--eval_share")] + f),
    "local": lambda d, t, f: one([BELFRY, "local", "train", f"--job_dir={d}"] + f + ["--"] + t),
    "distributed": lambda d, t, f: one(LOCAL + [f"--job_dir={d}"] + f + ["--"] + t),
}
# Deals of many processes.
COSTLY = ("cluster", "evaluator", "hand", "study", "submitted", "programs")
ALL = bool(ONLY) or os.environ.get("BELFRY_THOROUGH") == "1"
ONE_PROCESS = ("one", "study", "program", "resumed") # in which --num_workers counts


def plain(line):
    if not line.startswith("{"):
        return NOISE.sub("_", line)
    fields = json.loads(line)
    kept = sorted((name, NOISE.sub("_", str(value))) for name, value in fields.items() if name not in MEASURED)
    return str(kept)


def lines(text):
    return sorted({plain(line) for line in text.splitlines() if not TIMED.search(line)})


def look(folder, ends):
    """All that shows of a run, as parts."""
    files = {}
    for path in glob.glob(folder + "/**", recursive=True):
        name = os.path.relpath(path, folder)
        event = re.sub(r"events\.out\..*", "events", name)
        if event != name:
            name = event
            files[name] = files.get(name, 0) + os.path.getsize(path)
        elif "/logs" not in path and not name.endswith(".lock"):
            files[name] = 0
    out = [line for _, text, _ in ends for line in text.splitlines() if line.split(" ")[0] not in TIMES]
    logs = "".join(open(path, errors="replace").read() for path in glob.glob(folder + "/**/log*/*.log", recursive=True) +
                   glob.glob(folder + "/**/log.txt", recursive=True))
    err = "".join(text for _, _, text in ends)
    return {"codes": [code for code, _, _ in ends], "out": out, "files": sorted(files.items()),
            "log": lines((err + logs).replace(folder, "DIR")), "err": err}


numbers = itertools.count()
complete, completing = {}, threading.Lock()


def complete_run(folder, words):
    """A complete run in this folder: a copy of the first one with these words."""
    with completing:
        first = complete.setdefault(tuple(words), threading.Lock())
    kept = f"complete-{id(first)}"
    with first:
        if not os.path.isdir(kept):
            one([BELFRY, "train_and_evaluate", f"--model_dir={kept}"] + words)
    if os.path.isdir(kept): # words that are refused make none
        shutil.copytree(kept, folder)


def run(deal, context, needs, flags):
    """What shows of a run with these flags, in a folder of its own that is removed."""
    folder = f"run-{next(numbers)}"
    words = list(CONTEXTS.get(context, CONTEXTS["table"]))
    if deal in ("program", "programs"):
        words = ["--num_threads=1"]
    else:
        words = [word for word in COMMON if deal != "study" or not word.startswith("--eval_share")] + words
    given = [need for need in needs if need.startswith(("-", "BELFRY_"))]
    if "workers" in needs and deal in ONE_PROCESS:
        given.append("--num_workers=2")
    flags = [flag.replace("FOLDER", folder) for flag in flags]
    first = [need[len("again"):].lstrip(":") for need in needs if need.startswith("again")]
    if context.startswith("@"):
        ends = OWN[deal](folder, words, given + flags)
    else:
        before = words + given + [flag for flag in first if flag]
        if deal == "resumed":
            complete_run(folder, before)
        elif first:
            DEALS[deal](folder, before + ([] if deal in ("program", "programs") else ["--train_steps=2"]))
        ends = DEALS[deal](folder, words + given + flags)
    seen = look(folder, ends)
    for path in glob.glob(folder + "*"):
        if path == folder or path.startswith(folder + "."):
            shutil.rmtree(path, ignore_errors=True)
    return seen


def differs(a, b):
    return [part for part in ("codes", "out", "files", "log") if a[part] != b[part]]


UNREAD = re.compile("has no effect|counts for nothing|counts only|passed over|skipped")


def verdict(flag, without, seen):
    """What a deal does with a flag: read, refused, noted (it says that nothing reads it), idle or silent."""
    named = [line for line in seen["err"].splitlines() + seen["log"] if re.search(rf"\b(no_)?{flag}\b", line)]
    if max(seen["codes"], default=0) == 2 and any("belfry:" in line or " is FAILED: " in line for line in named):
        return "refused"
    if any(UNREAD.search(line) for line in named):
        return "noted"
    if without is None or differs(without.result(), seen):
        return "read" if without else "neither refused nor noted"
    return "idle" if "nothing to train" in seen["err"] else "silent"


# --- The table --------------------------------------------------------------------------------------


def flags_of(verb):
    """Flags of a verb, each with its group, as its help lists them."""
    text = subprocess.run([BELFRY] + verb.split() + ["--help"], capture_output=True, text=True, check=True).stdout
    group, found = None, {}
    for line in text.splitlines()[1:]:
        name = re.match(r"  (?:-h, )?--?(?:\[no_\])?([a-z0-9_]+)", line)
        if name:
            found[name.group(1)] = group
        elif line and line[0] != " ":
            group = line
    return found


def read_table():
    rows = []
    with open(TABLE) as table:
        for line in table:
            if line.startswith("#") or not line.strip():
                continue
            flag, context, needs, word, rest = [cell.strip() for cell in line.rstrip("\n").split(" |")]
            expected = {}
            for item in rest.split():
                deals, what = item.split("=")
                expected.update({deal: what for deal in deals.split(",")})
            rows.append((flag, context, tuple(needs.split()), word, expected))
    return rows


def run_flags():
    source = os.environ.get("BELFRY_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(os.path.join(source, "src/estimator/run_settings.h")) as text:
        found = set(re.findall(r"ROW\([A-Z]+, ([a-z_]+),", text.read()))
    assert len(found) > 40, "run_settings.h has no rows of settings"
    return found


REMEMBERED = "Model", "Optimizer", "Data"  # groups of flags whose change a resumed run refuses


def places():
    """Each row with a deal in which it is tried, and what is expected there."""
    training = flags_of("train_and_evaluate")
    own = {"@tune": ["tune"], "@cross_validate": ["cross_validate"], "@local": ["local", "distributed"]}
    verbs = {"tune": flags_of("tune"), "cross_validate": flags_of("cross_validate"), "local": flags_of("local train")}
    of_run, rows, missing, out = run_flags(), read_table(), [], []
    known = {(row[0], row[1] if row[1].startswith("@") else "") for row in rows}
    missing += [flag for flag in training if (flag, "") not in known]
    for verb, flags in verbs.items():
        missing += [f"{flag} of {verb}" for flag in flags
                    if (verb == "local" or flag not in training) and (flag, "@" + verb) not in known]
    for number, row in enumerate(rows):
        flag, context, needs, word, expected = row
        deals = own.get(context, DEALS)
        for deal in deals:
            if ONLY and flag not in ONLY:
                continue
            usual = "refused" if deal == "resumed" and training.get(flag) in REMEMBERED else "read"
            what = expected.get(deal, expected.get("all", usual))
            here = needs
            if deal in ("program", "programs"):
                here = tuple(need for need in needs if not need.startswith("--") or need[2:].split("=")[0] in of_run)
                what = expected.get(deal, "refused" if flag not in of_run else what)
                if flag not in of_run and deal == "programs":
                    continue
            if what == "-":
                continue
            written = deal in expected or "all" in expected
            if not ALL and not written and deal in COSTLY and (number + 3 * COSTLY.index(deal)) % (3 * len(COSTLY)) != 0:
                continue
            out.append((flag, deal, context, here, word, what))
    return missing, out


def main():
    make_data()
    missing, tried = places()
    for flag in missing:
        print(f"FAILED: --{flag} has no row in {os.path.basename(TABLE)}: which deals read it?")
    failures, without, summary = len(missing), {}, {}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        runs = []
        for flag, deal, context, needs, word, what in tried:
            if what == "read" and (deal, context, needs) not in without:
                without[deal, context, needs] = pool.submit(run, deal, context, needs, [])
            runs.append(pool.submit(run, deal, context, needs, [word]))
        for (flag, deal, context, needs, word, what), seen in zip(tried, runs):
            got = verdict(flag, without.get((deal, context, needs)), seen.result())
            if got == what or (got == "idle" and deal == "resumed" and what == "read"):
                continue
            failures += 1
            summary.setdefault(flag, {}).setdefault(got, []).append(deal)
            print(f"FAILED: {word} in deal {deal}: expected {what}, got {got}")
            for line in seen.result()["err"].splitlines()[-3:]:
                print("  stderr| " + line)
    if os.environ.get("SUMMARY"):
        for flag, verdicts in summary.items():
            print("SUM", flag, " ".join(",".join(d) + "=" + v for v, d in verdicts.items()))
    print(f"{len(tried)} flags in deals, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())

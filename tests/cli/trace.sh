#!/usr/bin/env bash
# --trace writes one valid Chrome trace: of one process, of a cluster, of one whose steps are made of some
# workers' reports, and of one with a killed process. The bits stay.
# usage: trace.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

look() { # FILE TRACKS NAMES: valid, nested, flows in pairs; all tracks and names occur
    python3 - "$@" <<'PYTHON'
import json, sys
from collections import defaultdict

path, tracks, names = sys.argv[1], sys.argv[2].split(","), sys.argv[3].split(",")
events = json.load(open(path))
spans = [e for e in events if e["ph"] == "X"]
seen = {e["args"]["name"] for e in events if e["name"] == "process_name"}
for track in tracks:
    assert track in seen, f"no track {track} among {sorted(seen)}"
assert len(seen) == len(tracks), f"tracks {sorted(seen)}"
for name in names:
    assert any(e["name"] == name for e in spans), f"no span {name}"
assert {e["ph"] for e in events} <= set("MXstf"), "another phase"

rows = defaultdict(list)
for e in spans:
    assert e["dur"] >= 0 and e["ts"] > 0, e
    rows[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
for row in rows.values(): # spans of a row come one after another or are nested
    open_ends = []
    for begin, end in sorted(row, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (begin, end)
        open_ends.append(end)

flows = defaultdict(list)
for e in events:
    if e["ph"] in "stf":
        flows[e["id"]].append(e)
        ns = round(e["ts"] * 1000)
        row = rows[e["pid"], e["tid"]]
        assert any(b <= ns <= end for b, end in row), f"a flow's end outside of all spans: {e}"
assert flows, "no flows"
for flow in flows.values():
    assert "".join(e["ph"] for e in flow) in ("stf", "sf"), flow
    times = [e["ts"] for e in flow]
    assert times == sorted(times), flow
begin, end = min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)
assert end - begin < 120e6, "not one clock"
PYTHON
}

settings=(--train_steps 20 --save_checkpoints_steps 10 --train_batch_size 8)
worker="wait for input,compute,report,wait for version"

run_ok train alone "${settings[@]}" --num_workers 2 --parameter_server_count 2 --trace alone.json
check "one process" look alone.json "master 0,worker 0,worker 1,shard 0,shard 1" \
    "$worker,pass,publish,save,evaluate"
check "its parts are gone" test -z "$(find alone -name '*.trace-part')"
run_ok train plain "${settings[@]}" --num_workers 2 --parameter_server_count 2
equal "bits with and without a trace" "$(digest alone)" "$(digest plain)"

cluster() { # MODEL_DIR [flags of local train] -- [training flags]
    local model_dir=$1
    shift
    belfry local train --distributed --job_dir "$model_dir" "$@" "${digits[@]}" "${settings[@]}"
}
run_ok cluster many --worker_count 2 --parameter_server_count 2 --evaluator_count 1 \
    --trace many.json -- --clip_global_norm 1
check "a cluster" look many.json "master 0,worker 0,worker 1,shard 0,shard 1,evaluator 0" \
    "$worker,sum,update,publish,save,evaluate"
run_ok cluster async --worker_count 2 --parameter_server_count 1 -- --mode async --trace async.json
check "async" look async.json "master 0,worker 0,worker 1,shard 0" "$worker,pass,copy,publish"

# Towers on GPUs, which a stand-in plays. Each has a separate track, whose spans are within those in which the
# host computed there.
cards() { # TRACE KIND…
    python3 - "$@" <<'PYTHON'
import json, sys
events = json.load(open(sys.argv[1]))
tracks = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
spans = [e for e in events if e["ph"] == "X"]
kinds = ["copies in", "kernels", "copies of results"] + sys.argv[2:]
for device in ("cuda:0", "cuda:1"):
    computed = [e for e in spans if e["name"] == "compute" and e["args"]["device"] == device]
    assert len(computed) == 20 and {tracks[e["pid"]] for e in computed} == {"worker 0"}, computed
    own = [e for e in spans if tracks[e["pid"]] == "worker 0 on " + device]
    assert {e["name"] for e in own} == set(kinds), own
    for kind in kinds[:1] + kinds[2:3]:
        assert sorted(e["args"]["step"] for e in own if e["name"] == kind) == list(range(20)), kind
    for e in own:
        assert e["args"]["device"] == device, e
        assert e["tid"] == 1 + 2 * int(device[-1]) + (e["name"] == "copies of reports"), e
        c, = [c for c in computed if c["args"]["step"] == e["args"]["step"]]
        assert c["ts"] <= e["ts"] and e["ts"] + e["dur"] <= c["ts"] + c["dur"] + 0.002, (c, e)
    assert sum(e["dur"] for e in own) > 0
    kernels = {(e["args"]["step"], e["args"]["segment"]): e for e in own if e["name"] == "kernels"}
    for e in own: # reports leave after their segment's kernels
        if e["name"] == "copies of reports":
            k = kernels[e["args"]["step"], e["args"]["segment"]]
            assert k["ts"] + k["dur"] <= e["ts"] + 0.002, (k, e)
PYTHON
}
for where in cpu cuda; do
    reports=()
    [ $where = cuda ] || reports=("copies of reports") # if the process updates
    capture env BELFRY_CUDA_PATH="$BUILD/tests/cuda_double" CUDA_DOUBLE_CHECKS=0 \
        XDG_CACHE_HOME="${BELFRY_TEST_CACHE:-$BUILD/tests/cuda_double/cache}" \
        "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" "${settings[@]}" --num_gpus 2 --device cuda \
        --update_device $where --model_dir cards-$where --trace cards.json
    if grep -q "BELFRY_CUDA=OFF" err.txt; then break; fi
    check "towers on GPUs" look cards.json "master 0,worker 0,worker 0 on cuda:0,worker 0 on cuda:1,shard 0" \
        "$worker,pass,save,evaluate"
    check "spans of GPUs" cards cards.json "${reports[@]}"
done

# A killed process keeps its recorded events. So does the master, which merges all.
for who in worker-1 ps-0 master-0; do
    point=tower_step#5
    [ $who = ps-0 ] && point=shard_passed#5
    [ $who = master-0 ] && point=master_saves#2
    run_ok env BELFRY_FAULT="crash:$point@$who" "$BUILD/tools/belfry" local train --distributed \
        --worker_count 2 --parameter_server_count 1 --job_dir "killed-$who" --trace killed.json -- \
        "${digits[@]}" "${settings[@]}"
    check "$who was killed" look killed.json "master 0,worker 0,worker 1,shard 0" "$worker,pass"
    check "both lives of $who" test "$(grep -o "\"name\":\"$who\.[01], " killed.json | sort -u | wc -l)" = 2
done

# A trace that cannot be written is refused before training.
run_fails 3 "--trace|missing/trace.json" train elsewhere "${settings[@]}" --trace "$work/missing/trace.json"
run_fails 2 "--trace|expected a file, got a folder" train elsewhere "${settings[@]}" --trace "$work"
check "nothing was trained" test ! -e elsewhere/ckpt-00000001
# --- With tables
make_clicks
run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --parameter_server_count 2 --job_dir rows \
    -- "${clicks[@]}" "${settings[@]}" --trace rows.json
check "tables" look rows.json "master 0,worker 0,worker 1,shard 0,shard 1" \
    "$worker,wait for rows,report of rows,rows,update of table,pass,publish,save,evaluate"
check "an update of a table has its reports" python3 - rows.json <<'PYTHON'
import json, sys
events = json.load(open(sys.argv[1]))
spans = [e for e in events if e["ph"] == "X"]
flows = [e for e in events if e["ph"] == "t"]
updates = [e for e in spans if e["name"] == "update of table"]
joined = [e for e in updates
          if sum(f["pid"] == e["pid"] and f["tid"] == e["tid"] and f["ts"] == e["ts"] for f in flows) == 2]
assert len(joined) == len(updates) == 20 * 2 * 2, (len(joined), len(updates))
PYTHON
finish

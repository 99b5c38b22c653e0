# shellcheck shell=bash
# Jobs over the hosts of tests/engines/hosts-up: `source lib_hosts.sh` after lib.sh. The test sets $net, the hosts'
# folder, and defines on0, which runs the command on h0.

# In describe's answer a job that is not QUEUED or RUNNING has its last state; it stays in out.txt. The job's record is
# looked at first: it costs no process. A lost job does not write there, so the command runs once a second anyway.
ended() { # NAME
    local i status
    for ((i = 1; i <= naps; i++)); do
        { read -r -d '' status <"$XDG_STATE_HOME/belfry/jobs/$1/status.json"; } 2>/dev/null || true
        if [[ ! "$status" =~ \"state\":\ *\"(QUEUED|RUNNING)\" ]] || ((i % 20 == 0)); then
            on0 jobs describe "$1" >out.txt 2>err.txt
            grep -q '^state \(QUEUED\|RUNNING\)' out.txt || return 0
        fi
        nap 0.05
    done
    return 1
}

process() { # ROLE INDEX HOST: prints the pid of a job's role on HOST
    local pid
    for pid in $(ip netns pids "$("$net/name-of" "$3")"); do
        trains_as "$pid" "*\"role\":\"$1\",\"index\":$2,*" && echo "$pid" && return
    done
}

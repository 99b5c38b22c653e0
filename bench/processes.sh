# shellcheck shell=bash
# Functions for benchmarks that kill processes of a job. Sourced.

process_of() { # SUPERVISOR ROLE INDEX: prints the pid of the role's current process
    local pid
    for pid in $(pgrep -P "$1" || true); do
        if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" |
            grep -q "^BELFRY_TASK=.*\"role\":\"$2\",\"index\":$3,"; then
            echo "$pid"
        fi
    done
}

#!/usr/bin/env bash
# belfry doctor: its lines for this machine, and with --cluster those for a cluster file, this host and
# others, played by a script instead of ssh. Each check passes if all is well, and else names the error.
# usage: doctor.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# LEVEL NAME PARTS: out.txt has that line, and its text or the remedy below it has PARTS (separated by "|").
said() { # LEVEL NAME PARTS
    local parts=$3 part lines
    lines=$(grep -A 1 -E "^$1 +$2 " out.txt || true)
    checks=$((checks + 1))
    while IFS= read -r part; do
        [[ "$lines" == *"$part"* ]] || complain "expected a line \"$1 $2\" with \"$part\""
    done < <(tr '|' '\n' <<<"$parts")
}
silent() { # NAME [LEVEL]
    check "there is no line of $1" sh -c "! grep -E '^${2:-[a-z]+} +$1 ' out.txt"
}
fails_with() { # CODE COMMAND…
    local expected=$1
    shift
    checks=$((checks + 1))
    capture "$@"
    [ "$code" -eq "$expected" ] || complain "exit code $code, expected $expected: $*"
}

# --- Only this machine
run_ok belfry doctor --model_dir model
for name in processor products cores gpu memory files threads grpc disk sync; do
    check "a line of $name" grep -qE "^(ok|warn) +$name " out.txt
done
silent cluster
check "it leaves nothing" test ! -e model

# --- Other hosts, played by a script: addresses for documentation, which no host has
# shellcheck disable=SC2016 # for the script
printf '%s\n' '#!/usr/bin/env bash' "cd '$work'" 'printf "%s\n" "$*" >>calls.txt' \
    '[ "$1 $2 $3 $4 $6" = "-o BatchMode=yes -o ConnectTimeout=5 sh -s" ] || exit 9' \
    'echo "Welcome to ${5#*@}."' 'PATH=$PWD/${5#*@}:$PATH exec sh -s' >ssh
chmod +x ssh
export BELFRY_SSH=$work/ssh
on_host() { # HOST PROGRAM: that program on HOST is the script on stdin
    mkdir -p "$1"
    { echo '#!/bin/sh' && cat; } >"$1/$2"
    chmod +x "$1/$2"
}
good=198.51.100.1
on_host $good belfry <<<"exec '$BUILD/tools/belfry' \"\$@\""
cluster() { # FILE LINES…
    printf '%s\n' "${@:2}" >"$1"
}
doctor() { timeout -k 5 "$patience" "$BUILD/tools/belfry" doctor --cluster "$@"; }

# --- All is well
mkdir model
cluster good.yaml 'machines: {some: {cores: 1, memory: 1 MiB}}' 'master: {host: 127.0.0.1}' \
    "workers: {count: 2, hosts: [user@$good], machine: some}" 'evaluators: {count: 1}' \
    'security: {secret_file: secret, tls: {ca: certs/ca.pem, certificate: certs/host.pem, key: certs/host.key}}'
(umask 077 && openssl rand -hex 32 >secret)
run_ok belfry certs certs --hosts 198.51.100.1
fails_with 0 doctor good.yaml --model_dir model
said ok cluster 'good.yaml: a master, 2 workers, 1 parameter server, an evaluator on this host and 2 more'
said warn host '127.0.0.1 is this host, but as 127.0.0.1|the address by which the others call it'
said ok host "$good is $good"
said ok limits 'with 5 processes'
said ok ports '5 free ports'
said ok secret 'secret is private'
said ok tls 'certs/host.pem is good until|by the authority in certs/ca.pem'
said ok ssh "$good answers after"
said ok clock "$good is 0.| this host"
said ok version "$good has belfry"
said ok machine "$good has|its machine type says 1"
said ok folder "$good sees $work/model"
said ok disk "free where the model's folder is"
equal "ssh gets the user, once" "$(cat calls.txt)" "-o BatchMode=yes -o ConnectTimeout=5 user@$good sh -s"
check "the mark in the folder is removed" test -z "$(ls -A model)"
fails_with 0 doctor good.yaml --model_dir model --json
check "JSON" python3 - <<'END'
import json
found = json.load(open("out.txt"))
names = {check["name"] for check in found["checks"]}
assert found["ok"] and {"products", "cluster", "host", "ssh", "clock", "version", "tls"} <= names, names
END
# --- One host, without details
cluster small.yaml 'workers: {count: 2}'
: >calls.txt
fails_with 0 doctor small.yaml
said ok cluster '2 workers, 1 parameter server on this host'
for name in host machine ssh clock version folder tls secret; do silent $name; done
check "no host is called" test ! -s calls.txt

# --- The file
fails_with 1 doctor nowhere.yaml
said fail cluster 'nowhere.yaml: No such file'
cluster bad.yaml 'workers: {cont: 2}'
fails_with 1 doctor bad.yaml
said fail cluster 'bad.yaml:1:11: unknown key "cont"; did you mean "count"?|docs/cluster-yaml.md'
silent limits

# --- Names
cluster names.yaml 'workers: {count: 2, hosts: [localhost, no-such-host.invalid]}'
: >calls.txt
fails_with 1 doctor names.yaml
said fail host 'no-such-host.invalid, of a worker, does not resolve: |/etc/hosts'
said warn host 'localhost is this host'
check "a host without an address is not called" test ! -s calls.txt
cluster others.yaml "master: {host: $good}" "workers: {count: 1, hosts: [$good]}" \
    "parameter_servers: {count: 1, hosts: [$good]}"
fails_with 0 doctor others.yaml
said warn host 'no host of the file is this one'
said warn tls 'without TLS|in clear'
silent folder

# --- This host
cluster large.yaml 'machines: {large: {cores: 4000, memory: 1000 TiB}}' 'workers: {count: 1, machine: large}'
fails_with 0 doctor large.yaml
said warn machine 'this host has|its machine type says 4000|lower what the machine type says'
said warn machine 'of memory, its machine type says 1000.0 TiB'
cluster many.yaml 'workers: {count: 300}'
fails_with 0 sh -c "ulimit -n 1024 && exec '$BUILD/tools/belfry' doctor --cluster many.yaml"
said warn limits 'a process may open 1024 files; with 302 processes it may need 2480|ulimit -n 2480'
long=$work/$(printf 'x%.0s' $(seq 90))
XDG_RUNTIME_DIR=$long fails_with 0 doctor small.yaml
said warn sockets 'they are in /tmp|short path'
XDG_RUNTIME_DIR=/nowhere fails_with 0 doctor small.yaml
said warn sockets 'XDG_RUNTIME_DIR is /nowhere, which cannot be written'
# A supervisor has the same limit of lengths: tries the longest that fits, and one more.
for more in 0 1; do
    base=$(mktemp -d /tmp/x.XXXXXX)
    longest=$base/$(printf 'x%.0s' $(seq $((107 - 41 - ${#base} - 1 + more))))
    mkdir "$longest"
    XDG_RUNTIME_DIR=$longest fails_with 0 doctor small.yaml
    doctor_says=$(grep -cF "ok    sockets     in $longest" out.txt || true)
    XDG_RUNTIME_DIR=$longest BELFRY_FAULT=slow:tower_step#8 "$BUILD/tools/belfry" local train --distributed \
        --job_dir "run$more" -- "${digits[@]}" --train_steps 100000 >job.txt 2>&1 </dev/null &
    supervisor=$!
    until [ -n "$(roles master 0)" ]; do
        kill -0 $supervisor || break
        sleep 0.05
    done
    tr '\0' '\n' <"/proc/$(roles master 0)/environ" >environ.txt
    run_says=$(grep -c "^BELFRY_TASK=.*unix:$longest/" environ.txt || true)
    kill -TERM $supervisor
    { wait $supervisor || true; } 2>/dev/null
    rm -rf "$base"
    equal "a folder of $((107 - 41 + more)) bytes: doctor and the supervisor" "$doctor_says" "$run_says"
    equal "a folder of $((107 - 41 + more)) bytes: it fits" "$run_says" $((1 - more))
done

# --- Secrets
secured() { # LINE: doctor's line for a file with LINE under security
    cluster secured.yaml 'workers: {count: 1, hosts: [localhost]}' "security: {$1}"
    capture doctor secured.yaml
}
secured 'secret_file: none'
said fail secret 'none: No such file|openssl rand'
equal "exit code" "$code" 1
echo short >short && chmod 600 short
secured 'secret_file: short'
said fail secret 'expected one line of 16 to 128'
chmod 644 secret
secured 'secret_file: secret'
said fail secret 'every user of this host may read or write it'
chmod 600 secret
tls() { # CA CERTIFICATE KEY
    secured "tls: {ca: $1, certificate: $2, key: $3}"
}
run_ok belfry certs other
tls certs/ca.pem certs/none.pem certs/host.key
said fail tls 'none.pem: No such file|belfry certs makes'
equal "exit code" "$code" 1
tls secret certs/host.pem certs/host.key
said fail tls 'secret holds no CERTIFICATE'
tls certs/ca.pem certs/host.pem other/host.key
said fail tls 'other/host.key is not the key of the certificate in certs/host.pem'
tls other/ca.pem certs/host.pem certs/host.key
said fail tls 'certs/host.pem is not signed by an authority in other/ca.pem'
silent tls ok
cat other/ca.pem certs/ca.pem >both.pem
tls both.pem certs/host.pem certs/host.key
said ok tls 'by the authority in both.pem'
cp certs/host.key open.key && chmod 644 open.key
tls certs/ca.pem certs/host.pem open.key
said fail tls 'tls.key open.key: every user'
run_ok belfry certs soon --days 3
tls soon/ca.pem soon/host.pem soon/host.key
said warn tls 'soon/host.pem ends on|in 3.0 days|belfry certs makes a new one'
equal "exit code" "$code" 0
run_ok belfry certs week --days 8
tls week/ca.pem week/host.pem week/host.key
said ok tls 'week/host.pem is good until'
signed() { # NAME BEGIN END: a certificate for host-x only, of the authority in certs/
    cat >ca.cnf <<'END'
[ca]
default_ca = own
[own]
new_certs_dir = .
database = index.txt
serial = serial
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = DNS:host-x
END
    : >index.txt
    echo 01 >serial
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -keyout "$1.key" -out "$1.csr" \
        2>/dev/null
    openssl ca -config ca.cnf -batch -cert certs/ca.pem -keyfile certs/ca.key -in "$1.csr" -out "$1.pem" -notext \
        -startdate "$2" -enddate "$3" 2>/dev/null
    chmod 600 "$1.key"
}
signed over 20200101000000Z 20210102000000Z
tls certs/ca.pem over.pem over.key
said fail tls 'over.pem expired on 2021-01-02|belfry certs'
said fail tls 'over.pem does not name localhost, which is this host|--hosts'
signed early 20900101000000Z 20910101000000Z
tls certs/ca.pem early.pem early.key
said fail tls 'early.pem is not valid yet'

# --- Other hosts, each with another error; all at once
cluster peers.yaml 'machines: {some: {cores: 4000, memory: 1 MiB}}' \
    "workers: {count: 10, machine: some, hosts: [198.51.100.2, 198.51.100.3, 198.51.100.4, 198.51.100.5, 198.51.100.6, 198.51.100.7,
        198.51.100.8, 198.51.100.9, 198.51.100.10, 198.51.100.11]}"
at() { # HOST: the program on HOST that runs instead of its shell
    on_host "198.51.100.$1" sh
}
at 2 <<<'echo "Permission denied (publickey)." >&2; exit 255'
at 3 <<<'sleep 100 & echo "$$ $!" >pids.txt; wait'
at 4 <<<'exit 7'
at 11 <<<'printf "\033[31mred\a" >&2; exit 1'
at 5 <<<'while echo noise; do :; done'
on_host 198.51.100.6 date <<<'exec /bin/date -d "90 seconds ago" "$@"'
on_host 198.51.100.6 belfry <<<'echo "belfry 9.9.9"'
on_host 198.51.100.7 date <<<'exec /bin/date -d "10 seconds" "$@"'
on_host 198.51.100.7 belfry <<<'echo "belfry: error while loading shared libraries: libgrpc.so.29" >&2; exit 127'
on_host 198.51.100.7 df <<<'echo "head"; echo "disk 100 90 5000 95% /"'
on_host 198.51.100.8 date <<<'/bin/date +%s' # on a system whose date does not know %N
on_host 198.51.100.8 nproc <<<'echo 4000'
# With other folders: no folder of this host is there, except the host's.
at 9 <<<'sed "s|^folder=.*|folder=/usr|; s|^mark=.*|mark=/usr/no-mark|" | /bin/sh -s'
at 10 <<<'sed "s|^folder=.*|folder=/nowhere/model|; s|^mark=.*|mark=/nowhere/model/mark|" | /bin/sh -s'
begin=$(date +%s)
fails_with 1 doctor peers.yaml --model_dir model
took=$(($(date +%s) - begin))
check "it ends in bounded time: $took s" test "$took" -lt 25
said fail ssh '198.51.100.2 does not answer: Permission denied (publickey).|ssh 198.51.100.2 true must end with 0'
said fail ssh '198.51.100.3 does not answer: no end within 10 s'
said fail ssh '198.51.100.4 does not answer: it ended with exit code 7'
said fail ssh '198.51.100.11 does not answer: ?[31mred?'
said fail ssh '198.51.100.5 does not answer: no end within 10 s'
ends() { # PID: exits soon; a zombie counts as exited
    for _ in $(seq "$naps"); do
        [[ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" =~ ^(Z.*)?$ ]] && return
        sleep 0.05
    done
    return 1
}
read -r -a pids <pids.txt
for pid in "${pids[@]}"; do
    check "a process that a host's ssh started is killed: $pid" ends "$pid"
done
said fail clock '198.51.100.6 is 90.| s behind this host|chrony'
said fail version '198.51.100.6 has belfry 9.9.9, this host|install belfry'
said warn clock '198.51.100.7 is | s ahead of this host'
said fail version '198.51.100.7 runs no belfry: belfry: error while loading|install belfry'
said fail version '198.51.100.8 runs no belfry: |not found'
said warn disk '198.51.100.7 has 4.9 MiB free|make room'
said ok clock '198.51.100.8 is 0.'
said warn machine '198.51.100.7 has|its machine type says 4000'
said ok machine '198.51.100.8 has 4000 cores, its machine type says 4000'
said fail folder "$work/model of 198.51.100.9 is another folder|mount"
said fail folder "198.51.100.10 has no $work/model"
said ok folder "198.51.100.8 sees $work/model"
rm -rf model
cluster one.yaml "workers: {count: 1, hosts: [$good]}"
fails_with 0 doctor one.yaml --model_dir "it's a/model"
said warn folder "$work/it's a/model is neither here nor on $good"
check "it makes no folder" test ! -e "it's a"
mkdir "it's a"
fails_with 0 doctor one.yaml --model_dir "it's a"
said ok folder "$good sees $work/it's a"
BELFRY_SSH=no-such-program fails_with 1 doctor one.yaml
said fail ssh 'no-such-program|apt-get install openssh-client'
finish

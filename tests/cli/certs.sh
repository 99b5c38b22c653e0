#!/usr/bin/env bash
# belfry certs. OpenSSL accepts its certificates, it overwrites no file, and a job over TLS has the same bits.
# A process with another authority's certificate, or one that trusts another authority, is refused, and the
# job is not affected.
# usage: certs.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

text_of() { openssl x509 -in "$1" -noout -text >text.txt; }

# --- The files
run_ok belfry certs job --hosts 'host-a,*.b.example,10.0.0.3,fe80::1' --hosts host-a --days 30
cp out.txt tls.yaml
equal "lines for cluster.yaml" "$(cat out.txt)" \
    "$(printf 'security:\n  tls: {ca: job/ca.pem, certificate: job/host.pem, key: job/host.key}')"
check "the log names the hosts" grep -q 'job/host.pem is for host-a, \*.b.example, 10.0.0.3, fe80::1, localhost' err.txt
equal "files" "$(cd job && stat -c '%a %n' -- *)" "$(printf '600 ca.key\n644 ca.pem\n600 host.key\n644 host.pem')"
check "valid for servers" openssl verify -x509_strict -purpose sslserver -CAfile job/ca.pem job/host.pem
check "valid for clients" openssl verify -x509_strict -purpose sslclient -CAfile job/ca.pem job/host.pem
text_of job/host.pem
names='DNS:host-a, DNS:*.b.example, IP Address:10.0.0.3, IP Address:FE80:0:0:0:0:0:0:1, DNS:localhost'
check "names, each once, and the loopback addresses" grep -qF \
    "$names, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1" text.txt
check "P-256" grep -q 'ASN1 OID: prime256v1' text.txt
check "signed with SHA-256" grep -q 'Signature Algorithm: ecdsa-with-SHA256' text.txt
check "valid for 29 days" openssl x509 -in job/host.pem -noout -checkend $((29 * 86400))
check "not valid for 31 days" sh -c '! openssl x509 -in job/host.pem -noout -checkend 2678400'
begin=$(date -d "$(openssl x509 -in job/host.pem -noout -startdate | cut -d= -f2)" +%s)
check "valid from an hour ago on" test $(($(date +%s) - begin - 3600)) -lt 600 -a $(($(date +%s) - begin)) -ge 3600
text_of job/ca.pem
check "the authority is a CA" grep -q 'CA:TRUE, pathlen:0' text.txt

# --- No file is overwritten; the authority is reused
cp -r job before
run_fails 2 'job/host.pem is there already|nothing was changed' belfry certs job
rm job/host.pem
run_fails 2 'job/host.key is there already' belfry certs job
rm job/host.key
chmod 644 job/ca.key
run_fails 2 "the authority's key job/ca.key|every user" belfry certs job
chmod 600 job/ca.key
run_fails 2 '--days: the authority in job/ca.pem ends on|which is sooner|got 4000' belfry certs job --days 4000
run_ok belfry certs job --json
check "JSON" python3 -c 'import json; made = json.load(open("out.txt")); assert "127.0.0.1" in made["hosts"]'
check "the authority is the same" cmp job/ca.pem before/ca.pem
check "the key is new" sh -c '! cmp -s job/host.key before/host.key'
check "its signatures are valid" openssl verify -CAfile job/ca.pem job/host.pem
cp -r job half && rm half/host.* half/ca.key
run_fails 2 'half/ca.pem is there without half/ca.key' belfry certs half
run_ok belfry certs other
cp job/ca.pem half && cp other/ca.key half
run_fails 2 'half/ca.key is not the key of the certificate in half/ca.pem' belfry certs half
cp job/host.key half/ca.key && cp job/host.pem half/ca.pem
run_fails 2 'half/ca.pem is not that of an authority' belfry certs half --days 1
echo nothing >half/ca.pem
run_fails 2 'half/ca.pem holds no CERTIFICATE in PEM form' belfry certs half
check "after a refusal it makes nothing" test ! -e half/host.pem -a ! -e half/host.key
BELFRY_FAULT=write:4 run_fails 1 'full/host.pem|No space left' belfry certs full
check "a pair that cannot be written leaves no file" test ! -e full/host.pem -a ! -e full/host.key
run_ok belfry certs full
# Odd names are quoted for YAML.
run_ok belfry certs 'a, b'
check "quoted" grep -q 'ca: "a, b/ca.pem"' out.txt

# --- Refusals
for host in 'a b' user@a a:7000 '[::1]' 10.0.0.300 -a a..b 'a*' a/b "$(printf 'a%.0s' $(seq 64))"; do
    run_fails 2 "--hosts: \"$host\" is no host" belfry certs bad "--hosts=$host"
done
for days in 0 -1 36501 x; do
    run_fails 2 '--days: expected an integer in [1, 36500]' belfry certs bad "--days=$days"
done
run_fails 2 'expected one folder' belfry certs
run_fails 2 'expected one folder|got 2' belfry certs a b
check "after a refusal it makes no folder" test ! -e bad

# --- A job over TLS
rm -rf job && run_ok belfry certs job
settings=(--train_batch_size 8 --save_checkpoints_steps 50)
{
    echo 'workers: {count: 2}'
    cat tls.yaml
} >cluster.yaml
tls_job() { # MODEL_DIR
    BELFRY_FAULT=slow:tower_step#8 "$BUILD/tools/belfry" local train --config cluster.yaml --tcp --job_dir "$1" -- \
        "${digits[@]}" "${settings[@]}" --train_steps 100000 >job.txt 2>&1 </dev/null &
    supervisor=$!
    until [ -f "$1/ckpt-00000050/manifest.json" ]; do
        kill -0 "$supervisor" || break
        sleep 0.02
    done
}
tls_job secured
running=$(roles worker 1)
variable() { tr '\0' '\n' <"/proc/$running/environ" | sed -n "s/^$1=//p"; }
task=$(variable BELFRY_TASK)
secret=$(variable BELFRY_SECRET)
check "they know of TLS, and call over TCP" grep -q '"master":"127.0.0.1:.*"tls_ca":"job/ca.pem"' <<<"$task"
# Starts the same worker again, with the secret and a later incarnation: only its certificate is wrong.
stranger() { # FOLDER_OF_AUTHORITY FOLDER_OF_CERTIFICATE
    local own=${task//job\/ca.pem/$1\/ca.pem}
    own=${own//job\/host/$2\/host}
    own=$(sed 's/"incarnation":0/"incarnation":5/; s/"join_timeout_ms":[0-9]*/"join_timeout_ms":1500/;
        s/"supervisor":[0-9]*,//' <<<"$own")
    run_fails 1 "cannot reach the master|hint: if it runs, see whether every host's certificate" env -u BELFRY_FAULT \
        BELFRY_TASK="$own" BELFRY_SECRET="$secret" timeout -k 5 "$patience" "$BUILD/tools/belfry" train_and_evaluate \
        --model_dir secured "${digits[@]}" "${settings[@]}" --train_steps 100000
        check "$1, $2: a process answers" sh -c '! grep -q "Connection refused" err.txt'
}
stranger job other
stranger other other
stranger other job
check "the job still runs" kill -TERM "$supervisor"
code=0
{ wait "$supervisor" || code=$?; } 2>/dev/null
cp job.txt err.txt
equal "exit code of the job" "$code" 143
check "it never lost a member" sh -c '! grep -E "started again|lost|is back" job.txt'
run_ok belfry inspect secured --json
steps=$(python3 -c 'import json; print(json.load(open("out.txt"))["step"])')
run_ok belfry local train --distributed --job_dir plain -- "${digits[@]}" "${settings[@]}" --train_steps "$steps"
equal "digest over TLS" "$(digest secured)" "$(digest plain)"
check "nothing is left" nothing_left

# A certificate of the right authority without the called address: no two processes connect.
cp -r job elsewhere
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -keyout elsewhere/host.key \
    -out x.csr 2>/dev/null
openssl x509 -req -in x.csr -CA job/ca.pem -CAkey job/ca.key -CAcreateserial -days 2 \
    -extfile <(echo subjectAltName=DNS:elsewhere,IP:127.0.0.2) -out elsewhere/host.pem 2>/dev/null
chmod 600 elsewhere/host.key
{
    echo 'limits: {join_timeout: 2, restarts: 0}'
    sed 's|job/|elsewhere/|g' tls.yaml
} >elsewhere.yaml
run_fails 1 "names the address by which it is called" belfry local train --config elsewhere.yaml --tcp \
    --job_dir never -- "${digits[@]}" --train_steps 5
check "no process of it is left" nothing_left
finish

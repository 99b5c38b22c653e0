#!/usr/bin/env bash
# belfry serve with a token, TLS and certificates of clients, over HTTP and, with python3-grpcio, gRPC.
# usage: serve_tls.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

python=/usr/bin/python3
has_grpc=no
if $python -c 'import grpc, google.protobuf' && protoc -I "$SOURCE/proto" --python_out=. inference.proto; then
    has_grpc=yes
fi
grpc_with() { # CODE TOKEN FILE…: calls ModelMetadata with these PEM files: CA [KEY CERTIFICATE]
    [ $has_grpc = yes ] || return 0
    run_ok timeout -k 5 "$patience" $python "$SOURCE/tests/cli/grpc_check.py" secure "$grpc" "$@"
}
asks() { # CODE ARGUMENTS OF CURL…: the metadata of the model
    local got
    got=$(curl -s -m 10 -o out.txt -w '%{http_code}' "${@:2}" "$url/v2/models/digits") || got="error $?"
    equal "the code with ${*:2}" "$got" "$1"
}

run_ok train m --train_steps 20
run_ok belfry export --model_dir m --export_dir digits
run_ok belfry certs ours --hosts localhost
run_ok belfry certs theirs --hosts localhost
(umask 077 && openssl rand -hex 32 >token && openssl rand -hex 32 >other)
token=$(cat token)

# A token over plain HTTP.
mkdir logs
start digits --grpc_port 0 --token_file token --access_log logs/access.log
asks 401
check "the reason is given" grep -q 'Authorization: Bearer' out.txt
asks 401 -H "Authorization: Bearer $(cat other)"
asks 401 -H "Authorization: Bearer ${token%?}"
asks 401 -H "Authorization: Basic $token"
asks 200 -H "Authorization: Bearer $token"
equal "health needs no token" "$(curl -s -m 10 -o out.txt -w '%{http_code}' "$url/v2/health/ready")" 200
equal "metrics need one" "$(curl -s -m 10 -o out.txt -w '%{http_code}' "$url/metrics")" 401
grpc_with UNAUTHENTICATED ""
grpc_with UNAUTHENTICATED "Bearer $(cat other)"
grpc_with OK "Bearer $token"
cp other token.new && chmod 600 token.new && mv token.new token
mv logs gone
kill -HUP "$server"
check "a log that does not open is named" until_true grep -q 'the old access log stays in use: .*logs/access.log' serve.err
check "the new token is read" until_true sh -c \
    "curl -sf -m 10 -o out.txt -H 'Authorization: Bearer $(cat other)' '$url/v2/models/digits'"
asks 401 -H "Authorization: Bearer $token"
check "no token is in the log" sh -c "! grep -q '$token' serve.err"
stop TERM

# A key of another type than the certificate's.
openssl req -x509 -newkey rsa:2048 -nodes -keyout rsa.key -out rsa.pem -days 2 -subj /CN=localhost 2>openssl.txt
run_fails 2 'TLS: key ours/host.key is not that of the certificate rsa.pem' belfry serve digits --port 0 \
    --tls_certificate rsa.pem --tls_key ours/host.key

# TLS for any client, over both protocols.
start_tls() { # ARGUMENTS
    start digits --grpc_port 0 --tls_certificate ours/host.pem --tls_key ours/host.key "$@"
    port=${url##*:}
    equal "the URL" "$url" "https://127.0.0.1:$port"
    url=https://localhost:$port
}
asks_tls() { # CODE ARGUMENTS OF CURL…
    asks "$1" --resolve "localhost:$port:127.0.0.1" "${@:2}"
}
start_tls
asks_tls 'error 60' --cacert theirs/ca.pem
asks_tls 'error 35' --cacert ours/ca.pem --tls-max 1.1
asks_tls 200 --cacert ours/ca.pem --tls-max 1.2
asks_tls 200 --cacert ours/ca.pem
url=http://127.0.0.1:$port asks 400
check "HTTP without TLS gets a hint" grep -q 'hint: https://' out.txt
grpc_with UNAVAILABLE "" theirs/ca.pem
grpc_with OK "" ours/ca.pem
# Requests on a kept connection, also with large bodies and answers, and a session that is resumed.
check "TLS as a client of Python sees it" timeout -k 5 "$patience" python3 - "$port" <<'PYTHON'
import http.client, json, ssl, sys
context = ssl.create_default_context(cafile="ours/ca.pem")
context.maximum_version = ssl.TLSVersion.TLSv1_2
one = http.client.HTTPSConnection("localhost", int(sys.argv[1]), context=context, timeout=20)
for count in (1, 20000, 1):
    body = json.dumps({"instances": [[0.5] * 64] * count})
    one.request("POST", "/v1/models/digits:predict", body)
    answer = one.getresponse()
    assert answer.status == 200 and len(json.loads(answer.read())["predictions"]) == count
session = one.sock.session
two = http.client.HTTPSConnection("localhost", int(sys.argv[1]), context=context, timeout=20)
two.sock = context.wrap_socket(__import__("socket").create_connection(("127.0.0.1", int(sys.argv[1]))),
                               server_hostname="localhost", session=session)
assert two.sock.session_reused
two.request("GET", "/v2")
assert two.getresponse().status == 200
PYTHON
stop TERM

# Clients must show a certificate, and a token.
start_tls --tls_ca ours/ca.pem --token_file token
bearer="Authorization: Bearer $(cat token)"
for most in 1.2 1.3; do # with 1.3 the client learns it after its request
    for shown in "" "--cert theirs/host.pem --key theirs/host.key"; do
        # shellcheck disable=SC2086 # words
        check "no answer with '$shown', TLS $most" sh -c \
            '! curl -s -m 10 -o out.txt --cacert ours/ca.pem --tls-max "$@"' _ "$most" $shown \
            --resolve "localhost:$port:127.0.0.1" -H "$bearer" "$url/v2/models/digits"
    done
done
asks_tls 401 --cacert ours/ca.pem --cert ours/host.pem --key ours/host.key
asks_tls 200 --cacert ours/ca.pem --cert ours/host.pem --key ours/host.key -H "$bearer"
grpc_with UNAVAILABLE "Bearer $(cat token)" ours/ca.pem
grpc_with UNAVAILABLE "Bearer $(cat token)" ours/ca.pem theirs/host.key theirs/host.pem
grpc_with UNAUTHENTICATED "" ours/ca.pem ours/host.key ours/host.pem
grpc_with OK "Bearer $(cat token)" ours/ca.pem ours/host.key ours/host.pem
stop TERM

# Wrong files and flags.
secure() { # CERTIFICATE KEY FLAG…
    belfry serve digits --port -1 --tls_certificate "$1" --tls_key "$2" "${@:3}"
}
run_fails 2 'tls_certificate and --tls_key: expected both' belfry serve digits --port 0 --tls_key ours/host.key
run_fails 2 'tls_ca: expected --tls_certificate' belfry serve digits --port 0 --tls_ca ours/ca.pem
run_fails 2 'port -1: expected --grpc_port' belfry serve digits --port -1
run_fails 1 'cannot serve models over gRPC|with this key and certificate' secure ours/host.pem theirs/host.key --grpc_port 0
run_fails 2 'TLS: token holds no CERTIFICATE' secure token ours/host.key --grpc_port 0
run_fails 2 'TLS: key theirs/host.key for the certificate ours/host.pem: key values mismatch' \
    secure ours/host.pem theirs/host.key --port 0
run_fails 2 'TLS: token holds no CERTIFICATE' secure token ours/host.key --port 0
run_fails 2 'TLS: token holds no CERTIFICATE' secure ours/host.pem ours/host.key --tls_ca token --port 0
openssl ec -in ours/host.key -aes128 -passout pass:x -out locked.key 2>openssl.txt
chmod 600 locked.key
run_fails 2 'TLS: key locked.key for the certificate' secure ours/host.pem locked.key --port 0
chmod 644 other
run_fails 2 'token_file' belfry serve digits --port 0 --token_file other
finish

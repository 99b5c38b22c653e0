#!/usr/bin/env bash
# belfry serve with a token over HTTP and, with python3-grpcio, gRPC; there also TLS and certificates of clients.
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
    run_ok timeout -k 5 60 $python "$SOURCE/tests/cli/grpc_check.py" secure "$grpc" "$@"
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
check "a log that does not open is named" until_true 20 grep -q 'the old access log stays in use: .*logs/access.log' serve.err
check "the new token is read" until_true 20 sh -c \
    "curl -sf -m 10 -o out.txt -H 'Authorization: Bearer $(cat other)' '$url/v2/models/digits'"
asks 401 -H "Authorization: Bearer $token"
check "no token is in the log" sh -c "! grep -q '$token' serve.err"
stop TERM

# TLS for any client.
start_tls() { # ARGUMENTS: HTTP is off
    if [ $has_grpc = no ]; then return 1; fi
    start digits --port -1 --grpc_port 0 --tls_certificate ours/host.pem --tls_key ours/host.key "$@"
    equal "HTTP is off" "$url" ""
}
if start_tls; then
    grpc_with UNAVAILABLE "" theirs/ca.pem
    grpc_with OK "" ours/ca.pem
    stop TERM
fi

# Clients must show a certificate, and a token.
if start_tls --tls_ca ours/ca.pem --token_file token; then
    grpc_with UNAVAILABLE "Bearer $(cat token)" ours/ca.pem
    grpc_with UNAVAILABLE "Bearer $(cat token)" ours/ca.pem theirs/host.key theirs/host.pem
    grpc_with UNAUTHENTICATED "" ours/ca.pem ours/host.key ours/host.pem
    grpc_with OK "Bearer $(cat token)" ours/ca.pem ours/host.key ours/host.pem
    stop TERM
fi

# Wrong files and flags.
secure() { # CERTIFICATE KEY
    belfry serve digits --port -1 --grpc_port 0 --tls_certificate "$1" --tls_key "$2"
}
run_fails 2 'tls_certificate and --tls_key: expected both' belfry serve digits --port 0 --tls_key ours/host.key
run_fails 2 'tls_ca: expected --tls_certificate' belfry serve digits --port 0 --tls_ca ours/ca.pem
run_fails 2 'only gRPC has TLS|--port -1' \
    belfry serve digits --port 0 --tls_certificate ours/host.pem --tls_key ours/host.key
run_fails 2 'port -1: expected --grpc_port' belfry serve digits --port -1
run_fails 1 'cannot serve models over gRPC|with this key and certificate' secure ours/host.pem theirs/host.key
run_fails 2 'TLS: token holds no CERTIFICATE' secure token ours/host.key
chmod 644 other
run_fails 2 'token_file' belfry serve digits --port 0 --token_file other
finish

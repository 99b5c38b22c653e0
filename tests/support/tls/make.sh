#!/usr/bin/env bash
# Makes the certificates of test_endpoint.c: an authority, its host, and a stranger of another authority.
set -euo pipefail
cd "$(dirname "$0")"
authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 \
        -subj "/CN=$1" -keyout "$1.key" -out "$1.pem" 2>/dev/null
}
leaf() { # NAME AUTHORITY
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 36500 \
        -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out "$1.pem" 2>/dev/null
    rm "$1.csr"
}
authority ca
authority other
leaf host ca
leaf stranger other
rm -f ca.key other.key other.pem ./*.srl

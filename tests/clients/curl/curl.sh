#!/bin/bash
# curl with --retry. One curl makes all the calls, so that it keeps its connections from call to call. It waits
# whole seconds before a retry, so callers ask for two attempts.
set -eu
retries=$(($1 - 1))
shift
report='{"status":%{http_code},"retry_after":"%header{retry-after}","denied":"%header{x-retry-denied}","error":"%{errormsg}"}\n'
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
head -c 5000000 /dev/zero | tr '\0' u > "$scratch/upload"
head -c 100000 /dev/zero | tr '\0' e > "$scratch/expect"
head -c 20000 /dev/zero | tr '\0' c > "$scratch/chunked"
calls=()
while [ $# -gt 0 ]; do
    calls+=(--next --silent --max-time 20 --retry "$retries" --output "$scratch/answer" --write-out "$report")
    case $1 in
        get) ;;
        post) calls+=(--json '{"order":1}') ;;
        upload) calls+=(--header Expect: --data-binary "@$scratch/upload") ;;
        chunked) calls+=(--header Expect: --header 'Transfer-Encoding: chunked' --data-binary "@$scratch/chunked") ;;
        expect) calls+=(--header 'Expect: 100-continue' --data-binary "@$scratch/expect") ;;
        *) echo "unknown kind $1" >&2; exit 2 ;;
    esac
    calls+=("$2")
    shift 2
done
curl "${calls[@]:1}" | sed 's/""/null/g'

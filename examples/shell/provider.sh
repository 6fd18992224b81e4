#!/bin/sh
# A schedule provider in shell and kubectl: RequestSchedule, machines that are wanted until an instant.
#
#   kubectl apply -f crd.yaml
#   sh provider.sh                 # with the current context, or under a service account
#
# It watches its own kind, decides each object when it changes or when its instant comes, and writes a status only when
# it differs. It writes no condition: what cannot be followed is refused by the schema.
set -eu

kind=requestschedules.spotschedules.5spot.finos.org
work=$(mktemp -d)
watcher= ticker=
trap 'kill $watcher $ticker 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 0' INT TERM

# One line for each object, with "|" between its fields; absent ones are empty.
line() {
    for field in metadata.namespace metadata.name metadata.resourceVersion metadata.generation \
        metadata.deletionTimestamp spec.wanted spec.until status.active status.observedGeneration \
        status.lastTransitionTime status.nextTransitionTime; do
        printf '{%s.%s}|' "$1" "$field"
    done
}

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# Instants of one form in one zone compare as text.
reached() { [ "$(printf '%s\n%s\n' "$1" "$(now)" | sort | head -n 1)" = "$1" ]; }

# Decide one object from its line, and write its status if it says something else.
decide() {
    IFS='|' read -r namespace name version generation deleted wanted until was observed since announced <<END
$1
END
    announced=${announced%|}
    [ -n "$name" ] && [ -z "$deleted" ] || return 0
    active=$wanted next=
    if [ "$wanted" = true ] && [ -n "$until" ]; then
        if reached "$until"; then active=false; else next=$until; fi
    fi
    forget "$namespace|$name|"
    if [ -n "$next" ]; then echo "$next $1" >>"$work/due"; fi
    if [ "$active|$generation|$next" = "$was|$observed|$announced" ] && [ -n "$since" ]; then return 0; fi
    if [ "$active" != "$was" ] || [ -z "$since" ]; then since=$(now); fi
    if [ -n "$next" ]; then next="\"$next\""; else next=null; fi
    status="\"active\":$active,\"observedGeneration\":$generation"
    status="$status,\"lastTransitionTime\":\"$since\",\"nextTransitionTime\":$next"
    # With the version that was decided from: when the object has changed meanwhile, the write is refused, and the
    # change is the next line. After any other failure the object is due again in five seconds.
    kubectl patch "$kind" "$name" -n "$namespace" --subresource=status --type=merge \
        -p "{\"metadata\":{\"resourceVersion\":\"$version\"},\"status\":{$status}}" </dev/null ||
        echo "$(date -u -d "@$(($(date +%s) + 5))" +%Y-%m-%dT%H:%M:%SZ) $1" >>"$work/due"
}

# An object is due once: only its last line counts.
forget() {
    grep -v -F " $1" "$work/due" >"$work/left" || true
    mv "$work/left" "$work/due"
}

# Decide the objects whose instant has come.
decide_due() {
    sort "$work/due" >"$work/sorted"
    while read -r instant object; do
        reached "$instant" || break
        decide "$object"
    done <"$work/sorted"
}

mkfifo "$work/lines"
exec 3<>"$work/lines"
: >"$work/due"

# Every object at the start, and then every change. A watch that ends is begun again.
while true; do
    kubectl get "$kind" -A --watch --output-watch-events -o jsonpath="{.type} $(line .object){\"\\n\"}" >&3 || true
    sleep 1
done &
watcher=$!

# Looks at the clock five times a second, at no cost for the API server.
while sleep 0.2; do
    next=$(sort "$work/due" 2>/dev/null | head -n 1)
    if [ -n "$next" ] && reached "${next%% *}"; then
        echo DUE >&3
        sleep 1
    fi
done &
ticker=$!

while read -r event object <&3; do
    case $event in
    DUE) decide_due ;;
    ADDED | MODIFIED) decide "$object" ;;
    DELETED) forget "$(echo "$object" | cut -d '|' -f 1,2)|" ;;
    esac
done

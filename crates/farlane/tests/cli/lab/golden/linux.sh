#!/bin/sh
# farlane latency lab, as a script: needs root. Documents go to $out.
set -u
out=${out:-.}
folder=/run/farlane-lab/farlane.script
mkdir -p "${folder%/*}"
# If it is there, this script is at work, or was killed.
mkdir "$folder" || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
failed=0
# Waits until the last program has written a text to a file: FILE TEXT.
ready() { until grep -qs "$2" "$1"; do kill -0 $!; sleep 0.1; done; }
# Ends programs: PID...
end() { kill "$@" 2>/dev/null || :; wait "$@" || :; }

# Bridge: linux
(
for name in farlane-talker farlane-bridge farlane-listener; do
test ! -e /run/netns/$name || { echo $name is there >&2; exit 1; }
done
listener= reads= started= kept=
undo() {
set +e
end $listener $reads $started $kept
test ! -e /run/netns/farlane-listener || ip netns delete farlane-listener
test ! -e /run/netns/farlane-bridge || ip netns delete farlane-bridge
test ! -e /run/netns/farlane-talker || ip netns delete farlane-talker
rm -rf "$folder"/*
}
trap undo EXIT
trap 'exit 1' INT TERM
set -ex
ip netns add farlane-talker
ip netns add farlane-bridge
ip netns add farlane-listener
ip link add in netns farlane-bridge numtxqueues 8 numrxqueues 1 gso_max_segs 1 type veth peer name near netns farlane-talker address 02:00:5e:10:00:01 numtxqueues 1 numrxqueues 8 gso_max_segs 1
ip -n farlane-bridge link set in up
ip link add out netns farlane-bridge numtxqueues 8 numrxqueues 1 gso_max_segs 1 type veth peer name far netns farlane-listener address 02:00:5e:10:00:02 numtxqueues 1 numrxqueues 8 gso_max_segs 1
ip -n farlane-bridge link set out up
ip -n farlane-bridge link add bridge0 type bridge mcast_snooping 0
ip -n farlane-bridge link set in master bridge0
ip -n farlane-bridge link set out master bridge0
ip -n farlane-bridge link set bridge0 up
ip -n farlane-talker link set lo up
ip -n farlane-talker link set near up
ip -n farlane-talker address add 192.0.2.1/24 dev near
ip -n farlane-listener link set lo up
ip -n farlane-listener link set far up
ip -n farlane-listener address add 192.0.2.2/24 dev far

# Run: idle
rm -f "$folder/listen.log"
ip netns exec farlane-listener farlane latency listen raw:far --reflect --insecure --clock shared --idle 2s --json --label 'linux, idle' >"$out/linux-idle-listen.json" 2>"$folder/listen.log" &
listener=$!
ready "$folder/listen.log" 'listening on'
ip netns exec farlane-talker farlane latency talk raw:near,02:00:5e:10:00:02 --clock shared --reflect --priority 3 --vlan 5 --interval 2000000ns --count 500 --allow-losses 500 --offset 0ns --json --label 'linux, idle' >"$out/linux-idle-talk.json"
wait $listener
listener=
)
test $? -eq 0 || failed=1
exit $failed

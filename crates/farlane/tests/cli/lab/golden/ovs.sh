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

# Bridge: ovs
(
for name in farlane-talker farlane-bridge farlane-listener; do
test ! -e /run/netns/$name || { echo $name is there >&2; exit 1; }
done
listener= reads= started= kept=
undo() {
set +e
end $listener $reads $started $kept
test ! -e $folder/ovs/ovs-vswitchd.pid || ovs-appctl --timeout=10 -t $folder/ovs/ovs-vswitchd.ctl exit --cleanup || kill -9 $(cat $folder/ovs/ovs-vswitchd.pid) || true
test ! -e $folder/ovs/ovsdb-server.pid || ovs-appctl --timeout=10 -t $folder/ovs/ovsdb-server.ctl exit || kill -9 $(cat $folder/ovs/ovsdb-server.pid) || true
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
mkdir $folder/ovs
ovsdb-tool create $folder/ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema
ip netns exec farlane-bridge env OVS_RUNDIR=$folder/ovs OVS_LOGDIR=$folder/ovs ovsdb-server $folder/ovs/conf.db --remote=punix:$folder/ovs/db.sock --unixctl=$folder/ovs/ovsdb-server.ctl --pidfile=$folder/ovs/ovsdb-server.pid --log-file --detach -vconsole:off
ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock --no-wait init
ip netns exec farlane-bridge env OVS_RUNDIR=$folder/ovs OVS_LOGDIR=$folder/ovs ovs-vswitchd unix:$folder/ovs/db.sock --unixctl=$folder/ovs/ovs-vswitchd.ctl --pidfile=$folder/ovs/ovs-vswitchd.pid --log-file --detach -vconsole:off
ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock add-br bridge0 -- set bridge bridge0 datapath_type=system
ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock add-port bridge0 in
test "$(ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock get interface in error)" = '[]' || { ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock get interface in error >&2; false; }
ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock add-port bridge0 out
test "$(ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock get interface out error)" = '[]' || { ovs-vsctl --timeout=30 --db=unix:$folder/ovs/db.sock get interface out error >&2; false; }
ip -n farlane-bridge link set bridge0 up
ip netns exec farlane-bridge tc qdisc replace dev out parent root handle 100 taprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 base-time 0 sched-entry S b7 10000000 sched-entry S 88 10000000 cycle-time 20000000 flags 0x0 clockid CLOCK_TAI
tc -n farlane-bridge qdisc add dev in clsact
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 1 action skbedit priority 1
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 2 action skbedit priority 2
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 3 action skbedit priority 3
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 4 action skbedit priority 4
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 5 action skbedit priority 5
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 6 action skbedit priority 6
tc -n farlane-bridge filter add dev in ingress protocol 802.1Q flower vlan_prio 7 action skbedit priority 7
ip -n farlane-talker link set lo up
ip -n farlane-talker link set near up
ip -n farlane-talker address add 192.0.2.1/24 dev near
ip -n farlane-listener link set lo up
ip -n farlane-listener link set far up
ip -n farlane-listener address add 192.0.2.2/24 dev far

# Run: gates
rm -f "$folder/listen.log"
ip netns exec farlane-listener farlane latency listen raw:far --reflect --insecure --clock shared --idle 2s --json --label 'ovs, gates' >"$out/ovs-gates-listen.json" 2>"$folder/listen.log" &
listener=$!
ready "$folder/listen.log" 'listening on'
ip netns exec farlane-talker farlane latency talk raw:near,02:00:5e:10:00:02 --clock shared --reflect --priority 3 --vlan 5 --interval 20000000ns --count 100 --allow-losses 100 --base 0 --cycle 20000000ns --window 10000000ns,10000000ns --outside --offset 5000000ns --json --label 'ovs, gates' >"$out/ovs-gates-talk.json"
wait $listener
listener=

# Run: idle
rm -f "$folder/listen.log"
ip netns exec farlane-listener farlane latency listen raw:far --reflect --insecure --clock shared --idle 2s --json --label 'ovs, idle' >"$out/ovs-idle-listen.json" 2>"$folder/listen.log" &
listener=$!
ready "$folder/listen.log" 'listening on'
ip netns exec farlane-talker farlane latency talk raw:near,02:00:5e:10:00:02 --clock shared --reflect --priority 3 --vlan 5 --interval 20000000ns --count 500 --allow-losses 500 --base 0 --cycle 20000000ns --window 10000000ns,10000000ns --offset 12000000ns --json --label 'ovs, idle' >"$out/ovs-idle-talk.json"
wait $listener
listener=

# Run: loaded
rm -f "$folder/listen.log"
ip netns exec farlane-listener farlane latency listen raw:far --reflect --insecure --clock shared --idle 2s --json --label 'ovs, loaded' >"$out/ovs-loaded-listen.json" 2>"$folder/listen.log" &
listener=$!
ready "$folder/listen.log" 'listening on'
rm -f "$folder/stress-server.log"
ip netns exec farlane-listener iperf3 -s -B 192.0.2.2 -p 5201 --forceflush >"$folder/stress-server.log" 2>&1 &
started="$started $!"
ready "$folder/stress-server.log" 'listening'
ip netns exec farlane-talker iperf3 -c 192.0.2.2 -p 5201 -u -P 3 -b 10000000 -l 1400 -t 13 >/dev/null &
started="$started $!"
ip netns exec farlane-talker farlane latency talk raw:near,02:00:5e:10:00:02 --clock shared --reflect --priority 3 --vlan 5 --interval 20000000ns --count 500 --allow-losses 500 --base 0 --cycle 20000000ns --window 10000000ns,10000000ns --offset 12000000ns --json --label 'ovs, loaded' >"$out/ovs-loaded-talk.json"
end $started
started=
wait $listener
listener=
)
test $? -eq 0 || failed=1
exit $failed

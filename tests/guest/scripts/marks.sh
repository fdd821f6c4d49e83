# What --priority and --dscp put on the wire of a VLAN interface: PCP 5 by its map,
# DSCP 46 as the upper six bits of a TOS of 0xb8. The kernel's filters count.
tag() {
    ip -n "$1" link add link "$2" name "$2.5" type vlan id 5 egress-qos-map 5:5
    ip -n "$1" addr add "$3/24" dev "$2.5"
    ip -n "$1" link set "$2.5" up
    ip netns exec "$1" tc qdisc add dev "$2" clsact
    count() { ip netns exec "$1" tc filter add dev "$2" ingress protocol 802.1Q pref "$3" flower vlan_id 5 $4 action ok; }
    count "$1" "$2" 1 "vlan_prio 5 vlan_ethtype ip ip_tos 0xb8/0xfc"
    count "$1" "$2" 2 "vlan_ethtype ip"
    count "$1" "$2" 3 "vlan_prio 5 vlan_ethtype 0x88b5"
    count "$1" "$2" 4 "vlan_ethtype 0x88b5"
}

interfaces() {
    tag talker near 198.51.100.1
    tag listener far 198.51.100.2
}

# packets NAMESPACE DEVICE PREF: how many have passed a filter.
packets() {
    ip netns exec "$1" tc -s filter show dev "$2" ingress pref "$3" | sed -n 's/.* bytes \([0-9]*\) pkt.*/\1/p'
}

# marked NAMESPACE DEVICE PREF COUNT [BARE]: so many have passed the filter, and none without
# marks, or so many at most.
marked() {
    with=$(packets "$1" "$2" "$3")
    without=$(($(packets "$1" "$2" 2) + $(packets "$1" "$2" 4)))
    echo "at $2: $with with marks, $without without"
    test "$with" -ge "$4" -a "$without" -le "${5:-0}"
}

probes() {
    ip netns exec listener farlane latency listen 198.51.100.2:7000 >/dev/null 2>/tmp/said &
    until_true 10 grep -q '^listening on' /tmp/said
    ip netns exec talker farlane latency talk 198.51.100.2:7000 --priority 5 --dscp 46 \
        --count 50 --interval 5ms >/dev/null
    wait
    marked listener far 1 50
}

# node LISTENING CONNECTING OPTION…: a drive's node is pinged.
node() {
    listen=$1
    connect=$2
    shift 2
    ip netns exec listener farlane device --listen "$listen" --insecure --namespace ram=1M "$@" 2>/tmp/said &
    device=$!
    until_true 10 grep -q ' listening on' /tmp/said
    ip netns exec talker farlane ping "$connect" --insecure --count 20 "$@"
    kill -INT $device
    wait $device
}

over_tcp() {
    node 198.51.100.2:7001 198.51.100.2:7001 --priority 5 --dscp 46
    marked listener far 1 70
    # The kernel may answer for a connection that is gone: a segment each of two.
    marked talker near 1 20 2
}

over_ethernet() {
    node raw:far.5 raw:near.5,02:00:5e:00:53:02 --priority 5
    marked listener far 3 20
    marked talker near 3 20 2
}

step "VLAN interfaces" interfaces
step "marks of probes" probes
step "marks of nodes over TCP" over_tcp
step "marks of nodes over raw Ethernet" over_ethernet

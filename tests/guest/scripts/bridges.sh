# The namespace talker on the port `in` of a bridge; its port `out` has gates. A
# second bridge joins what comes out of it to the machine's network.
# Argument: the command that sets the gates.
gates=$1

join() {
    ip ${2:+-n $2} link add "$1" type bridge
    for port in $3; do
        ip ${2:+-n $2} link set "$port" master "$1"
        ip ${2:+-n $2} link set "$port" up
    done
    ip ${2:+-n $2} link set "$1" up
}

bridges() {
    modprobe virtio_net
    ip netns add talker
    ip netns add bridge
    ip link add near netns talker type veth peer name in netns bridge
    ip link add out netns bridge numtxqueues 8 type veth peer name behind
    ip -n talker link set near up
    join gated bridge "in out"
    join plain "" "behind eth0"
    ip netns exec bridge sh -c "$gates"
    # A priority does not cross a veth by itself.
    ip netns exec bridge tc qdisc add dev in clsact
    ip netns exec bridge tc filter add dev in ingress protocol 802.1Q flower vlan_prio 3 \
        action skbedit priority 3
}

step "bridges" bridges

# Two machines on a cable: the namespaces talker and listener with addresses and an
# interface eth0. QEMU captures a copy of every frame on the cable.
machines() {
    modprobe virtio_net
    ip link set eth0 netns listener name copy
    ip -n listener link set copy up
    ip -n listener link set far name eth0
    ip -n talker link set near name eth0
    ip -n listener addr add 198.51.100.2/24 dev eth0
    ip -n talker addr add 198.51.100.1/24 dev eth0
    # Segments as on a cable.
    ip netns exec listener ethtool -K eth0 tso off gso off gro off >/dev/null
    ip netns exec talker ethtool -K eth0 tso off gso off gro off >/dev/null
    ip netns exec listener tc qdisc add dev eth0 clsact
    for way in ingress egress; do
        ip netns exec listener tc filter add dev eth0 $way matchall action mirred egress mirror dev copy
    done
}

step "two machines" machines

# Namespaces talker and listener on a cable, near to far, with a queue for each
# priority: without ARP, and addresses that every run has.
cable() {
    for name in talker listener; do
        ip netns add $name
        ip -n $name link set lo up
    done
    ip link add near netns talker address 02:00:5e:00:53:01 numtxqueues 8 \
        type veth peer name far netns listener address 02:00:5e:00:53:02 numtxqueues 8
    ip -n talker link set near up
    ip -n listener link set far up
}

step "a cable" cable

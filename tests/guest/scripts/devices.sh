# A node of a plan, set up by the script of farlane tsn export and read back by farlane tsn import.
# Arguments: the plan; bridge or node; its name; its neighbours.
printf '%s' "$1" >/tmp/plan.toml
kind=$2
name=$3
shift 3
run() { ip netns exec "$name" "$@"; }

interfaces() {
    ip netns add "$name"
    if [ "$kind" = bridge ]; then
        run ip link add dev "$name" type bridge
        run ip link set dev "$name" up
    fi
    for peer in "$@"; do
        run ip link add dev "$peer" numtxqueues 8 type veth peer name "at-$peer" numtxqueues 8
        run ip link set dev "$peer" up
        run ip link set dev "at-$peer" up
        if [ "$kind" = bridge ]; then run ip link set dev "$peer" master "$name"; fi
    done
}

write() {
    farlane tsn export /tmp/plan.toml --output /tmp/devices --launch-times
}

# state PEER…: all that a script sets. The kernel counts the indices of actions on.
state() {
    run tc -j qdisc show
    for peer in "$@"; do run tc -j filter show dev "$peer" ingress; done | sed 's/"index":[0-9]*//g'
    run bridge -j vlan show
    # Others are of hosts that listen.
    run bridge mdb show | grep permanent || true
    run ip -br link show type vlan
}

# A list is not in force at once.
in_force() { ! run tc -j qdisc show | grep -q '"admin"'; }

set_up() {
    run sh "/tmp/devices/$name.sh"
    until_true 10 in_force
    state "$@" >"/tmp/$name.set"
}

set_up_again() {
    run sh "/tmp/devices/$name.sh"
    until_true 10 in_force
    state "$@" | cmp - "/tmp/$name.set"
}

# takes TEXT PROGRAM…: the program takes its file, and says a text.
takes() {
    text=$1
    shift
    ip netns exec "$name" "$@" -m -f "/tmp/devices/$name.$1.conf" >/tmp/said 2>&1 &
    until_true 10 grep -q "$text" /tmp/said || die "$(cat /tmp/said)"
    kill $! 2>/dev/null || true
}

# A veth has no hardware clock.
clocks() {
    takes 'to LISTENING\|PTP device not specified\|requested timestamping mode' ptp4l
    test ! -e "/tmp/devices/$name.phc2sys.conf" || takes 'Waiting for ptp4l' phc2sys -a -r
}

undo() {
    run sh "/tmp/devices/$name.sh" undo
    state "$@" | cmp - "/tmp/$name.before"
    run sh "/tmp/devices/$name.sh" undo
}

read_back() {
    run tc -j qdisc show >/tmp/qdiscs.json
    run bridge -j vlan show >/tmp/vlans.json
    files=
    for peer in "$@"; do
        run tc -j filter show dev "$peer" ingress >"/tmp/$peer.json"
        files="$files $peer=/tmp/$peer.json"
    done
    farlane tsn import /tmp/qdiscs.json /tmp/vlans.json $files "--$kind" "$name" --output /tmp/part.toml
}

step "interfaces of $name" interfaces "$@"
step "files" write
state "$@" >"/tmp/$name.before"
step "script of $name" set_up "$@"
step "script of $name again" set_up_again "$@"
step "import of $name" read_back "$@"
echo "@@ part"
cat /tmp/part.toml
echo "@@ end"
step "clocks of $name" clocks
step "undo of $name" undo "$@"

# Nothing of a lab is left: no namespace, no process.
nothing() {
    test -z "$(ip netns list)" || die "$(ip netns list)"
    for name in farlane iperf3 ovsdb-server ovs-vswitchd; do
        if pidof $name >/dev/null; then die "$name still runs"; fi
    done
}

step "nothing is left" nothing

# A listener on the machine's network that goes on behind the script, and whose
# clock is ahead. Argument: seconds.
ahead() { date -s "@$(($(date +%s) + $1))"; }

listen() {
    modprobe virtio_net
    # QEMU's NIC drops frames of VLANs that the guest has no interface for.
    ip link set eth0 up promisc on
    setsid farlane latency listen raw:eth0 --reflect --insecure --json >/tmp/listen 2>/tmp/said &
    until_true 20 grep -q '^listening on' /tmp/said
}

step "a clock $1 s ahead" ahead "$1"
step "listen" listen

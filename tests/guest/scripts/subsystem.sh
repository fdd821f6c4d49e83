# A drive with two controllers and one namespace: private and shared namespaces.
# Argument: what this guest does: both (it has both controllers); first, second or
# written (it has one of them).
part=$1
# Linux starts both controllers at once: neither has a certain number.
system=$(basename /sys/class/nvme-subsystem/nvme-subsys*)
system=nvme${system#nvme-subsys}
# numbered CNTLID: the controller, without /dev.
numbered() { grep -lx "$1" /sys/class/nvme/nvme*/cntlid | cut -d / -f 5; }
one=/dev/$(numbered 1)
other=/dev/$(numbered 2)

there() { test -n "$(namespace "$system" "$1")"; }
gone() { ! there "$1"; }

# lists COMMAND… -- ID…: the list that nvme-cli prints.
lists() {
    command=
    while [ "$1" != -- ]; do command="$command $1"; shift; done
    shift
    $command | sed -n 's/.*:\(0x[0-9a-f]*\)$/\1/p' | xargs >/tmp/list
    test "$(cat /tmp/list)" = "$*" || die "$command: $(cat /tmp/list), not $*"
}

# A and C are private, B is shared.
create() {
    nvme delete-ns "$one" --namespace-id=1
    for shared in 0 1 0; do
        nvme create-ns "$one" --nsze=32768 --ncap=32768 --flbas=0 --nmic=$shared
    done
    lists nvme list-ns "$one" --all -- 0x1 0x2 0x3
    lists nvme list-ctrl "$one" -- 0x1 0x2
}

attach() {
    nvme attach-ns "$one" --namespace-id=1 --controllers=1
    nvme attach-ns "$one" --namespace-id=2 --controllers=1,2
    nvme attach-ns "$one" --namespace-id=3 --controllers=2
    refused 'Private' nvme attach-ns "$one" --namespace-id=1 --controllers=2
    lists nvme list-ctrl "$one" --namespace-id=1 -- 0x1
    lists nvme list-ctrl "$one" --namespace-id=2 -- 0x1 0x2
    lists nvme list-ctrl "$one" --namespace-id=3 -- 0x2
    lists nvme list-ns "$one" -- 0x1 0x2
}

# Linux sees one subsystem, and one device with two paths for B.
paths() {
    lists nvme list-ns "$other" -- 0x2 0x3
    for nsid in 1 2 3; do until_true 10 there $nsid; done
    number=$(namespace "$system" 2)
    number=${number##*n}
    for path in "$one" "$other"; do test -e "/sys/block/${system}c${path#/dev/nvme}n$number"; done
}

shared() {
    fill "$(namespace "$system" 2)"
    holds "$(namespace "$system" 1)" 0 65536 '\0'
    holds "$(namespace "$system" 3)" 0 65536 '\0'
    fill "$(namespace "$system" 3)"
    holds "$(namespace "$system" 1)" 0 65536 '\0'
}

detach() {
    nvme detach-ns "$one" --namespace-id=2 --controllers=1
    lists nvme list-ns "$one" -- 0x1
    holds "$(namespace "$system" 2)" 0 65536 x
    nvme attach-ns "$one" --namespace-id=2 --controllers=1
}

# only A B: this guest has exactly those namespaces.
only() {
    until_true 10 there "$1"
    until_true 10 there "$2"
    gone "$3"
}

write_for() { head -c 65536 /dev/zero | tr '\0' "$1" | dd of="$(namespace "$system" 2)" bs=65536 iflag=fullblock oflag=direct; }

case $part in
both)
    step "three namespaces" create
    step "attached to one, to both, to the other" attach
    step "paths of Linux" paths
    step "contents" shared
    step "detached from one" detach
    ;;
first)
    step "three namespaces" create
    step "attached to one, to both, to the other" attach
    step "the first and the shared one" only 1 2 3
    step "written" write_for x
    ;;
second)
    step "the last and the shared one" only 2 3 1
    step "what the other wrote" holds "$(namespace "$system" 2)" 0 65536 x
    step "written" write_for y
    ;;
written)
    step "what the other wrote" holds "$(namespace "$system" 2)" 0 65536 y
    ;;
esac

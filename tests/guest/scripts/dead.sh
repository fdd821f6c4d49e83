# Reads of drives that nobody answers for fail, and their drivers give them up.
# Arguments: seconds to wait, then the controllers (nvme0 …).
seconds=$1
shift

fails() {
    readers=
    for disk in "$@"; do
        timeout "$seconds" dd if="/dev/${disk}n1" of=/dev/null bs=4096 count=1 iflag=direct &
        readers="$readers $!"
    done
    for reader in $readers; do
        wait "$reader" && die "went through"
    done
    for disk in "$@"; do
        test "$(cat "/sys/class/nvme/$disk/state")" = dead
    done
}

step "reads fail: $*" fails "$@"

# The drive holds zeroes.
# Arguments: the namespace (nvme0n1), MiB to look at.
empty() {
    dd if="/dev/$1" bs=1M count="$2" iflag=direct 2>/dev/null | tr -d '\000' | wc -c >/tmp/others
    test "$(cat /tmp/others)" = 0
}

step "zeroes" empty "$1" "$2"

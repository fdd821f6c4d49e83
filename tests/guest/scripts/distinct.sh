# Two drives hold different data.
# Arguments: their namespaces (nvme0n1 nvme1n1).
first=/dev/$1
second=/dev/$2

fill() {
    yes "$1" | dd of="$1" bs=1M count=1 iflag=fullblock oflag=direct 2>/dev/null
}
filled() {
    test "$(dd if="$1" bs=1M count=1 iflag=direct 2>/dev/null | head -n 1)" = "$1"
}

step "write $first" fill "$first"
step "write $second" fill "$second"
step "read $first" filled "$first"
step "read $second" filled "$second"

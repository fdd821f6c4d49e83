# A drive that lives in a folder, with two namespaces: 1 has blocks of 512
# bytes, 2 of 4096. It is written the first time, and must be as it was again.
# Arguments: the controller (nvme0), its serial number, the NGUIDs of 1 and 2,
# its power cycles, its unsafe shutdowns, "first" or "again".
drive=/dev/$1
serial=$2
first_nguid=$3
second_nguid=$4

there() { test "$(ls -d /sys/block/"$1"n* 2>/dev/null | wc -l)" = 2; }
live() { grep -q live "/sys/class/nvme/$1/state"; }

# A command that was on its way when the drive was lost asks for a reset.
back() { holds "$first" 0 4096 x && live "$1"; }

identity() {
    nvme id-ctrl "$drive" >/tmp/out
    grep "^sn  *: $serial *\$" /tmp/out
    nvme id-ns "$first" | grep "^nguid *: $first_nguid\$"
    nvme id-ns "$second" | grep "^nguid *: $second_nguid\$"
    test "$(attribute "$first" queue/logical_block_size)" = 512
    test "$(attribute "$second" queue/logical_block_size)" = 4096
}

# smart FIELD VALUE
smart() {
    nvme smart-log "$drive" >/tmp/out
    grep "^$1[[:space:]]*: $2\$" /tmp/out || { cat /tmp/out; die "$1 is not $2"; }
}

write() {
    for namespace in "$first" "$second"; do
        fill "$namespace"
        nvme flush "$namespace"
    done
}

save() {
    nvme set-feature "$drive" --feature-id=4 --value=0x155 --save
    refused "not saveable\|$driver_only" nvme set-feature "$drive" --feature-id=7 --value=0x10001 --save
}
saved() {
    for select in 0 2; do
        nvme get-feature "$drive" --feature-id=4 --sel=$select | tee /tmp/out
        grep -q '0*155$' /tmp/out
    done
}

step "two namespaces" until_true 10 there "$1"
first=$(namespace "$1" 1)
second=$(namespace "$1" 2)
if [ "$7" = first ]; then
    step "write" write
    step "nvme set-feature --save" save
else
    step "the drive is back" until_true 40 back "$1"
fi
step "names" identity
step "what was written" holds "$first" 0 65536 x
step "what was written with blocks of 4096 bytes" holds "$second" 0 65536 x
step "what was saved" saved
step "power cycles" smart power_cycles "$5"
step "unsafe shutdowns" smart unsafe_shutdowns "$6"

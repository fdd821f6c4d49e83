# Stock tools on a drive with three namespaces: 1 has blocks of 512 bytes, 2 of
# 4096 bytes, 3 is read-only and filled with the byte 0x5a.
# Argument: the controller (nvme0).
drive=/dev/$1

there() { test "$(ls -d /sys/block/"$1"n* 2>/dev/null | wc -l)" = 3; }

blocks() { echo $(($(attribute "$1" size) * 512 / $(attribute "$1" queue/logical_block_size))); }

geometry() {
    test -b "$first" -a -b "$second" -a -b "$third"
    test "$(attribute "$first" queue/logical_block_size)" = 512
    test "$(attribute "$second" queue/logical_block_size)" = 4096
    test "$(attribute "$first" ro)$(attribute "$second" ro)$(attribute "$third" ro)" = 001
    nvme list-ns "$drive" | tee /tmp/out
    test "$(grep -c '0x[123]$' /tmp/out)" = 3
    for namespace in "$first" "$second" "$third"; do nvme ns-descs "$namespace"; done |
        grep '^uuid' | tee /tmp/out
    test "$(sort -u /tmp/out | wc -l)" = 3 || die "namespaces of the same name"
}

read_only() {
    holds "$third" 0 1048576 Z
    refused 'read-only\|not permitted' dd if=/dev/zero of="$third" bs=4096 count=1 oflag=direct
    # Past the block layer, so that the drive itself has to refuse.
    head -c 512 /dev/zero >/tmp/zeros
    refused 'write protected' \
        nvme write "$third" --start-block=0 --block-count=0 --data-size=512 --data=/tmp/zeros
    holds "$third" 0 4096 Z
}

beyond() {
    end=$(blocks "$first")
    refused 'LBA Out of Range' \
        nvme read "$first" --start-block="$end" --block-count=0 --data-size=512 --data=/tmp/none
    refused 'LBA Out of Range' \
        nvme read "$first" --start-block=$((end - 1)) --block-count=1 --data-size=1024 --data=/tmp/none
    nvme read "$first" --start-block=$((end - 1)) --block-count=0 --data-size=512 --data=/tmp/last
    test "$(wc -c </tmp/last)" = 512
}

error_log() {
    nvme error-log "$drive" --log-entries=4 >/tmp/out
    cat /tmp/out
    grep -q 'status_field.*LBA Out of Range' /tmp/out
    grep -q "^lba[[:space:]]*: 0x$(printf %x "$(blocks "$first")")\$" /tmp/out
}

# feature NUMBER VALUE: set, read back.
feature() {
    nvme set-feature "$drive" --feature-id="$1" --value="0x$2"
    nvme get-feature "$drive" --feature-id="$1" | tee /tmp/out
    grep -q "Current value:\(0x\)\?0*$2\$" /tmp/out
}
features() {
    nvme get-feature "$drive" --feature-id=7 | tee /tmp/out
    grep -q 'Current value:0x00010001$' /tmp/out
    feature 4 150  # temperature threshold
    feature 4 157
    feature 6 0    # write cache
    feature 6 1
    feature 8 104  # interrupt coalescing
    feature 8 0
    feature 11 1f  # asynchronous events
    refused 'Invalid Field' nvme get-feature "$drive" --feature-id=0x7e
}

write_zeroes() {
    nvme write-zeroes "$1" --start-block=0 --block-count=$((8192 / $(attribute "$1" queue/logical_block_size) - 1))
    holds "$1" 0 8192 '\0'
    holds "$1" 8192 8192 x
}

deallocate() {
    nvme dsm "$1" --ad --slbs=0 --blocks=$((4096 / $(attribute "$1" queue/logical_block_size)))
    holds "$1" 8192 8192 x
    blkdiscard -o 0 -l 1048576 "$1"
    holds "$1" 0 65536 '\0'
}

reset() {
    fill "$first"
    nvme reset "$drive"
    until_true 10 grep -q live "/sys/class/nvme/${drive##*/}/state"
    holds "$first" 0 65536 x
    nvme ns-rescan "$drive"
    test -b "$third"
}

registers() {
    nvme show-regs "$drive" >/tmp/out
    cat /tmp/out
    grep -q '^csts *: 0x1$' /tmp/out
}

# Commands that the drive does not have.
unsupported() {
    refused 'Invalid Command Opcode' \
        nvme format "$first" --lbaf=0 --force
    refused 'Invalid Command Opcode' \
        nvme admin-passthru "$drive" --opcode=0xc9
    refused 'Invalid Command Opcode' \
        nvme io-passthru "$first" --opcode=0xc9 --namespace-id=1
    refused 'Invalid Namespace' nvme id-ns "$drive" --namespace-id=9
    holds "$first" 0 65536 x
}

file_system() {
    mkfs.ext4 -q -F "$second"
    mount -t ext4 "$second" /mnt
    head -c 2000000 /dev/urandom >/mnt/file
    sum=$(sha256sum </mnt/file)
    umount /mnt
    fsck.ext4 -f -n "$second"
    mount -t ext4 -o ro "$second" /mnt
    test "$(sha256sum </mnt/file)" = "$sum"
    umount /mnt
}

step "three namespaces" until_true 10 there "$1"
first=$(namespace "$1" 1)
second=$(namespace "$1" 2)
third=$(namespace "$1" 3)
step "geometry" geometry
step "read-only namespace" read_only
step "nvme read beyond the end" beyond
step "nvme error-log" error_log
step "nvme get-feature, set-feature" features
for namespace in "$first" "$second"; do
    step "write $namespace" fill "$namespace"
    step "nvme write-zeroes $namespace" write_zeroes "$namespace"
    step "nvme dsm, blkdiscard $namespace" deallocate "$namespace"
    step "nvme flush $namespace" nvme flush "$namespace"
done
step "nvme reset, ns-rescan" reset
step "nvme show-regs" registers
step "commands it does not have" unsupported
step "ext4 on blocks of 4096 bytes" file_system

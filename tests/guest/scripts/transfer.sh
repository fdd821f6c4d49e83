# dd both ways past the page cache, with small and with large commands.
# Arguments: the namespace (nvme0n1), MiB to write.
disk=/dev/$1
mebibytes=$2

# copy BLOCKSIZE SKIP: there and back, SKIP MiB into the drive.
copy() {
    blocks=$((mebibytes * 1048576 / $1))
    offset=$(($2 * 1048576 / $1))
    dd if=/dev/urandom of=/tmp/data bs=1M count="$mebibytes" 2>/dev/null
    dd if=/tmp/data of="$disk" bs="$1" seek="$offset" count="$blocks" oflag=direct
    dd if="$disk" of=/tmp/back bs="$1" skip="$offset" count="$blocks" iflag=direct
    test "$(sum /tmp/data "$mebibytes")" = "$(sum /tmp/back "$mebibytes")" || die "checksums differ"
    rm /tmp/data /tmp/back
}

step "dd 4 KiB" copy 4096 0
step "dd 1 MiB" copy 1048576 "$mebibytes"

# A file system with files in it; prints their checksums between two marks.
# Argument: the namespace (nvme0n1).
disk=/dev/$1

make_files() {
    mkdir -p /mnt/a/b
    for number in $(seq 1 12); do
        dd if=/dev/urandom of="/mnt/a/file$number" bs=1000 count=$((number * number)) 2>/dev/null
        echo "small file $number" >"/mnt/a/b/small$number"
    done
    dd if=/dev/urandom of=/mnt/large bs=1M count=4 2>/dev/null
    sync
}

checksums() {
    echo 3 >/proc/sys/vm/drop_caches
    echo "@@ checksums"
    (cd /mnt && find . -type f | sort | xargs sha256sum)
    echo "@@ end"
}

step "mkfs.ext4" mkfs.ext4 -q -F "$disk"
step "mount" mount -t ext4 "$disk" /mnt
step "write files" make_files
step "sha256sum" checksums
step "unmount" umount /mnt
step "fsck.ext4" fsck.ext4 -f -n "$disk"

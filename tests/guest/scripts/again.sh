# After a new start: the file system is clean and the files are as they were.
# Arguments: the namespace (nvme0n1), the checksums as files.sh printed them.
disk=/dev/$1
printf '%s\n' "$2" >/tmp/checksums

check() {
    grep -q . /tmp/checksums || die "no checksums to compare with"
    (cd /mnt && sha256sum -c /tmp/checksums)
}

step "drive there" until_true 10 test -b "$disk"
step "fsck.ext4" fsck.ext4 -f -n "$disk"
step "mount" mount -t ext4 -o ro "$disk" /mnt
step "same checksums" check
step "unmount" umount /mnt

# Random reads and writes, verified.
# Arguments: MiB a job, then the namespaces (nvme0n1 …); two jobs on each.
mebibytes=$1
shift

verified() {
    jobs=
    for namespace in "$@"; do
        jobs="$jobs --name=$namespace --filename=/dev/$namespace"
    done
    # shellcheck disable=SC2086
    fio --ioengine=libaio --direct=1 --rw=randrw --bs=4k --iodepth=16 \
        --numjobs=2 --size="${mebibytes}m" --offset_increment="${mebibytes}m" \
        --cpus_allowed=0,1 --cpus_allowed_policy=split \
        --verify=crc32c --verify_fatal=1 --group_reporting $jobs >/tmp/out 2>&1 ||
        { cat /tmp/out; die "fio failed"; }
    grep -E 'err=|read:|write:|issued rwts|clat \(' /tmp/out
}

step "fio verify=crc32c randrw 2 jobs qd 16: $*" verified "$@"

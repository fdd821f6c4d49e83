# Starts random reads and writes, verified, again and again until /tmp/stop exists.
# Argument: the namespace (nvme0n1), or a pattern of the only one.
namespace=$(cd /dev && echo $1)

rounds() {
    while fio --name=verify --filename="/dev/$namespace" --ioengine=libaio --direct=1 \
        --rw=randrw --bs=4k --iodepth=8 --size=4m --verify=crc32c --verify_fatal=1 \
        >/tmp/verify.log 2>&1 && grep -q 'err= 0' /tmp/verify.log; do
        grep 'clat (' /tmp/verify.log >>/tmp/verify.latencies
        echo >>/tmp/verify.rounds
        test ! -e /tmp/stop || return 0
    done
    mv /tmp/verify.log /tmp/verify.failed
}
start() { { rounds || true; echo >/tmp/verify.end; } & }
running() { test -e /tmp/verify.rounds; }

step "drive there" until_true 10 test -b "/dev/$namespace"
step "start verified reads and writes" start
step "they run" until_true 40 running

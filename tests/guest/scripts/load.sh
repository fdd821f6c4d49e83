# Starts reads and writes that go on until the drive is lost.
# Argument: the namespace (nvme0n1).
namespace=$1

start() {
    fio --name=load --filename="/dev/$namespace" --ioengine=libaio --direct=1 --rw=randrw \
        --bs=4k --iodepth=4 --size=16m --time_based --runtime=600 >/tmp/load.log 2>&1 &
    echo $! >/tmp/load.pid
}

writes() {
    set -- $(cat "/sys/block/$namespace/stat")
    echo "$5"
}
# At least 100 writes done.
running() { test $(($(writes) - before)) -ge 100; }

step "drive there" until_true 10 test -b "/dev/$namespace"
before=$(writes)
step "start a load" start
step "load runs" until_true 20 running

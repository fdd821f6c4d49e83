# What the stock driver and nvme-cli say about a drive.
# Arguments: the controller (nvme0), the namespace (nvme0n1).
controller=$1
namespace=$2

bound() {
    until_true 10 test -b "/dev/$namespace"
    driver=$(readlink "/sys/class/nvme/$controller/device/driver")
    test "${driver##*/}" = nvme || die "driver is $driver"
    test "$(cat "/sys/class/nvme/$controller/state")" = live || die "not live"
}

# One queue for each of the two processors.
queues() {
    set -- "/sys/block/$namespace"/mq/*
    echo "queues: $#"
    test $# -ge 2
}

id_ctrl() {
    nvme id-ctrl "/dev/$controller" >/tmp/out
    cat /tmp/out
    grep -q '^sn  *: [^ ]' /tmp/out && grep -q '^mn  *: [^ ]' /tmp/out || die "no serial or model"
    # NVMe 1.4, section 7.9; as the driver took it.
    grep -qE '^nqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+:[^ ]+$' "/sys/class/nvme/$controller/subsysnqn" ||
        die "no NQN: '$(cat "/sys/class/nvme/$controller/subsysnqn")'"
}

id_ns() {
    nvme id-ns "/dev/$namespace" >/tmp/out
    cat /tmp/out
    blocks=$((($(sed -n 's/^nsze *: //p' /tmp/out))))
    bytes=$((blocks * $(cat "/sys/block/$namespace/queue/logical_block_size")))
    test "$bytes" = "$(blockdev --getsize64 "/dev/$namespace")" || die "nsze is not the size"
}

smart_log() {
    nvme smart-log "/dev/$controller" >/tmp/out
    cat /tmp/out
    grep -q '^critical_warning[[:space:]]*: 0' /tmp/out || die "critical warning"
    # What the driver asks at its start is no error.
    grep -q '^num_err_log_entries[[:space:]]*: 0$' /tmp/out || die "errors were logged"
}

list() {
    nvme list >/tmp/out
    cat /tmp/out
    grep -q "^/dev/$namespace " /tmp/out || die "not listed"
}

step "driver bound" bound
step "queues" queues
step "nvme id-ctrl" id_ctrl
step "nvme id-ns" id_ns
step "nvme smart-log" smart_log
step "nvme list" list

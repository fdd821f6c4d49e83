# Waits until the load has commands that the drive has not completed.
# Argument: the namespace (nvme0n1).
namespace=$1

waiting() {
    set -- $(cat "/sys/block/$namespace/inflight")
    test $(($1 + $2)) -gt 0
}

step "commands wait" until_true 10 waiting

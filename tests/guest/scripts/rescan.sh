# Looks for drives anew.
# Argument: the number of namespaces that must be there in the end.
expected=$1

rescan() { echo 1 >/sys/bus/pci/rescan; }
there() {
    test "$(ls /sys/class/block | grep -c '^nvme[0-9]*n1$')" = "$expected"
}

step "rescan" rescan
step "drive there" until_true 20 there
ls /sys/class/block | grep '^nvme'

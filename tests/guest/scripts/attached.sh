# Waits for drives that appear by themselves.
# Argument: the number of namespaces that must be there in the end.
expected=$1

there() {
    test "$(ls /sys/class/block | grep -c '^nvme[0-9]*n1$')" = "$expected"
}

step "drives: $expected" until_true 20 there
ls /sys/class/block | grep '^nvme'

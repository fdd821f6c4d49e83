# Waits until there are as many drives as there should be.
# Argument: their number.
expected=$1

there() {
    test "$(ls /sys/class/block | grep -c '^nvme[0-9]*n1$')" = "$expected"
}

step "drives: $expected" until_true 20 there

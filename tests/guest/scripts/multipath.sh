# Two controllers of one drive as two paths of Linux's native multipath.
# Argument: PART, then its own arguments.
part=$1
shift
# numbered CNTLID: the controller, without /dev.
numbered() { grep -lx "$1" /sys/class/nvme/nvme*/cntlid | cut -d / -f 5; }
state() { cat "/sys/class/nvme/$(numbered "$1")/state"; }
is() { test "$(state "$1")" = "$2"; }
# path CNTLID: the path of the namespace.
path() { ls -d /sys/class/nvme/"$(numbered "$1")"/nvme*c*n* | head -n 1; }
access() { cat "$(path "$1")/ana_state"; }
# commands CNTLID: reads and writes so far.
commands() { awk '{print $1 + $5}' "$(path "$1")/stat"; }

both() {
    for id in 1 2; do until_true 10 is $id live; done
    for id in 1 2; do until_true 10 test -e "$(path $id)"; done
    nvme list-subsys
    test "$(access 1)" = optimized
    test "$(access 2)" = non-optimized
}
# more CNTLID: commands take this path now.
more() {
    before=$(commands "$1")
    sleep 0.1
    test "$(commands "$1")" -gt "$before"
}
only() {
    until_true 20 more "$1"
    ! more "$2"
}
back() {
    until_true 30 is "$1" live
    until_true 30 only 1 2
}
without_error() {
    test ! -e /tmp/verify.failed || die "fio: $(cat /tmp/verify.failed)"
    ! dmesg | grep -iE 'I/O error|no usable path|failing I/O|removing'
}

case $part in
both) step "two paths, one optimized" both ;;
only) step "I/O takes path $1" only "$1" "$2" ;;
back) step "path $1 is back, and the optimized one is used" back "$1" ;;
end)
    ended() { test -e /tmp/verify.end; }
    touch /tmp/stop
    step "verified reads and writes end" until_true 60 ended
    step "nothing failed" without_error
    # The longest command of each round, in us.
    sed -n 's/.*clat (\(.\)sec): .*max= *\([0-9.]*\)\(k*\),.*/\1 \2 \3/p' /tmp/verify.latencies |
        awk '{print $2 * ($1 == "m" || $3 == "k" ? 1000 : 1)}' | sort -n | tail -n 3
    ;;
esac

# A step of a host that shares namespace 2 with another one by reservations.
# Arguments: what to do, and its values.
system=$(basename /sys/class/nvme-subsystem/nvme-subsys*)
shared=$(namespace "nvme${system#nvme-subsys}" 2)
head -c 512 /dev/zero >/tmp/block

access() {
    nvme "$1" "$shared" --start-block=0 --block-count=0 --data-size=512 --data=/tmp/block
}

# report REGISTRANTS TYPE: with the identity of each host, which its key gives.
report() {
    nvme resv-report "$shared" --eds --numd=63 | tee /tmp/out
    grep -q "^regctl *: *$1\$" /tmp/out
    grep -q "^rtype *: *$2\$" /tmp/out
    test "$(grep -c hostid /tmp/out)" = "$1"
    test "$(grep hostid /tmp/out | sort -u | wc -l)" = "$1"
}

told() {
    nvme resv-notif-log /dev/nvme0 | tee /tmp/out
    grep -qi 'preempted' /tmp/out
}

case $1 in
register) step "$*" nvme resv-register "$shared" --nrkey="$2" --rrega=0 ;;
unregister) step "$*" nvme resv-register "$shared" --crkey="$2" --rrega=1 ;;
acquire) step "$*" nvme resv-acquire "$shared" --crkey="$2" --rtype="$3" --racqa=0 ;;
preempt) step "$*" nvme resv-acquire "$shared" --crkey="$2" --prkey="$3" --rtype="$4" --racqa=1 ;;
preempt-and-abort)
    step "$*" nvme resv-acquire "$shared" --crkey="$2" --prkey="$3" --rtype="$4" --racqa=2
    ;;
release) step "$*" nvme resv-release "$shared" --crkey="$2" --rtype="$3" --rrela=0 ;;
report) step "$*" report "$2" "$3" ;;
may) step "$*" access "$2" ;;
must-not) step "$*" refused 'Reservation Conflict' access "$2" ;;
told) step "$*" told ;;
esac

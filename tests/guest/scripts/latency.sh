# One transfer of 4 KiB at a time, on drives in turns.
# Arguments: rounds, seconds each, then the namespaces (nvme0n1 …). Prints lines
# "latency DRIVE WHAT VALUE": for fio the median latency in nanoseconds, for dd
# nanoseconds a block.
rounds=$1
seconds=$2
shift 2

# by_fio DRIVE RW
by_fio() {
    fio --name=latency --filename="/dev/$1" --ioengine=libaio --direct=1 --rw="$2" --bs=4k \
        --iodepth=1 --size=32m --time_based --runtime="$seconds" --percentile_list=50 \
        --output-format=json >/tmp/out || { cat /tmp/out; die "fio failed"; }
    # The percentile of the direction that moved something.
    value=$(sed -n 's/.*"50.000000" *: *\([0-9]*\).*/\1/p' /tmp/out | sort -n | tail -n 1)
    echo "latency $1 $2 $value"
}

# by_dd DRIVE WHAT OPERANDS…: 500 blocks, direct; now has hundredths of a second.
by_dd() {
    drive=$1
    what=$2
    shift 2
    begun=$(now)
    dd bs=4096 count=500 "$@" 2>/dev/null
    ended=$(now)
    echo "latency $drive $what $(((ended - begun) * 10000000 / 500))"
}

one_round() {
    for drive in "$@"; do
        by_fio "$drive" randread
        by_fio "$drive" randwrite
        by_dd "$drive" dd-read if="/dev/$drive" of=/dev/null iflag=direct
        by_dd "$drive" dd-write if=/dev/zero of="/dev/$drive" oflag=direct
    done
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    step "round $round of $rounds" one_round "$@"
done

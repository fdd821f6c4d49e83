# One transfer of 4 KiB at a time, on drives in turns.
# Arguments: rounds, seconds each, then the serial numbers of the drives: names
# follow the order in which the kernel probes. Prints lines
# "latency SERIAL WHAT VALUE": for fio the median latency from submission in nanoseconds, for dd
# nanoseconds a block.
rounds=$1
seconds=$2
shift 2

# namespace SERIAL: the first namespace of that drive
namespace() {
    for controller in /sys/class/nvme/nvme*; do
        read -r found <"$controller/serial"
        if [ "$found" = "$1" ]; then
            echo "/dev/${controller##*/}n1"
            return
        fi
    done
    die "no drive with serial number $1"
}

# by_fio SERIAL NAMESPACE RW
by_fio() {
    fio --name=latency --filename="$2" --ioengine=libaio --direct=1 --rw="$3" --bs=4k \
        --iodepth=1 --size=32m --time_based --runtime="$seconds" --percentile_list=50 \
        --lat_percentiles=1 --clat_percentiles=0 \
        --output-format=json >/tmp/out || { cat /tmp/out; die "fio failed"; }
    # The percentile of the direction that moved something.
    value=$(sed -n 's/.*"50.000000" *: *\([0-9]*\).*/\1/p' /tmp/out | sort -n | tail -n 1)
    echo "latency $1 $3 $value"
}

# by_dd SERIAL WHAT OPERANDS…: 500 blocks, direct; now has hundredths of a second.
by_dd() {
    serial=$1
    what=$2
    shift 2
    begun=$(now)
    dd bs=4096 count=500 "$@" 2>/dev/null
    ended=$(now)
    echo "latency $serial $what $(((ended - begun) * 10000000 / 500))"
}

one_round() {
    for drive in "$@"; do
        device=$(namespace "$drive")
        by_fio "$drive" "$device" randread
        by_fio "$drive" "$device" randwrite
        by_dd "$drive" dd-read if="$device" of=/dev/null iflag=direct
        by_dd "$drive" dd-write if=/dev/zero of="$device" oflag=direct
    done
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    step "round $round of $rounds" one_round "$@"
done

# Put in front of every script. A step is a command that must succeed; the
# harness reads the lines that begin with "@@".

# Hundredths of a second since boot.
now() { sed 's/^\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime; }

# step NAME COMMAND…: runs the command; if it fails, the script ends.
step() {
    step=$1
    shift
    begun=$(now)
    echo "farlane: $step" >/dev/kmsg
    (set -e; "$@")
    if [ $? -eq 0 ]; then
        echo "@@ ok $(($(now) - begun))0 ms $step"
    else
        echo "@@ failed $(($(now) - begun))0 ms $step"
        exit 1
    fi
}

# until_true SECONDS COMMAND…: runs the command until it succeeds.
until_true() {
    limit=$(($(now) + $1 * 100))
    shift
    until "$@"; do
        if [ "$(now)" -gt "$limit" ]; then
            echo "not within the time: $*"
            return 1
        fi
        sleep 0.1
    done
}

die() {
    echo "$*"
    exit 1
}

# sum FILE COUNT: the checksum of its first COUNT MiB.
sum() { dd if="$1" bs=1M count="$2" 2>/dev/null | sha256sum; }

# attribute NAMESPACE NAME: an attribute of its block device.
attribute() { cat "/sys/block/${1##*/}/$2"; }
# namespace CONTROLLER NSID: the device of a namespace, once it can be opened, which is later than
# its entry in /sys. Linux looks for namespaces in parallel, so the number in the name need not be
# the namespace's.
namespace() {
    for name in /sys/block/"$1"n*; do
        device=/dev/${name##*/}
        if [ "$(cat "$name/nsid")" = "$2" ] && { true <"$device"; } 2>/dev/null; then echo "$device"; fi
    done
}

# Linux since 6.12.117 keeps Set Features of Number of Queues, Keep Alive Timer
# and Host Memory Buffer for its driver and answers others with EACCES.
driver_only='Permission denied'

# refused STATUS COMMAND…: the command fails and names the status.
refused() {
    status=$1
    shift
    if "$@" >/tmp/out 2>&1; then
        cat /tmp/out
        die "went through: $*"
    fi
    cat /tmp/out
    grep -qi "$status" /tmp/out || die "not because of $status"
}

# holds NAMESPACE OFFSET BYTES CHARACTER: these bytes are all that one.
holds() {
    test "$(dd if="$1" bs=4096 skip=$(($2 / 4096)) count=$(($3 / 4096)) iflag=direct 2>/dev/null |
        tr -c -d "$4" | wc -c)" = "$3"
}
# fill NAMESPACE: the first 64 KiB with the character x.
fill() {
    head -c 65536 /dev/zero | tr '\0' x | dd of="$1" bs=65536 count=1 iflag=fullblock oflag=direct
    holds "$1" 0 65536 x
}

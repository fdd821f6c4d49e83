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

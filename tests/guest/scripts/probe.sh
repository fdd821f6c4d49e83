# Frames from the namespace talker to the namespace listener, and what both ends say.
# Arguments: whereto the talker sends, where the listener is; options of the listener,
# --, options of the talker.
to=$1
from=$2
shift 2
heard=
while [ "$1" != -- ]; do
    heard="$heard $1"
    shift
done
shift

document() {
    echo "@@ $1"
    cat "/tmp/$1"
    echo "@@ end"
}

talk() {
    until_true 10 grep -q '^listening on' /tmp/said
    ip netns exec talker farlane latency talk "$to" --clock shared --fifo 80 --lock-memory --json "$@" >/tmp/talk
}

ip netns exec listener farlane latency listen "$from" --fifo 70 --json $heard >/tmp/listen 2>/tmp/said &
# A step waits for children of its own alone.
step "talk to $to" talk "$@"
wait $! || die "the listener failed: $(cat /tmp/said)"
document talk
document listen

# A device node without keys in the namespace listener, and data that io writes through
# it into the file /run/copied. Arguments: where the node listens, whereto io connects.
rm -f /run/copied*
ip netns exec listener farlane device --listen "$1" --insecure \
    --namespace file=/run/copied,size=1M >/dev/null 2>/tmp/said &
device=$!
until_true 10 grep -q ' listening on' /tmp/said

transfer() {
    ip netns exec talker farlane io --connect "$1" --insecure --rw write --size 128k \
        --verify --destructive --yes
}

step "transfer to $2" transfer "$2"
kill -INT $device
wait $device
cat /tmp/said

# A lab is killed while it measures Open vSwitch; everything that it made stays.
farlane latency lab --bridge ovs --gate /tmp/gates --count 50 >/dev/null 2>/tmp/said &
step "a lab measures" until_true 60 test -e /run/farlane-lab/farlane/talk.log
kill -KILL $!
wait $!
ip netns list
test "$(ip netns list | wc -l)" = 3
pidof ovs-vswitchd

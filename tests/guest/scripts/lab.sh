# `farlane latency lab` with gates for priority 3 in the second half of 20 ms: what it
# says, and its document. Arguments: its options.
printf 'base-time 0\nsched-entry S f7 10ms\nsched-entry S 08 10ms\n' >/tmp/gates
farlane latency lab --gate /tmp/gates --count 50 --json "$@" >/tmp/lab 2>/tmp/said
status=$?
cat /tmp/said
echo "@@ lab"
# Without the spaces, which are a third of it.
sed 's/^ *//' /tmp/lab
echo "@@ end"
# 1: a bridge was refused.
test $status -le 1

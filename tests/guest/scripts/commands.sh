# Every command that the driver set up since boot, from its own trace event.
# The driver sends Asynchronous Event Requests another way, without the event.
cd /sys/kernel/tracing
echo 0 >tracing_on
for cpu in per_cpu/cpu*; do
    lost=$(sed -n -e 's/^overrun: //p' -e 's/^dropped events: //p' "$cpu/stats" | tr -d '\n')
    test "$lost" = 00 || die "@@ failed 0 ms trace buffer of $cpu is too small: $lost"
done
echo "@@ commands"
grep nvme_setup_cmd trace
echo "@@ end"

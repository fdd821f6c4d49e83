# Lines for two boards that `farlane latency lab` prints, run by the real programs at
# both ends of the cable in place of NICs, with stamps of the kernel; they set no clock,
# as both ends have one. The listener's ptp4l follows the talker's.
printf 'sched-entry S f7 10ms\nsched-entry S 08 10ms\n' >/tmp/gates

print() {
    farlane latency lab --bridge linux --gate /tmp/gates --guest tap,02:00:5e:00:53:33 \
        --boards near,far --dry-run >/tmp/boards
    cat /tmp/boards
}

# line BEGIN: that line, without the mark of what goes on behind the shell.
line() { grep "^$1" /tmp/boards | sed 's/ &$//'; }

# A veth pair is slower than a cable, and has no clock: gPTP.cfg has 800 ns at most.
software="-S --free_running=1 --neighborPropDelayThresh=1000000000 --tx_timestamp_timeout=1000"

follow() {
    ip netns exec talker $(line "ptp4l -i near") $software >/run/near.log 2>&1 &
    ip netns exec listener $(line "ptp4l -i far") $software \
        --uds_address=/run/far --uds_ro_address=/run/far-ro >/run/far.log 2>&1 &
    until_true 10 test -S /var/run/ptp4l -a -S /run/far || die "$(cat /run/near.log /run/far.log)"
    # The line sets what the grandmaster says of its clock.
    sh -c "$(line pmc)" | tee /tmp/out
    grep -q 'RESPONSE MANAGEMENT GRANDMASTER_SETTINGS_NP' /tmp/out
    until_true 30 follows || die "$(cat /run/near.log /run/far.log)"
}

follows() {
    pmc -u -b 0 -t 1 -s /run/far 'GET TIME_STATUS_NP' 'GET TIME_PROPERTIES_DATA_SET' >/tmp/out
    grep -q 'gmIdentity *02005e.fffe.005301' /tmp/out && grep -q 'currentUtcOffset *37' /tmp/out
}

# What only hardware does: the programs take the lines, the kernel says what is missing.
hardware() {
    refused 'Device does not have a PTP clock' ip netns exec talker sh -c "$(line 'tc qdisc')"
    refused 'source clock' ip netns exec talker $(line 'phc2sys -s near')
}

bridge() {
    # Where there is udev, the device node loads it.
    modprobe tun
    sed -n "/^# On the bridge's board/,/^# In the guest/p" /tmp/boards | grep '^ip ' >/tmp/lines
    test "$(wc -l </tmp/lines)" -ge 5
    ip netns exec listener sh -ex /tmp/lines
    ip netns exec listener ip link del bridge0
    ip netns exec listener ip link del tap0
}

step "lines for boards" print
step "lines that want hardware" hardware
step "lines of the bridge" bridge
step "ptp4l follows ptp4l" follow

# nvme-cli reads the persistent event log of a drive in a folder, which Linux drives by doorbells in
# its own memory.
# Argument: the controller (nvme0).
drive=/dev/$1

buffers() {
    nvme id-ctrl "$drive" | tee /tmp/out
    oacs=$(sed -n 's/^oacs *: *//p' /tmp/out)
    test $((oacs & 0x100)) != 0 || die "no Doorbell Buffer Config"
    ! dmesg | grep -i dbbuf || die "Linux could not use it"
}

log() { nvme persistent-event-log "$drive" "$@"; }

events() {
    refused 'Sequence Error\|SEQUENCE' nvme persistent-event-log "$drive" --action=0
    nvme set-feature "$drive" --feature-id=6 --value=0
    nvme set-feature "$drive" --feature-id=6 --value=1
    log --action=1
    log --action=0 >/tmp/out
    cat /tmp/out
    log --action=2
    for line in '^Log Identifier: 13$' '^Log Header Length: 492$' '^Set Feature' '^Power On' \
        'Volatile Write Cache'; do
        grep -q "$line" /tmp/out || die "no $line"
    done
}

reset() {
    nvme reset "$drive"
    until_true 10 grep -q live "/sys/class/nvme/${drive##*/}/state"
    log --action=1
    log --action=0 --log_len=4096 | grep -m 1 '^Controller ID'
    log --action=2
}

step "drive there" until_true 10 test -c "$drive"
step "doorbells in memory" buffers
step "nvme persistent-event-log" events
step "nvme reset" reset

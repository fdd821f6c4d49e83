# Ends verifying.sh: it had no error, and the driver noticed nothing.

ended() { test -e /tmp/verify.end; }
without_error() {
    if test -e /tmp/verify.failed; then
        cat /tmp/verify.failed
        die "fio failed"
    fi
    wc -l </tmp/verify.rounds
}
unnoticed() {
    dmesg | grep -i nvme | tail -n 5
    ! dmesg | grep -iE 'nvme.*(timeout|timed out|reset|abort|error)|I/O error'
}

touch /tmp/stop
step "verified reads and writes end" until_true 60 ended
step "no error in so many rounds:" without_error
step "the driver noticed nothing" unnoticed

# Waits until the driver gave up the drive and the load ended with an error.
# Arguments: the controller (nvme0), seconds to wait.
controller=$1
seconds=$2

given_up() {
    state=$(cat "/sys/class/nvme/$controller/state" 2>/dev/null) || return 0
    test "$state" = dead
}
load_ended() { ! kill -0 "$(cat /tmp/load.pid)" 2>/dev/null; }
load_failed() {
    cat /tmp/load.log
    grep -qE 'Input/output error|No such device|error=' /tmp/load.log
}

step "driver gives the drive up" until_true "$seconds" given_up
step "load ends" until_true "$seconds" load_ended
step "load reports the error" load_failed
dmesg | grep -i nvme | tail -n 20

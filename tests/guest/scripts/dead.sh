# Reads of a drive that nobody answers for fail, and its driver gives it up.
# Arguments: the controller (nvme0), seconds to wait.
controller=$1
seconds=$2

fails() {
    for disk in /dev/"$controller"n*; do
        timeout "$seconds" dd if="$disk" of=/dev/null bs=4096 count=1 iflag=direct && die "went through"
    done
    test "$(cat "/sys/class/nvme/$controller/state")" = dead
}

step "reads of $controller fail" fails

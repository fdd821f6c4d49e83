# Waits until the reads of reading.sh ended, with an error and not with bytes
# that nobody wrote.
# Arguments: the namespace (nvme0n1), seconds to wait.
namespace=$1
seconds=$2

ended() { test -e "/tmp/end-$namespace"; }
as_it_should() { cat "/tmp/end-$namespace"; grep -q "I/O error" "/tmp/end-$namespace"; }

step "reads end" until_true "$seconds" ended
dmesg | grep -i nvme | tail -n 20
step "with an I/O error" as_it_should

# Waits until the reads of reading.sh go on, as if nothing had happened.
# Arguments: the namespace (nvme0n1), seconds to wait.
namespace=$1
seconds=$2

rounds() { wc -l <"/tmp/rounds-$namespace"; }
before=$(rounds)
further() { test "$(rounds)" -ge $((before + 3)); }

step "reads go on" until_true "$seconds" further
step "no error, no other bytes" test ! -e "/tmp/end-$namespace"

# Reads what fill.sh wrote, again and again, until an error or other bytes come.
# Arguments: the namespaces (nvme0n1).

reader() {
    while dd if="/dev/$1" of="/tmp/back-$1" bs=1M count=1 iflag=direct; do
        cmp /tmp/filled "/tmp/back-$1" || { echo "other bytes" >"/tmp/end-$1"; return; }
        echo >>"/tmp/rounds-$1"
    done
    echo "I/O error" >"/tmp/end-$1"
}
rounds() { test "$(cat "/tmp/rounds-$1" 2>/dev/null | wc -l)" -ge 3; }

tr '\000' '\245' </dev/zero | dd of=/tmp/filled bs=1M count=1 iflag=fullblock 2>/dev/null
for namespace; do
    reader "$namespace" >/tmp/reading.log 2>&1 &
    step "reads of $namespace" until_true 20 rounds "$namespace"
done

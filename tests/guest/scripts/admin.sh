# The admin commands of nvme-cli on a drive that lives in a folder, whose first
# namespace has blocks of 512 bytes.
# Argument: the controller (nvme0).
drive=/dev/$1

# shows PATTERN COMMAND…: the command prints a line like that.
shows() {
    pattern=$1
    shift
    "$@" >/tmp/out 2>&1 || { cat /tmp/out; die "failed: $*"; }
    grep -q -- "$pattern" /tmp/out || { cat /tmp/out; die "no $pattern: $*"; }
}

live() { grep -q live "/sys/class/nvme/${drive##*/}/state"; }
reset() {
    nvme reset "$drive"
    until_true 10 live
}

identify() {
    shows '^oacs *: ' nvme id-ctrl "$drive"
    shows '^nn *: 128' nvme id-ctrl "$drive"
    shows '^\[   0\]:0x1$' nvme list-ctrl "$drive"
    shows '^\[   0\]:0x1$' nvme list-ctrl "$drive" --namespace-id=1
    shows '^uuid' nvme ns-descs "$first"
    shows '^csi *: 0' nvme ns-descs "$first"
    shows 'nstat' nvme cmdset-ind-id-ns "$drive" --namespace-id=1
    shows 'Combination\[0\]:1$' nvme id-iocs "$drive"
    shows '^vsl *: 0' nvme nvm-id-ctrl "$drive"
    shows '^lbstm *: 0' nvme nvm-id-ns "$drive" --namespace-id=1
    refused 'Invalid Field' nvme id-nvmset "$drive"
    refused 'Invalid Field' nvme id-uuid "$drive"
    refused 'Invalid Field' nvme primary-ctrl-caps "$drive"
    refused 'Invalid Field' nvme list-secondary "$drive"
    refused 'Invalid Field' nvme id-ns-granularity "$drive"
    refused 'Invalid Field' nvme list-endgrp "$drive"
    refused 'Invalid Field' nvme id-domain "$drive"
}

# feature NUMBER VALUE [NSID]: set, read back.
feature() {
    nvme set-feature "$drive" --feature-id="$1" --value="0x$2" --namespace-id="${3:-0}"
    shows "urrent value:\(0x\)\?0*$2\$" \
        nvme get-feature "$drive" --feature-id="$1" --namespace-id="${3:-0}"
}
# As feature, of one that Linux may keep for its driver.
driver_feature() {
    if ! nvme set-feature "$drive" --feature-id="$1" --value="0x$2" >/tmp/out 2>&1; then
        cat /tmp/out
        grep -q "$driver_only" /tmp/out
    fi
    shows "urrent value:\(0x\)\?0*$2\$" nvme get-feature "$drive" --feature-id="$1"
}
features() {
    feature 1 7       # arbitration burst
    feature 2 1       # power state
    feature 2 0
    feature 4 155     # temperature threshold
    feature 5 20 1    # time limited error recovery
    feature 6 0       # write cache
    feature 6 1
    feature 8 104     # interrupt coalescing
    feature 8 0
    nvme set-feature "$drive" --feature-id=9 --value=0x10001 # vector 1: no coalescing
    shows 'value:0x00010001$' nvme get-feature "$drive" --feature-id=9 --cdw11=1
    nvme set-feature "$drive" --feature-id=9 --value=1
    feature 11 31f    # asynchronous events
    # Keep alive: Linux sends no such command on PCIe and resets the controller instead.
    driver_feature 15 0
    refused 'Invalid Field' nvme get-feature "$drive" --feature-id=0xd
    refused "Invalid Field\|$driver_only" nvme set-feature "$drive" --feature-id=0xd --value=1
    for number in 1 2 4 5 6 7 8 9 0xa 0xb 0xe 0xf 0x16 0x84; do
        shows 'changeable' nvme get-feature "$drive" --feature-id="$number" --sel=3 --namespace-id=1
    done
}

timestamp() {
    # 2001-09-09T01:46:40Z in milliseconds, the least significant byte first.
    printf '\000\020\245\324\350\000\000\000' >/tmp/time
    nvme set-feature "$drive" --feature-id=0xe --data-len=8 --data=/tmp/time
    nvme get-feature "$drive" --feature-id=0xe --data-len=8 --raw-binary >/tmp/now
    # It counts on from there: the upper bytes stay for some hours.
    test "$(od -A n -t u1 -j 4 -N 4 /tmp/now | tr -s ' ')" = ' 232 0 2 0' || {
        od -A n -t u1 /tmp/now
        die "not what was set"
    }
}

logs() {
    shows '^Data Units Read\|^data_units_read' nvme smart-log "$drive"
    shows '^afi *: 0x1$' nvme fw-log "$drive"
    shows 'ACS13 *\[Namespace Management\|ACS13' nvme effects-log "$drive" --csi=0
    shows 'no error\|Error Information\|error_count' nvme error-log "$drive"
    # Offsets: the second half of the SMART log is that of the whole.
    nvme get-log "$drive" --log-id=2 --log-len=512 --raw-binary >/tmp/whole
    nvme get-log "$drive" --log-id=2 --log-len=256 --lpo=256 --raw-binary >/tmp/half
    tail -c 256 /tmp/whole | cmp - /tmp/half
    refused 'Invalid Log Page' nvme get-log "$drive" --log-id=0xc0 --log-len=512
}

# bytes LOG OFFSET COUNT: unsigned little-endian number in a file.
number() { od -A n -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '; }

telemetry() {
    nvme telemetry-log "$drive" --output-file=/tmp/telemetry --host-generate=1
    test "$(number /tmp/telemetry 0 1)" = 7
    # Data area 3 ends where the file ends: blocks of 512 bytes behind the header.
    last=$(number /tmp/telemetry 12 2)
    test "$last" -gt 0
    test "$(wc -c </tmp/telemetry)" = $(((last + 1) * 512))
}

begin_test() {
    nvme device-self-test "$drive" --namespace-id=1 --self-test-code=1
    refused 'in progress' nvme device-self-test "$drive" --namespace-id=1 --self-test-code=1
    shows 'Current operation *: 0x1' nvme self-test-log "$drive"
}
abort_test() {
    nvme device-self-test "$drive" --namespace-id=1 --self-test-code=0xf
    shows 'Operation Result *: 0x1' nvme self-test-log "$drive"
}
self_test_is_done() {
    nvme self-test-log "$drive" >/tmp/out
    grep -q 'Operation Result *: 0$' /tmp/out
}

firmware() {
    { printf 'FAR2.0.1'; head -c 16376 /dev/urandom; } >/tmp/image
    nvme fw-download "$drive" --fw=/tmp/image
    nvme fw-commit "$drive" --slot=2 --action=1
    shows '^frs2 *: .*FAR2.0.1' nvme fw-log "$drive"
    refused 'Invalid Firmware Slot' nvme fw-commit "$drive" --slot=1 --action=1
    nvme fw-commit "$drive" --slot=2 --action=3
    shows '^fr *: FAR2.0.1 *$' nvme id-ctrl "$drive"
    shows '^afi *: 0x2$' nvme fw-log "$drive"
    nvme fw-commit "$drive" --slot=1 --action=2
    reset
    shows '^afi *: 0x1$' nvme fw-log "$drive"
}

security() {
    nvme security-recv "$drive" --secp=0 --spsp=0 --size=512 --al=512 --raw-binary |
        tail -c 512 >/tmp/protocols
    # One protocol, number 0 (SPC-4, table 235).
    test "$(od -A n -t u1 -j 6 -N 3 /tmp/protocols | tr -s ' ')" = ' 0 1 0'
    head -c 512 /dev/zero >/tmp/zeros
    refused 'Invalid Field' nvme security-send "$drive" --secp=1 --spsp=1 --tl=512 --file=/tmp/zeros
}

# Bit 0 of the answer: a command with that number does not wait.
abort() { shows '0*1$' nvme admin-passthru "$drive" --opcode=8 --cdw10=0x77770000; }

keep_alive() { nvme admin-passthru "$drive" --opcode=0x18; }

refusals() {
    for opcode in 0x19 0x1a 0x1c 0x1d 0x1e 0x86 0xc0; do
        refused 'Invalid Command Opcode' nvme admin-passthru "$drive" --opcode="$opcode"
    done
    refused 'Invalid Queue' nvme admin-passthru "$drive" --opcode=0 --cdw10=0x1234
    refused 'Invalid Queue' nvme admin-passthru "$drive" --opcode=4 --cdw10=0x1234
    refused 'Invalid' nvme admin-passthru "$drive" --opcode=5 --cdw10=0 --cdw11=1
    refused 'Invalid' nvme admin-passthru "$drive" --opcode=1 --cdw10=0 --cdw11=1
}

until_true 10 test -b "/dev/${1}n1"
first=$(namespace "$1" 1)
step "nvme device-self-test, aborted" begin_test
step "nvme device-self-test --self-test-code=0xf" abort_test
step "nvme device-self-test" begin_test
step "nvme id-ctrl, list-ctrl, ns-descs, nvm-id-ns, id-iocs" identify
step "nvme get-feature, set-feature" features
step "timestamp" timestamp
step "nvme smart-log, fw-log, effects-log, error-log, get-log" logs
step "nvme telemetry-log" telemetry
step "nvme security-recv, security-send" security
step "Abort" abort
step "Keep Alive" keep_alive
step "commands it does not have" refusals
step "nvme self-test-log" until_true 20 self_test_is_done
step "nvme fw-download, fw-commit" firmware

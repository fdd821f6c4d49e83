# Namespaces of a drive that lives in a folder: created, attached, formatted,
# write protected, sanitized, deleted with nvme-cli. The drive has one namespace.
# Argument: the controller (nvme0).
drive=/dev/$1
controller=$1

there() { test -n "$(namespace "$controller" "$1")"; }
gone() { ! there "$1"; }

create() {
    nvme create-ns "$drive" --nsze=32768 --ncap=32768 --flbas=0 --nmic=1 | tee /tmp/out
    grep -q 'created nsid:2$' /tmp/out
    nvme list-ns "$drive" --all | tee /tmp/out
    test "$(grep -c '0x[12]$' /tmp/out)" = 2
    # Allocated, not active.
    refused 'Invalid Field' nvme ns-descs "$drive" --namespace-id=2
    gone 2
    refused 'Insufficient Capacity' \
        nvme create-ns "$drive" --nsze=0x10000000 --ncap=0x10000000 --flbas=0
    refused 'Thin Provisioning' nvme create-ns "$drive" --nsze=2048 --ncap=1024 --flbas=0
}

# The notice makes Linux look for it.
attach() {
    nvme attach-ns "$drive" --namespace-id=2 --controllers=1
    until_true 10 there 2
    refused 'Already Attached' nvme attach-ns "$drive" --namespace-id=2 --controllers=1
    refused 'Controller List' nvme attach-ns "$drive" --namespace-id=2 --controllers=9
    second=$(namespace "$controller" 2)
    test "$(attribute "$second" size)" = 32768
    holds "$second" 0 65536 '\0'
    holds "$second" 16711680 65536 '\0'
    fill "$second"
    nvme list-ctrl "$drive" --namespace-id=2 | tee /tmp/out
    grep -q '0x1$' /tmp/out
}

detach() {
    nvme detach-ns "$drive" --namespace-id=2 --controllers=1
    until_true 10 gone 2
    # Linux has read the log of changed namespaces.
    nvme changed-ns-list-log "$drive"
    nvme attach-ns "$drive" --namespace-id=2 --controllers=1
    until_true 10 there 2
    holds "$(namespace "$controller" 2)" 0 65536 x
}

# Copies of other blocks, compared and verified.
commands() {
    second=$(namespace "$controller" 2)
    block=$(attribute "$second" queue/logical_block_size)
    head -c "$block" /dev/zero | tr '\0' y >/tmp/y
    nvme write "$second" --start-block=100 --block-count=0 --data-size="$block" --data=/tmp/y
    nvme compare "$second" --start-block=100 --block-count=0 --data-size="$block" --data=/tmp/y
    refused 'Compare Failure' \
        nvme compare "$second" --start-block=0 --block-count=0 --data-size="$block" --data=/tmp/y
    nvme verify "$second" --start-block=0 --block-count=15
    refused 'LBA Out of Range' nvme verify "$second" --start-block=0xffffff --block-count=0
    nvme copy "$second" --sdlba=200 --slbs=100,100 --blocks=0,0
    for at in 200 201; do
        nvme compare "$second" --start-block=$at --block-count=0 --data-size="$block" --data=/tmp/y
    done
    nvme write-zeroes "$second" --start-block=200 --block-count=1 --deac
    nvme read "$second" --start-block=200 --block-count=1 --data-size=$((2 * block)) \
        --data=/tmp/read
    test "$(tr -d '\0' </tmp/read | wc -c)" = 0
    nvme write-uncor "$second" --start-block=300 --block-count=0
    refused 'Unrecovered Read' \
        nvme read "$second" --start-block=300 --block-count=0 --data-size="$block" --data=/tmp/read
    nvme write "$second" --start-block=300 --block-count=0 --data-size="$block" --data=/tmp/y
    nvme compare "$second" --start-block=300 --block-count=0 --data-size="$block" --data=/tmp/y
    nvme flush "$second"
}

formatted() { test "$(attribute "$(namespace "$controller" 2)" queue/logical_block_size)" = "$1"; }

format() {
    refused 'Invalid Format' nvme format "$drive" --namespace-id=2 --lbaf=9 --force
    nvme format "$drive" --namespace-id=2 --lbaf="$1" --ses="$3" --force
    until_true 10 formatted "$2"
    second=$(namespace "$controller" 2)
    holds "$second" 0 65536 '\0'
    fill "$second"
    nvme id-ns "$second" | tee /tmp/out
    grep -q "^lbaf  *$1 : .*(in use)" /tmp/out
}

protect() {
    second=$(namespace "$controller" 2)
    head -c 4096 /dev/zero | tr '\0' p >/tmp/p
    nvme set-feature "$drive" --feature-id=0x84 --value=1 --namespace-id=2
    refused 'write protected' \
        nvme write "$second" --start-block=0 --block-count=0 --data-size=4096 --data=/tmp/p
    holds "$second" 0 65536 x
    nvme set-feature "$drive" --feature-id=0x84 --value=0 --namespace-id=2
    nvme write "$second" --start-block=0 --block-count=0 --data-size=4096 --data=/tmp/p
}

# sanitized PASSES: completed, so many passes of an overwrite.
sanitized() {
    nvme sanitize-log "$drive" >/tmp/out
    grep -q '(SPROG) *: *65535$' /tmp/out && grep -q "(SSTAT) *: *0x$(printf %x $(($1 * 8 + 1)))\$" /tmp/out
}

sanitize() {
    first=$(namespace "$controller" 1)
    fill "$first"
    refused 'Invalid Field' nvme sanitize "$drive" --sanact=4
    nvme sanitize "$drive" --sanact=2
    until_true 30 sanitized 0 || { cat /tmp/out; return 1; }
    holds "$first" 0 65536 '\0'
    holds "$second" 0 65536 '\0'
    nvme sanitize "$drive" --sanact=3 --owpass=1 --ovrpat=0x7a7a7a7a --no-dealloc
    until_true 30 sanitized 1 || { cat /tmp/out; return 1; }
    holds "$first" 0 65536 z
}

delete() {
    second=$(namespace "$controller" 2)
    # With I/O under way.
    dd if="$second" of=/dev/null bs=4096 count=100000 iflag=direct 2>/dev/null &
    nvme delete-ns "$drive" --namespace-id=2
    until_true 10 gone 2
    wait
    refused 'Invalid Field\|Invalid Namespace' nvme attach-ns "$drive" --namespace-id=2 --controllers=1
    nvme list-ns "$drive" --all | tee /tmp/out
    test "$(grep -c '0x[0-9]*$' /tmp/out)" = 1
}

step "the drive" until_true 10 there 1
step "nvme create-ns" create
step "nvme attach-ns" attach
step "nvme detach-ns, attach-ns" detach
second=$(namespace "$controller" 2)
step "nvme compare, verify, copy, write-zeroes --deac, write-uncor" commands
step "nvme format: 4096 bytes" format 1 4096 1
step "the same with blocks of 4096 bytes" commands
step "write protection" protect
step "nvme format: 512 bytes" format 0 512 0
step "nvme sanitize" sanitize
step "nvme delete-ns" delete

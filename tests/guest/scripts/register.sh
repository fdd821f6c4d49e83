# Reads a controller's status register (CSTS) as the processor sees it, past the
# driver; the kernel must have been started with iomem=relaxed.
# Arguments: the drive's address (0000:01:00.0), the value expected.
function=/sys/bus/pci/devices/$1
expected=$2

status() {
    base=$(sed -n '1s/ .*//p' "$function/resource")
    value=$(devmem $((base + 0x1c)) 32)
    echo "CSTS at $base+0x1c is $value"
    test "$value" = "$expected"
}

step "CSTS $expected" status

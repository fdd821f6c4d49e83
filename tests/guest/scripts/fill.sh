# Fills the whole drive with bytes that are not zero.
# Arguments: the namespace (nvme0n1), its MiB.
disk=/dev/$1
mebibytes=$2

fill() {
    tr '\000' '\245' </dev/zero | dd of="$disk" bs=1M count="$mebibytes" iflag=fullblock oflag=direct
}

step "drive there" until_true 10 test -b "$disk"
step "fill $mebibytes MiB" fill

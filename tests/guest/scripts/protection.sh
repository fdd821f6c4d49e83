# End-to-end data protection: the kernel writes and checks protection information itself, nvme-cli
# and fio do it with and without the controller's help. The drive has one namespace of 16 MiB.
# Argument: the controller (nvme0).
drive=/dev/$1
controller=$1

profile() { test "$(attribute "$first" integrity/format)" = "$1"; }
blocks() { test "$(attribute "$first" size)" = "$1"; }

# format LBAF TYPE PIL PROFILE SECTORS: what Linux then has.
format() {
    nvme format "$drive" --namespace-id=1 --lbaf="$1" --pi="$2" --pil="$3" --force
    until_true 10 blocks "$5"
    until_true 10 profile "$4"
    nvme id-ns "$first" | tee /tmp/out
    grep -q "^lbaf  *$1 : .*(in use)" /tmp/out
    grep -q "^dps *: *\(0x\)*$(printf %x $(($2 + 8 * $3)))\$" /tmp/out
}

# By the kernel: each block gets a guard and a reference tag, which it checks when it reads.
kernel() {
    holds "$first" 0 65536 '\0'
    fill "$first"
    head -c 1048576 /dev/urandom >/tmp/random
    dd if=/tmp/random of="$first" bs=1M seek=1 oflag=direct
    dd if="$first" bs=1M skip=1 count=1 iflag=direct | cmp - /tmp/random
}

# one VERB BLOCK PRINFO REFERENCE METADATA: reads or writes a block of 512 bytes with nvme-cli.
one() {
    verb=$1 block=$2 prinfo=$3 reference=$4
    shift 4
    nvme "$verb" "$first" --start-block="$block" --block-count=0 --data-size=512 --data=/tmp/block \
        --prinfo="$prinfo" --ref-tag="$reference" "$@"
}

# information BLOCK: the protection information of a block as hexadecimal digits.
information() {
    one read "$1" 0 0 --metadata-size=8 --metadata=/tmp/metadata >/tmp/out
    od -An -tx1 /tmp/metadata | tr -d ' \n'
}

tools() {
    # What the kernel wrote: 512 times x.
    nvme verify "$first" --start-block=0 --block-count=127 --prinfo=7 --ref-tag=0
    information 5 | tee /tmp/out
    information 5 | grep -q '^....000000000005$'
    head -c 512 /dev/zero | tr '\0' y >/tmp/block
    one write 9 8 9
    information 9 | tee /tmp/out
    information 9 | grep -q '^....000000000009$'
    one read 9 15 9
    tr -d y </tmp/block | cmp - /dev/null
    printf '\001\002\000\000\000\000\000\011' >/tmp/metadata
    refused 'guard' one write 9 4 9 --metadata-size=8 --metadata=/tmp/metadata
    refused 'application' one write 9 2 9 --app-tag=1 --app-tag-mask=1 \
        --metadata-size=8 --metadata=/tmp/metadata
    refused 'protection information' one write 9 1 10 --metadata-size=8 --metadata=/tmp/metadata
    # Unchecked it is kept, and found by the kernel: EILSEQ.
    one write 9 0 9 --metadata-size=8 --metadata=/tmp/metadata
    refused 'Invalid or incomplete' dd if="$first" of=/dev/null bs=4096 count=2 iflag=direct
    nvme error-log "$drive" --log-entries=8 | tee /tmp/out
    # Deallocated blocks disable the checks.
    nvme dsm "$first" --ad --slbs=8 --blocks=8
    test "$(information 9)" = ffffffffffffffff
    holds "$first" 4096 4096 '\0'
    nvme write-zeroes "$first" --start-block=8 --block-count=7 --prinfo=8 --ref-tag=8
    test "$(information 9)" = 0000000000000009
}

# fio sends protection information of its own (PRACT 0), or has the controller do it.
fio_with_protection() {
    fio --name=protected --ioengine=io_uring_cmd --cmd_type=nvme \
        --filename="/dev/$(echo "${first##*/}" | sed s/nvme/ng/)" --rw=randwrite --bs=4k --iodepth=16 \
        --size=2m --verify=crc32c --verify_fatal=1 --md_per_io_size="$1" --pi_act="$2" \
        --pi_chk=GUARD,REFTAG,APPTAG --apptag=0x1234 --apptag_mask=0xffff >/tmp/out 2>&1 ||
        { cat /tmp/out; die "fio failed"; }
    grep -E 'err=|read:|write:|issued rwts' /tmp/out
}

first=$(namespace "$controller" 1)
# 32256 blocks of 512 + 8 bytes in 16 MiB.
step "nvme format: 512 + 8 bytes, type 1" format 2 1 0 T10-DIF-TYPE1-CRC 32256
step "protection by the kernel" kernel
step "protection by nvme-cli" tools
step "protection by fio" fio_with_protection 64 0
step "protection by the controller" fio_with_protection 0 1
# 4088 blocks of 4096 + 8 bytes: as many times 8 sectors.
step "nvme format: 4096 + 8 bytes, type 3" format 3 3 1 T10-DIF-TYPE3-CRC 32704
step "type 3 by the kernel" kernel
step "nvme format: 512 bytes" format 0 0 0 none 32768

# The kernel's own NVMe/TCP target and initiator, over the guest's loopback interface, with a RAM
# disk of the kernel (64 MiB) behind them. Argument: serial number of the drive.
target() {
    modprobe brd rd_nr=1 rd_size=65536
    modprobe -a nvmet-tcp nvme-tcp
    ip link set lo up
    mount -t configfs none /sys/kernel/config 2>/dev/null || true
    cd /sys/kernel/config/nvmet
    mkdir subsystems/ram subsystems/ram/namespaces/1 ports/1
    echo 1 >subsystems/ram/attr_allow_any_host
    echo "$1" >subsystems/ram/attr_serial
    echo /dev/ram0 >subsystems/ram/namespaces/1/device_path
    echo 1 >subsystems/ram/namespaces/1/enable
    echo tcp >ports/1/addr_trtype
    echo ipv4 >ports/1/addr_adrfam
    echo 127.0.0.1 >ports/1/addr_traddr
    echo 4420 >ports/1/addr_trsvcid
    ln -s /sys/kernel/config/nvmet/subsystems/ram ports/1/subsystems/
}

has_namespace() {
    controller=$(grep -l tcp /sys/class/nvme/nvme*/transport)
    controller=${controller%/transport}
    test -b "/dev/${controller##*/}n1"
}

initiator() {
    nvme connect --transport=tcp --traddr=127.0.0.1 --trsvcid=4420 --nqn=ram \
        --hostnqn=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001 \
        --hostid=00000000-0000-4000-8000-000000000001
    until_true 20 has_namespace
}

step "target of the kernel" target "$1"
step "initiator of the kernel" initiator

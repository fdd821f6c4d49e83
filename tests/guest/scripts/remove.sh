# Takes a lost drive out of the guest's PCI tree.
# Arguments: the drive's address (0000:01:00.0).
remove() { echo 1 >"/sys/bus/pci/devices/$1/remove"; }

step "remove" remove "$1"
step "no longer there" test ! -e "/sys/bus/pci/devices/$1"

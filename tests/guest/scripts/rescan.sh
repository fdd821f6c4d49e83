# Looks for PCI functions anew.
rescan() { echo 1 >/sys/bus/pci/rescan; }

step "rescan" rescan

# Resets a function, and has the driver attach it anew.
# Argument: the function's address (0000:01:00.0).
function=/sys/bus/pci/devices/$1

reset() { echo 1 >"$function/reset"; }
remove() { echo 1 >"$function/remove"; }
rescan() { echo 1 >/sys/bus/pci/rescan; }

step "reset" reset
step "remove" remove
step "rescan" rescan

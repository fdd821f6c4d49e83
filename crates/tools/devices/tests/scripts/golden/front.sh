#!/bin/sh
# The bridge front of tsn-network.toml, by farlane tsn export.
#   sh front.sh        sets up the interfaces; a second time changes nothing
#   sh front.sh undo   removes the settings
# Needs root, iproute2, and interfaces with a transmit queue for each traffic class.
# Replaces the queueing disciplines and filters of the interfaces.
set -eu

# Interfaces, named after the nodes at the other ends of their cables.
PORT_pedal=${PORT_pedal:-pedal}
PORT_camera=${PORT_camera:-camera}
PORT_radar=${PORT_radar:-radar}
PORT_tester=${PORT_tester:-tester}
PORT_rear=${PORT_rear:-rear}
# The bridge that has them as ports.
BRIDGE=${BRIDGE:-front}

quietly() { "$@" 2>/dev/null || :; }

# The kernel's priority of frames that a port receives, by their tags.
priorities() {
    for priority in 0 1 2 3 4 5 6 7; do
        tc filter add dev "$1" ingress protocol 802.1Q pref $((40000 + $priority)) flower vlan_prio $priority action skbedit priority $priority
    done
}

undo() {
    quietly tc qdisc del dev "$PORT_pedal" root
    quietly tc qdisc del dev "$PORT_camera" root
    quietly tc qdisc del dev "$PORT_radar" root
    quietly tc qdisc del dev "$PORT_tester" root
    quietly tc qdisc del dev "$PORT_rear" root
    quietly ethtool --set-mm "$PORT_rear" tx-enabled off verify-enabled off
    quietly ethtool --set-mm "$PORT_rear" pmac-enabled off
    quietly tc qdisc del dev "$PORT_pedal" clsact
    quietly tc qdisc del dev "$PORT_camera" clsact
    quietly tc qdisc del dev "$PORT_radar" clsact
    quietly tc qdisc del dev "$PORT_tester" clsact
    quietly tc qdisc del dev "$PORT_rear" clsact
}

set_up() {
    # To pedal
    tc qdisc replace dev "$PORT_pedal" parent root handle 100 mqprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 hw 1
    # To camera
    tc qdisc replace dev "$PORT_camera" parent root handle 100 mqprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 hw 1
    # To radar
    tc qdisc replace dev "$PORT_radar" parent root handle 100 mqprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 hw 1
    # To tester
    tc qdisc replace dev "$PORT_tester" parent root handle 100 mqprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 hw 1
    # To rear
    ethtool --set-mm "$PORT_rear" pmac-enabled on tx-enabled on verify-enabled on verify-time 10 tx-min-frag-size 60
    tc qdisc replace dev "$PORT_rear" parent root handle 100 stab overhead 24 taprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 base-time 10000 sched-entry H 80 50000 sched-entry R ff 950000 cycle-time 1000000 fp P P P P P P P E flags 0x2
    # Not set: port to rear: shaper ats of class 4
    tc qdisc replace dev "$PORT_rear" parent 100:6 handle 106 cbs idleslope 40000 sendslope -60000 hicredit 1851 locredit -926 offload 1
    # From pedal
    tc qdisc replace dev "$PORT_pedal" clsact
    priorities "$PORT_pedal"
    # From camera
    tc qdisc replace dev "$PORT_camera" clsact
    priorities "$PORT_camera"
    # From radar
    tc qdisc replace dev "$PORT_radar" clsact
    priorities "$PORT_radar"
    # From tester
    tc qdisc replace dev "$PORT_tester" clsact
    priorities "$PORT_tester"
    # From rear
    tc qdisc replace dev "$PORT_rear" clsact
    priorities "$PORT_rear"
}

case ${1:-} in
"")
    undo
    set_up
    ;;
undo) undo ;;
*)
    echo "usage: $0 [undo]" >&2
    exit 2
    ;;
esac

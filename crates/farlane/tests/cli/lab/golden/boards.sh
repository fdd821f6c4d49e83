# Bridge: macvtap

# On the talker's board, as root: eth1 is the grandmaster
ptp4l -i eth1 -f /usr/share/doc/linuxptp/configs/gPTP.cfg --step_threshold=1 &
phc2sys -s eth1 -c CLOCK_REALTIME --step_threshold=1 --transportSpecific=1 -w &
sleep 1
pmc -u -b 0 -t 1 'SET GRANDMASTER_SETTINGS_NP clockClass 248 clockAccuracy 0xfe offsetScaledLogVariance 0xffff currentUtcOffset 37 leap61 0 leap59 0 currentUtcOffsetValid 1 ptpTimescale 1 timeTraceable 1 frequencyTraceable 0 timeSource 0xa0'
tc qdisc replace dev eth1 parent root handle 100 taprio num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7 base-time 0 sched-entry S b7 10000000 sched-entry S 88 10000000 cycle-time 20000000 flags 0x2

# On the bridge's board, as root
ptp4l -i eth2 -f /usr/share/doc/linuxptp/configs/gPTP.cfg --step_threshold=1 &
phc2sys -s eth2 -c CLOCK_REALTIME --step_threshold=1 --transportSpecific=1 -w &
ip link add link eth2 name tap0 type macvtap mode bridge
ip link set tap0 address 02:00:5e:10:00:02 up
sh -c 'exec qemu-system-x86_64 … -netdev tap,id=n0,fd=3,vhost=on -device virtio-net-pci,netdev=n0,mac=02:00:5e:10:00:02 3<>/dev/tap$(cat /sys/class/net/tap0/ifindex)'

# In the guest, as root
ip link set eth0 up promisc on; farlane latency listen raw:eth0 --reflect --insecure --repeat

# On the talker's board again
farlane latency talk raw:eth1,02:00:5e:10:00:02 --reflect --priority 3 --vlan 5 --interval 20000000ns --count 100 --allow-losses 100 --base 0 --cycle 20000000ns --window 10000000ns,10000000ns --outside --offset 5000000ns --json --label 'macvtap, gates' --hardware eth1 >macvtap-gates-talk.json
farlane latency talk raw:eth1,02:00:5e:10:00:02 --reflect --priority 3 --vlan 5 --interval 20000000ns --count 500 --allow-losses 500 --base 0 --cycle 20000000ns --window 10000000ns,10000000ns --offset 12000000ns --json --label 'macvtap, idle' --hardware eth1 >macvtap-idle-talk.json


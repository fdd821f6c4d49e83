# ptp4l at both ends of the cable, with stamps of the kernel; it sets no clock, as
# both ends have one. The listener's follows the talker's.
follow() {
    for end in "talker near 1" "listener far 200"; do
        set -- $end
        cat >"/run/$2.cfg" <<END
[global]
time_stamping software
free_running 1
network_transport L2
priority1 $3
logAnnounceInterval -3
logSyncInterval -3
logMinDelayReqInterval -3
uds_address /run/$2
uds_ro_address /run/$2-ro
END
        ip netns exec "$1" ptp4l -i "$2" -f "/run/$2.cfg" >"/run/$2.log" 2>&1 &
    done
    until_true 30 follows || die "$(cat /run/near.log /run/far.log)"
}

follows() {
    pmc -u -b 0 -s /run/far 'GET TIME_STATUS_NP' | grep 'gmIdentity *02005e.fffe.005301'
}

step "ptp4l follows ptp4l" follow

//! The talker's and the listener's interfaces, and the treatment of their frames on the way.

use super::cables::Far;
use super::place::{FAR, FAR_TAGGED, NEAR, NEAR_TAGGED, Place};
use super::step::Steps;
use tsn::GateControlList;
use tsn::taprio;

/// Adds the steps that give both interfaces their addresses: without a tag for stress, and in the
/// VLAN for the drive, if there is one. In the VLAN, SO_PRIORITY becomes the tag's priority (PCP).
pub fn addresses(vlan: Option<u16>, far: &Far, place: &Place, steps: &mut Steps) {
    let talker = (place.talker(), "near", NEAR, NEAR_TAGGED);
    let listener = (place.listener(), "far", FAR, FAR_TAGGED);
    let listener = Some(listener).filter(|_| *far == Far::Namespace);
    for (namespace, name, plain, tagged) in [Some(talker), listener].into_iter().flatten() {
        steps.run(format!("ip -n {namespace} link set lo up"));
        steps.run(format!("ip -n {namespace} link set {name} up"));
        steps.run(format!("ip -n {namespace} address add {plain}/24 dev {name}"));
        let Some(vlan) = vlan else { continue };
        steps.run(format!(
            "ip -n {namespace} link add link {name} name {name}.{vlan} type vlan id {vlan} \
             egress-qos-map 1:1 2:2 3:3 4:4 5:5 6:6 7:7"
        ));
        steps.run(format!("ip -n {namespace} link set {name}.{vlan} up"));
        steps.run(format!("ip -n {namespace} address add {tagged}/24 dev {name}.{vlan}"));
    }
    if let Far::Guest { mac, .. } = far {
        // The load is sent to this address even if the listener does not have it.
        let talker = place.talker();
        steps.run(format!("ip -n {talker} neighbour add {FAR} lladdr {mac} dev near"));
    }
}

/// Adds the steps that install gates in front of an interface. The kernel's priority
/// (`skb->priority`) selects a frame's gate. A veth pair resets this priority (`skb_scrub_packet`
/// in Linux), so the bridge's ingress `from` sets it again from the tag.
pub fn gates(
    list: &GateControlList,
    (namespace, device): (&str, &str),
    from: Option<&str>,
    steps: &mut Steps,
) {
    let options = taprio::Options::new(device, false);
    steps.run(format!("ip netns exec {namespace} {}", taprio::command(list, &options)));
    let Some(from) = from else { return };
    steps.run(format!("tc -n {namespace} qdisc add dev {from} clsact"));
    for priority in 1..8 {
        steps.run(format!(
            "tc -n {namespace} filter add dev {from} ingress protocol 802.1Q flower \
             vlan_prio {priority} action skbedit priority {priority}"
        ));
    }
}

/// Adds the steps that drop every `nth` frame of the talker (tc-gact in `man tc`, `random determ`).
pub fn losses(nth: u32, place: &Place, steps: &mut Steps) {
    let talker = place.talker();
    steps.run(format!("tc -n {talker} qdisc add dev near clsact"));
    steps.run(format!(
        "tc -n {talker} filter add dev near egress matchall action gact pass random determ drop \
         {nth}"
    ));
}

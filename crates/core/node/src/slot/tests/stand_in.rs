//! The registers of an NVMe controller whose link is down, as drivers use them.

use super::*;
use wire::nvme::register::{AQA, ASQ, CAP, CC, CSTS, VS};

impl World {
    /// A driver of an NVMe controller.
    fn of_controller() -> Self {
        let mut world = Self::new();
        world.slot = world.slot.with_snapshot(Some(snapshot()));
        world.slot.set_other(true);
        world
    }

    fn register(&mut self, offset: u64) -> u32 {
        self.slot.bar_read(Instant::ZERO, 1, 0, (offset, 4));
        self.settle();
        let (_, bytes) = self.replies.pop().expect("an answer");
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.slot.bar_write(0, offset, &value.to_le_bytes());
        self.settle();
    }

    /// The writes to the BAR since the last call.
    fn written(&mut self) -> Vec<(u64, u64)> {
        let written = |request: Request| match request {
            Request::MemoryWrite { address, value, .. } => Some((address - 0x8000, value)),
            _ => None,
        };
        std::mem::take(&mut self.requests).into_iter().filter_map(written).collect()
    }
}

/// As Linux resets a controller: nvme_dev_disable, then nvme_pci_enable and nvme_enable_ctrl.
#[test]
fn a_reset_waits_for_the_link_and_goes_on_with_the_drive() {
    let mut world = World::of_controller();
    world.write(CC, 0x46_0001);
    world.lose();
    world.written();
    assert_eq!(world.register(CSTS), 0b11, "ready, and failed");
    world.write(0x1000, 5);
    world.write(CC, 0x46_0000);
    assert_eq!(world.register(CSTS), 0, "disabled");
    assert_eq!((world.register(CAP), world.register(CAP + 4)), (0x1401_03ff, 0x20));
    assert_eq!(world.register(VS), 0x1_0400);
    world.write(AQA, 0x1f_001f);
    world.write(ASQ, 0x5000);
    world.write(ASQ + 4, 1);
    world.write(CC, 0x46_0001);
    assert_eq!((world.register(CC), world.register(CSTS)), (0x46_0001, 0), "not ready");
    // Lost again before it is set up.
    world.find(SAME);
    world.device = None;
    world.lose();
    assert_eq!(world.register(CSTS), 0);
    assert_eq!(world.written(), [], "nothing reaches the function");
    world.find(SAME);
    world.settle();
    assert_eq!((world.slot.condition(), world.presence), (Condition::Attached, Presence::Present));
    let set = [(AQA, 0x1f_001f), (ASQ, 0x1_0000_5000), (0x30, 0), (CC, 0x46_0001)];
    assert_eq!(world.written(), set);
    assert_eq!(world.client.memory, [], "no event reports a reset that the driver made itself");
}

#[test]
fn a_driver_that_does_nothing_meanwhile_has_its_registers_to_set() {
    let mut world = World::of_controller();
    world.write(CC, 0x46_0001);
    world.lose();
    world.written();
    world.find(SAME);
    world.settle();
    assert_eq!(world.written(), [], "the controller is disabled, and its driver hears of it");
    // Later losses show a failed controller only if the driver has enabled it.
    world.write(CC, 0);
    world.lose();
    assert_eq!(world.register(CSTS), 0);
}

#[test]
fn a_driver_without_another_controller_sees_no_function() {
    let mut world = World::of_controller();
    world.slot.set_other(false);
    world.lose();
    assert_eq!((world.slot.condition(), world.presence), (Condition::LinkDown, Presence::Absent));
}

#[test]
fn a_shutdown_ends_at_once() {
    let mut world = World::of_controller();
    world.write(CC, 0x46_0001);
    world.lose();
    world.write(CC, 0x46_4001);
    assert_eq!(world.register(CSTS) >> 2 & 3, 2, "SHST: complete");
}

#[test]
fn a_read_under_way_is_answered_when_the_link_is_lost() {
    let mut world = World::of_controller();
    world.write(CC, 0x46_0001);
    world.slot.bar_read(Instant::ZERO, 1, 0, (CSTS, 4));
    world.turn();
    world.device = None;
    world.lose();
    world.settle();
    assert_eq!(world.replies, [(1, vec![3, 0, 0, 0])]);
}

#[test]
fn a_driver_with_another_controller_hears_of_the_loss_at_once() {
    let mut world = World::of_controller();
    world.slot.set_msix(true);
    world.settle();
    let event = ResetEvent { address: 0x4000, entry: [7; 16] };
    world.slot.link_down(Some(event), &world.client);
    world.slot.report_loss(Instant::ZERO, &mut world.client);
    assert_eq!(world.client.memory, [(0x4000, vec![7; 16])]);
    assert_eq!(world.client.signals, [0]);
    world.find(SAME);
    world.settle();
    assert_eq!(world.client.memory.len(), 1, "reported once");
}

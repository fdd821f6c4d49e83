//! Tests of doorbells in a page that the client maps.

use super::*;
use crate::doorbell::{self, Doorbells};

fn info(testbed: &mut Testbed, argsz: u32) -> (RegionInfo, Option<Mapping>) {
    let payload = encoded(|out| RegionInfo { argsz, ..RegionInfo::default() }.encode_request(out));
    let reply = testbed.exchange(Command::DeviceGetRegionInfo, &payload, &[]);
    let info = RegionInfo::decode(&reply.payload).unwrap();
    assert_eq!(info.flags, 0xf);
    let mapping = reply.fds.first().map(|fd| {
        let area = info.areas[0];
        Mapping::new(fd.as_fd(), info.offset + area.offset, area.size, true, true).unwrap()
    });
    (info, mapping)
}

/// Offsets and values of the doorbell writes since the last call.
fn rung(testbed: &mut Testbed) -> Vec<(u64, u32)> {
    testbed.server.session.poll_doorbells();
    testbed.pump();
    testbed
        .take_actions()
        .into_iter()
        .map(|action| match action {
            Action::BarWrite { bar: 0, offset, data } => {
                (offset, u32::from_le_bytes(data[..].try_into().unwrap()))
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn stores_in_the_page_are_writes_to_the_bar() {
    let mut testbed = Testbed::with(shared_endpoint());
    // QEMU first requests only the structure without areas, to get the full size.
    let (short, none) = info(&mut testbed, 32);
    assert!(short.argsz > 32 && short.areas.is_empty() && none.is_none());
    let (whole, page) = info(&mut testbed, short.argsz);
    assert_eq!(whole.areas, [SparseArea { offset: 0x1000, size: 0x1000 }]);
    let page = page.unwrap();
    assert_eq!(rung(&mut testbed), []);
    page.write(8, &5_u32.to_le_bytes()).unwrap();
    page.write(0, &0_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), [(0x1000, 0), (0x1008, 5)]);
    assert_eq!(rung(&mut testbed), []);
    // A repeated value becomes a write again; of two stores only the last becomes a write.
    page.write(8, &5_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), [(0x1008, 5)]);
    page.write(8, &6_u32.to_le_bytes()).unwrap();
    page.write(8, &7_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), [(0x1008, 7)]);
    // A store after the polled bytes has no effect.
    page.write(520, &1_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), []);
}

#[test]
fn every_pair_with_a_vector_is_polled() {
    for (vectors, polled) in [(1, 520), (65, 520), (66, 528), (1024, 4096)] {
        let doorbells = Doorbells::new(vectors).unwrap();
        let length = doorbell::LENGTH;
        let page = Mapping::new(doorbells.file(), doorbell::OFFSET, length, true, true).unwrap();
        let mut last = 0;
        for at in (0..length as usize).step_by(4) {
            page.write(at, &1_u32.to_le_bytes()).unwrap();
        }
        doorbells.poll(|action| {
            let Action::BarWrite { offset, .. } = action else { panic!("{action:?}") };
            last = offset;
        });
        assert_eq!(last, 0x1000 + polled - 4, "{vectors} vectors");
    }
}

#[test]
fn trapped_writes_reach_the_bar_too_and_in_order() {
    let mut testbed = Testbed::with(shared_endpoint());
    let page = info(&mut testbed, 4096).1.unwrap();
    page.write(4, &9_u32.to_le_bytes()).unwrap();
    // The client made the store before it sent the message; the server has not yet polled the page.
    testbed.send(&message(1, 10, &access(0, 0x1000, 4, &[3, 0, 0, 0]), true), &[]);
    assert_eq!(rung(&mut testbed), [(0x1004, 9), (0x1000, 3)]);
}

#[test]
fn reset_discards_rung_doorbells() {
    let mut testbed = Testbed::with(shared_endpoint());
    let page = info(&mut testbed, 4096).1.unwrap();
    testbed.answer = false;
    testbed.post(Command::DeviceReset, &[], &[]);
    page.write(4, &9_u32.to_le_bytes()).unwrap();
    let [Action::Reset { token, .. }] = testbed.take_actions()[..] else { panic!() };
    testbed.server.reply(testbed.now, token, Ok(&[]));
    assert_eq!(rung(&mut testbed), []);
}

#[test]
fn page_of_previous_client_rings_nothing() {
    let mut testbed = Testbed::with(shared_endpoint());
    let page = info(&mut testbed, 4096).1.unwrap();
    page.write(4, &9_u32.to_le_bytes()).unwrap();
    testbed.client = Client::connect(testbed.server.path());
    testbed.pump();
    testbed.greet(&None);
    testbed.take_actions();
    assert_eq!(rung(&mut testbed), []);
    // The previous client still has the old page mapped; a store has no effect.
    page.write(4, &9_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), []);
    let new = info(&mut testbed, 4096).1.unwrap();
    new.write(8, &7_u32.to_le_bytes()).unwrap();
    assert_eq!(rung(&mut testbed), [(0x1008, 7)]);
}

#[test]
fn the_page_cannot_be_cut_by_the_client() {
    let mut testbed = Testbed::with(shared_endpoint());
    let payload =
        encoded(|out| RegionInfo { argsz: 4096, ..RegionInfo::default() }.encode_request(out));
    let reply = testbed.exchange(Command::DeviceGetRegionInfo, &payload, &[]);
    assert!(rustix::fs::ftruncate(&reply.fds[0], 0).is_err());
}

#[test]
fn doorbells_rung_while_function_is_absent_are_discarded() {
    let mut testbed = Testbed::with(shared_endpoint());
    let page = info(&mut testbed, 4096).1.unwrap();
    for presence in [Presence::Absent, Presence::ConfigOnly] {
        testbed.server.set_presence(testbed.now, presence);
        page.write(8, &5_u32.to_le_bytes()).unwrap();
        assert_eq!(rung(&mut testbed), []);
        testbed.server.set_presence(testbed.now, Presence::Present);
        assert_eq!(rung(&mut testbed), []);
        page.write(8, &6_u32.to_le_bytes()).unwrap();
        assert_eq!(rung(&mut testbed), [(0x1008, 6)]);
    }
}

//! DMA through shared ranges and by message.

use super::*;

fn range(address: u64, size: u64) -> DmaMap {
    DmaMap { flags: 3, offset: 0, address, size }
}

fn unmap(
    testbed: &mut Testbed,
    flags: u32,
    address: u64,
    size: u64,
) -> Result<DmaUnmap, Option<u32>> {
    let payload = encoded(|out| DmaUnmap { argsz: 24, flags, address, size }.encode(out));
    // SPDK sends the descriptor again.
    let event = eventfd();
    let reply = testbed.exchange(Command::DmaUnmap, &payload, &[event.as_fd()]);
    DmaUnmap::decode(&reply.payload).map_err(|_| reply.header.error)
}

#[test]
fn shared_ranges_are_reached_at_once() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x10000).unwrap();
    let map = DmaMap { offset: 0x2000, ..range(0x7f00_0000_0000, 0x4000) };
    assert_eq!(testbed.map(map, Some(&ram.file)), None);
    let now = testbed.now;
    let at = map.address + 0x10;
    assert_eq!(testbed.server.dma_write(now, at, &[1, 2, 3, 4]), Access::Done(()));
    let mut there = [0; 4];
    ram.mapping.read(0x2010, &mut there).unwrap();
    assert_eq!(there, [1, 2, 3, 4]);
    assert_eq!(
        testbed.server.dma_read(now, at - 1, 3),
        Access::Done(bytes::Bytes::from_static(&[0, 1, 2]))
    );
    let fault = Access::Failed(DmaError::Fault);
    assert_eq!(testbed.server.dma_read(now, map.address + 0x3fff, 2), fault);
    assert_eq!(testbed.server.dma_write(now, 0, &[0]), Access::Failed(DmaError::Fault));
    assert_eq!(testbed.server.session.counters.dma_faults, 2);
    assert_eq!(unmap(&mut testbed, 0, map.address, 0x4000).unwrap().address, map.address);
    assert_eq!(testbed.server.dma_read(now, at, 1), fault);
}

#[test]
fn maps_are_checked() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x4000).unwrap();
    assert_eq!(testbed.map(range(0x1000, 0x1000), Some(&ram.file)), None);
    for (map, errno) in [
        (range(0x1800, 0x1000), 17),
        (range(0, 0x2000), 17),
        (range(0x1000, 0x1000), 17),
        (range(0x8000, 0), 22),
        (range(u64::MAX, 2), 22),
        (range(0x8000, 0x5000), 22),
        (DmaMap { offset: u64::MAX - 0xfff, ..range(0x8000, 0x1000) }, 22),
        (DmaMap { flags: 0x13, ..range(0x8000, 0x1000) }, 22),
    ] {
        assert_eq!(testbed.map(map, Some(&ram.file)), Some(errno), "{map:?}");
    }
    // Two descriptors.
    let payload = encoded(|out| range(0x8000, 0x1000).encode(out));
    let two = [ram.file.as_fd(), ram.file.as_fd()];
    assert_eq!(testbed.errno(Command::DmaMap, &payload, &two), Some(22));
    assert_eq!(testbed.server.session.memory.ranges(), 1);

    assert_eq!(unmap(&mut testbed, 0, 0x1000, 0x800), Err(Some(2)));
    assert_eq!(unmap(&mut testbed, 1, 0x1000, 0x1000), Err(Some(22)));
    assert_eq!(testbed.map(range(0x8000, 0x1000), None), None);
    assert!(unmap(&mut testbed, 2, 0, 0).is_ok());
    assert_eq!(testbed.server.session.memory.ranges(), 0);
    assert_eq!(testbed.map(range(0x1000, 0x1000), Some(&ram.file)), None);
}

#[test]
fn a_read_only_range_is_not_written() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x1000).unwrap();
    let map = DmaMap { flags: 1, ..range(0x1000, 0x1000) };
    assert_eq!(testbed.map(map, Some(&ram.file)), None);
    let fault = Access::Failed(DmaError::Fault);
    assert_eq!(testbed.server.dma_write(testbed.now, 0x1000, &[1]), fault);
    assert!(matches!(testbed.server.dma_read(testbed.now, 0x1000, 1), Access::Done(_)));
}

/// Takes a DMA message from the client's socket.
fn dma_message(testbed: &Testbed, command: Command) -> (Header, DmaAccess, Vec<u8>) {
    let got = testbed.client.receive();
    assert_eq!(got.header.command, command.number());
    let access = DmaAccess::decode(&got.payload).unwrap();
    (got.header, access, got.payload[DmaAccess::LENGTH..].to_vec())
}

fn answer(testbed: &mut Testbed, header: &Header, payload: &[u8]) {
    let mut bytes = header.reply(payload.len()).encode().to_vec();
    bytes.extend_from_slice(payload);
    testbed.send(&bytes, &[]);
}

fn read_answer(access: DmaAccess, data: &[u8]) -> Vec<u8> {
    let mut payload = encoded(|out| access.encode(out));
    payload.extend_from_slice(data);
    payload
}

#[test]
fn other_ranges_are_reached_by_message() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    let now = testbed.now;
    let Access::Pending(read) = testbed.server.dma_read(now, 0x1010, 8) else { panic!() };
    let Access::Pending(write) = testbed.server.dma_write(now, 0x1020, &[1, 2, 3]) else {
        panic!()
    };
    assert_ne!(read, write);
    let (first, asked, _) = dma_message(&testbed, Command::DmaRead);
    assert_eq!((asked.address, asked.count), (0x1010, 8));
    let (second, asked_write, data) = dma_message(&testbed, Command::DmaWrite);
    assert_eq!((asked_write.address, asked_write.count, &data[..]), (0x1020, 3, &[1, 2, 3][..]));
    assert_ne!(first.id, second.id);
    // In reverse order; QEMU answers the write without payload.
    answer(&mut testbed, &second, &[]);
    assert_eq!(
        testbed.take_actions(),
        [Action::DmaDone { id: write, result: Ok(bytes::Bytes::new()) }]
    );
    answer(&mut testbed, &first, &read_answer(asked, &[9; 8]));
    let nines = bytes::Bytes::from_static(&[9; 8]);
    assert_eq!(testbed.take_actions(), [Action::DmaDone { id: read, result: Ok(nines) }]);
    answer(&mut testbed, &first, &[]);
    assert_eq!(testbed.server.session.counters.stray_replies, 1);
}

#[test]
fn messages_are_split_to_what_the_client_takes() {
    let mut testbed = Testbed::silent(testing::plain_endpoint());
    let capabilities =
        Capabilities { max_data_xfer_size: Some(4096), ..bench_capabilities().unwrap() };
    testbed.greet(&Some(capabilities));
    testbed.take_actions();
    let ram = Shared::new("ram", 0, 0x1000).unwrap();
    ram.mapping.write(0, &[7; 0x1000]).unwrap();
    // A shared page between two that are not shared.
    assert_eq!(testbed.map(range(0x1000, 0x2000), None), None);
    assert_eq!(testbed.map(range(0x3000, 0x1000), Some(&ram.file)), None);
    assert_eq!(testbed.map(range(0x4000, 0x1000), None), None);
    let Access::Pending(id) = testbed.server.dma_read(testbed.now, 0x1800, 0x3000) else {
        panic!()
    };
    for (address, count) in [(0x1800, 0x1000), (0x2800, 0x800), (0x4000, 0x800)] {
        let (header, asked, _) = dma_message(&testbed, Command::DmaRead);
        assert_eq!((asked.address, asked.count), (address, count));
        assert_eq!(testbed.take_actions(), []);
        let data = vec![(address >> 8) as u8; count as usize];
        answer(&mut testbed, &header, &read_answer(asked, &data));
    }
    let [Action::DmaDone { id: done, result: Ok(ref bytes) }] = testbed.take_actions()[..] else {
        panic!()
    };
    assert_eq!((done, bytes.len()), (id, 0x3000));
    assert_eq!([bytes[0], bytes[0xfff], bytes[0x1000]], [0x18, 0x18, 0x28]);
    assert_eq!([bytes[0x1800], bytes[0x27ff], bytes[0x2800]], [7, 7, 0x40]);

    assert!(matches!(
        testbed.server.dma_write(testbed.now, 0x2800, &[5; 0x1000]),
        Access::Pending(_)
    ));
    let (_, asked, data) = dma_message(&testbed, Command::DmaWrite);
    assert_eq!((asked.address, asked.count, data.len()), (0x2800, 0x800, 0x800));
    assert_eq!(ram.mapping.load(0x7fc), Some(0x0505_0505));
    assert!(testbed.client.is_quiet());
    assert_eq!(
        testbed.server.dma_write(testbed.now, 0x1000, &vec![0; MAX_DMA + 1]),
        Access::Failed(DmaError::TooLong)
    );
}

#[test]
fn refusals_lies_and_silence_are_failures() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    let failed = |testbed: &mut Testbed, error| {
        let [Action::DmaDone { result, .. }] = &testbed.take_actions()[..] else { panic!() };
        assert_eq!(*result, Err(error));
    };
    let ask = |testbed: &mut Testbed| {
        assert!(matches!(testbed.server.dma_read(testbed.now, 0x1000, 4), Access::Pending(_)));
        dma_message(testbed, Command::DmaRead)
    };
    let (header, ..) = ask(&mut testbed);
    let refusal = header.error_reply(std::num::NonZeroU32::new(14).unwrap());
    testbed.send(&refusal.encode(), &[]);
    failed(&mut testbed, DmaError::Refused);
    let (header, asked, _) = ask(&mut testbed);
    answer(&mut testbed, &header, &read_answer(asked, &[0; 3]));
    failed(&mut testbed, DmaError::Refused);
    let (header, asked, _) = ask(&mut testbed);
    let elsewhere = DmaAccess { address: 0, ..asked };
    answer(&mut testbed, &header, &read_answer(elsewhere, &[0; 4]));
    failed(&mut testbed, DmaError::Refused);
    // SPDK never answers.
    ask(&mut testbed);
    assert_eq!(testbed.server.session.deadline(), Some(testbed.now + DMA_DEADLINE));
    testbed.now += DMA_DEADLINE;
    testbed.pump();
    failed(&mut testbed, DmaError::Timeout);
    assert_eq!(testbed.server.session.counters.dma_faults, 4);
}

#[test]
fn what_is_in_flight_is_bounded() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    let mut started = 0;
    while matches!(testbed.server.dma_read(testbed.now, 0x1000, 4), Access::Pending(_)) {
        started += 1;
        assert!(started < 10_000);
    }
    assert_eq!(testbed.server.dma_read(testbed.now, 0x1000, 4), Access::Full);
    assert_eq!(testbed.server.dma_write(testbed.now, 0x1000, &[0]), Access::Full);
    let (header, asked, _) = dma_message(&testbed, Command::DmaRead);
    answer(&mut testbed, &header, &read_answer(asked, &[0; 4]));
    assert!(matches!(testbed.server.dma_write(testbed.now, 0x1000, &[0]), Access::Pending(_)));
}

#[test]
fn a_region_access_does_not_wait_for_dma() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    assert!(matches!(testbed.server.dma_write(testbed.now, 0x1000, &[1]), Access::Pending(_)));
    dma_message(&testbed, Command::DmaWrite);
    // Without an answer:
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn dma_answers_do_not_wait_for_a_region_access() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    testbed.answer = false;
    testbed.send(&message(1, 9, &access(0, 0, 4, &[]), false), &[]);
    assert!(matches!(testbed.take_actions()[..], [Action::BarRead { .. }]));
    assert!(matches!(testbed.server.dma_read(testbed.now, 0x1000, 4), Access::Pending(_)));
    let (header, asked, _) = dma_message(&testbed, Command::DmaRead);
    answer(&mut testbed, &header, &read_answer(asked, &[3; 4]));
    assert!(matches!(testbed.take_actions()[..], [Action::DmaDone { .. }]));
}

#[test]
fn an_interrupt_waits_for_the_writes_before_it_and_no_others() {
    let mut testbed = Testbed::new();
    assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
    let event = eventfd();
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 1, 1), &[event.as_fd()]), None);
    let now = testbed.now;
    let write = |testbed: &mut Testbed| {
        assert!(matches!(testbed.server.dma_write(now, 0x1000, &[1]), Access::Pending(_)));
    };
    write(&mut testbed);
    write(&mut testbed);
    testbed.server.session.signal(1);
    write(&mut testbed);
    testbed.server.session.signal(1);
    write(&mut testbed);
    testbed.server.session.signal(1);
    let headers: Vec<_> = (0..4).map(|_| dma_message(&testbed, Command::DmaWrite).0).collect();
    let rung_after: Vec<_> = [1, 0, 2, 3]
        .into_iter()
        .map(|at: usize| {
            answer(&mut testbed, &headers[at], &[]);
            rung(&event)
        })
        .collect();
    // The second and the third were merged.
    assert_eq!(rung_after, [0, 1, 0, 1]);
    testbed.server.session.signal(1);
    assert_eq!(rung(&event), 1);
    // A write that is never answered does not hold interrupts for ever.
    write(&mut testbed);
    testbed.server.session.signal(1);
    assert_eq!(rung(&event), 0);
    testbed.now += DMA_DEADLINE;
    testbed.pump();
    assert_eq!(rung(&event), 1);
}

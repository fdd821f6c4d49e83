//! Tests of DMA to mapped ranges and by message.

use super::*;

fn range(address: u64, size: u64) -> DmaMap {
    DmaMap { flags: 3, offset: 0, address, size }
}

impl Testbed {
    /// A testbed whose client has a range at 1000h without a file, which is accessed by message.
    fn by_message() -> Self {
        let mut testbed = Self::new();
        assert_eq!(testbed.map(range(0x1000, 0x1000), None), None);
        testbed
    }

    fn unmap(&mut self, flags: u32, address: u64, size: u64) -> Result<DmaUnmap, Option<u32>> {
        let payload = encoded(|out| DmaUnmap { argsz: 24, flags, address, size }.encode(out));
        // SPDK adds a descriptor to DMA_UNMAP.
        let reply = self.exchange(Command::DmaUnmap, &payload, &[eventfd().as_fd()]);
        DmaUnmap::decode(&reply.payload).map_err(|_| reply.header.error)
    }

    fn dma_read(&mut self, address: u64, length: usize) -> Access<Bytes> {
        self.server.dma_read(self.now, address, length)
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Access<()> {
        self.server.dma_write(self.now, address, data)
    }

    /// Receives a DMA message at the client: header, address and count, data.
    fn dma_message(&self, command: Command) -> (Header, DmaAccess, Vec<u8>) {
        let got = self.client.receive();
        assert_eq!(got.header.command, command.number());
        let access = DmaAccess::decode(&got.payload).unwrap();
        (got.header, access, got.payload[DmaAccess::LENGTH..].to_vec())
    }

    fn answer(&mut self, header: &Header, payload: &[u8]) {
        let bytes = [&header.reply(payload.len()).encode()[..], payload].concat();
        self.send(&bytes, &[]);
    }

    fn answer_read(&mut self, header: &Header, access: DmaAccess, data: &[u8]) {
        self.answer(header, &[encoded(|out| access.encode(out)), data.to_vec()].concat());
    }
}

/// The ID of an access that is pending.
fn pending<T: std::fmt::Debug>(access: Access<T>) -> DmaId {
    match access {
        Access::Pending(id) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn shared_ranges_are_reached_at_once() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x10000).unwrap();
    let map = DmaMap { offset: 0x2000, ..range(0x7f00_0000_0000, 0x4000) };
    assert_eq!(testbed.map(map, Some(&ram.file)), None);
    let at = map.address + 0x10;
    assert_eq!(testbed.dma_write(at, &[1, 2, 3, 4]), Access::Done(()));
    assert_eq!(ram.mapping.load(0x2010), Some(0x0403_0201));
    assert_eq!(testbed.dma_read(at - 1, 3), Access::Done(Bytes::from_static(&[0, 1, 2])));
    let fault = Access::Failed(DmaError::Fault);
    assert_eq!(testbed.dma_read(map.address + 0x3fff, 2), fault);
    assert_eq!(testbed.dma_write(0, &[0]), Access::Failed(DmaError::Fault));
    assert_eq!(testbed.server.session.counters.dma_faults, 2);
    assert_eq!(testbed.unmap(0, map.address, 0x4000).unwrap().address, map.address);
    assert_eq!(testbed.dma_read(at, 1), fault);
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
    // A DMA_MAP message with two descriptors is refused.
    let payload = encoded(|out| range(0x8000, 0x1000).encode(out));
    let two = [ram.file.as_fd(), ram.file.as_fd()];
    assert_eq!(testbed.errno(Command::DmaMap, &payload, &two), Some(22));
    assert_eq!(testbed.server.session.memory.ranges(), 1);

    assert_eq!(testbed.unmap(0, 0x1000, 0x800), Err(Some(2)));
    assert_eq!(testbed.unmap(1, 0x1000, 0x1000), Err(Some(22)));
    assert_eq!(testbed.map(range(0x8000, 0x1000), None), None);
    assert!(testbed.unmap(2, 0, 0).is_ok());
    assert_eq!(testbed.server.session.memory.ranges(), 0);
    assert_eq!(testbed.map(range(0x1000, 0x1000), Some(&ram.file)), None);
}

#[test]
fn a_read_only_range_is_not_written() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x1000).unwrap();
    let map = DmaMap { flags: 1, ..range(0x1000, 0x1000) };
    assert_eq!(testbed.map(map, Some(&ram.file)), None);
    assert_eq!(testbed.dma_write(0x1000, &[1]), Access::Failed(DmaError::Fault));
    assert!(matches!(testbed.dma_read(0x1000, 1), Access::Done(_)));
}

#[test]
fn other_ranges_are_reached_by_message() {
    let mut testbed = Testbed::by_message();
    let read = pending(testbed.dma_read(0x1010, 8));
    let write = pending(testbed.dma_write(0x1020, &[1, 2, 3]));
    assert_ne!(read, write);
    let (first, asked, _) = testbed.dma_message(Command::DmaRead);
    assert_eq!((asked.address, asked.count), (0x1010, 8));
    let (second, asked_write, data) = testbed.dma_message(Command::DmaWrite);
    assert_eq!((asked_write.address, asked_write.count, &data[..]), (0x1020, 3, &[1, 2, 3][..]));
    assert_ne!(first.id, second.id);
    // The messages are answered in reverse order. As by QEMU, the reply to the write has no
    // payload.
    testbed.answer(&second, &[]);
    assert_eq!(testbed.take_actions(), [Action::DmaDone { id: write, result: Ok(Bytes::new()) }]);
    testbed.answer_read(&first, asked, &[9; 8]);
    let nines = Bytes::from_static(&[9; 8]);
    assert_eq!(testbed.take_actions(), [Action::DmaDone { id: read, result: Ok(nines) }]);
    testbed.answer(&first, &[]);
    assert_eq!(testbed.server.session.counters.stray_replies, 1);
}

#[test]
fn messages_are_split_to_what_the_client_takes() {
    let mut testbed = Testbed::silent(plain_endpoint());
    let capabilities =
        Capabilities { max_data_xfer_size: Some(4096), ..bench_capabilities().unwrap() };
    testbed.greet(&Some(capabilities));
    testbed.take_actions();
    let ram = Shared::new("ram", 0, 0x1000).unwrap();
    ram.mapping.write(0, &[7; 0x1000]).unwrap();
    // A mapped page between two ranges that are accessed by message.
    assert_eq!(testbed.map(range(0x1000, 0x2000), None), None);
    assert_eq!(testbed.map(range(0x3000, 0x1000), Some(&ram.file)), None);
    assert_eq!(testbed.map(range(0x4000, 0x1000), None), None);
    let id = pending(testbed.dma_read(0x1800, 0x3000));
    for (address, count) in [(0x1800, 0x1000), (0x2800, 0x800), (0x4000, 0x800)] {
        let (header, asked, _) = testbed.dma_message(Command::DmaRead);
        assert_eq!((asked.address, asked.count), (address, count));
        assert_eq!(testbed.take_actions(), []);
        testbed.answer_read(&header, asked, &vec![(address >> 8) as u8; count as usize]);
    }
    let [Action::DmaDone { id: done, result: Ok(ref bytes) }] = testbed.take_actions()[..] else {
        panic!()
    };
    assert_eq!((done, bytes.len()), (id, 0x3000));
    assert_eq!([bytes[0], bytes[0xfff], bytes[0x1000]], [0x18, 0x18, 0x28]);
    assert_eq!([bytes[0x1800], bytes[0x27ff], bytes[0x2800]], [7, 7, 0x40]);

    pending(testbed.dma_write(0x2800, &[5; 0x1000]));
    let (_, asked, data) = testbed.dma_message(Command::DmaWrite);
    assert_eq!((asked.address, asked.count, data.len()), (0x2800, 0x800, 0x800));
    assert_eq!(ram.mapping.load(0x7fc), Some(0x0505_0505));
    assert!(testbed.client.is_quiet());
    let too_long = testbed.dma_write(0x1000, &vec![0; MAX_DMA + 1]);
    assert_eq!(too_long, Access::Failed(DmaError::TooLong));
}

#[test]
fn refused_invalid_and_missing_dma_replies_fail() {
    let mut testbed = Testbed::by_message();
    let failed = |testbed: &mut Testbed, error| {
        let [Action::DmaDone { result, .. }] = &testbed.take_actions()[..] else { panic!() };
        assert_eq!(*result, Err(error));
    };
    let ask = |testbed: &mut Testbed| {
        pending(testbed.dma_read(0x1000, 4));
        testbed.dma_message(Command::DmaRead)
    };
    let (header, ..) = ask(&mut testbed);
    let refusal = header.error_reply(std::num::NonZeroU32::new(14).unwrap());
    testbed.send(&refusal.encode(), &[]);
    failed(&mut testbed, DmaError::Refused);
    let (header, asked, _) = ask(&mut testbed);
    testbed.answer_read(&header, asked, &[0; 3]);
    failed(&mut testbed, DmaError::Refused);
    let (header, asked, _) = ask(&mut testbed);
    testbed.answer_read(&header, DmaAccess { address: 0, ..asked }, &[0; 4]);
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
fn dma_messages_in_flight_are_bounded() {
    let mut testbed = Testbed::by_message();
    let mut started = 0;
    while matches!(testbed.dma_read(0x1000, 4), Access::Pending(_)) {
        started += 1;
        assert!(started < 10_000);
    }
    assert_eq!(testbed.dma_read(0x1000, 4), Access::Full);
    assert_eq!(testbed.dma_write(0x1000, &[0]), Access::Full);
    let (header, asked, _) = testbed.dma_message(Command::DmaRead);
    testbed.answer_read(&header, asked, &[0; 4]);
    pending(testbed.dma_write(0x1000, &[0]));
}

#[test]
fn a_region_access_does_not_wait_for_dma() {
    let mut testbed = Testbed::by_message();
    pending(testbed.dma_write(0x1000, &[1]));
    testbed.dma_message(Command::DmaWrite);
    // From here on the client does not answer.
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn dma_answers_do_not_wait_for_a_region_access() {
    let mut testbed = Testbed::by_message();
    testbed.answer = false;
    testbed.send(&message(1, 9, &access(0, 0, 4, &[]), false), &[]);
    assert!(matches!(testbed.take_actions()[..], [Action::BarRead { .. }]));
    pending(testbed.dma_read(0x1000, 4));
    let (header, asked, _) = testbed.dma_message(Command::DmaRead);
    testbed.answer_read(&header, asked, &[3; 4]);
    assert!(matches!(testbed.take_actions()[..], [Action::DmaDone { .. }]));
}

#[test]
fn an_interrupt_waits_for_the_writes_before_it_and_no_others() {
    let mut testbed = Testbed::by_message();
    let event = eventfd();
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 1, 1), &[event.as_fd()]), None);
    let write = |testbed: &mut Testbed| pending(testbed.dma_write(0x1000, &[1]));
    write(&mut testbed);
    write(&mut testbed);
    testbed.server.session.signal(1);
    write(&mut testbed);
    testbed.server.session.signal(1);
    write(&mut testbed);
    testbed.server.session.signal(1);
    let headers: Vec<_> = (0..4).map(|_| testbed.dma_message(Command::DmaWrite).0).collect();
    let rung_after: Vec<_> = [1, 0, 2, 3]
        .into_iter()
        .map(|at: usize| {
            testbed.answer(&headers[at], &[]);
            rung(&event)
        })
        .collect();
    // The second and the third interrupt were merged.
    assert_eq!(rung_after, [0, 1, 0, 1]);
    testbed.server.session.signal(1);
    assert_eq!(rung(&event), 1);
    // A write that is never answered does not delay interrupts for ever.
    write(&mut testbed);
    testbed.server.session.signal(1);
    assert_eq!(rung(&event), 0);
    testbed.now += DMA_DEADLINE;
    testbed.pump();
    assert_eq!(rung(&event), 1);
}

//! Tests of messages: versions, partial messages, limits, unknown commands.

use super::*;

const E2BIG: u32 = 7;
const EMFILE: u32 = 24;
const ENOSYS: u32 = 38;
const EOPNOTSUPP: u32 = 95;

#[test]
fn version_with_json_is_answered_with_a_subset() {
    let mut testbed = Testbed::silent(plain_endpoint());
    let asked = bench_capabilities();
    let request =
        encoded(|out| Version { major: 0, minor: 0, capabilities: asked.clone() }.encode(out));
    let reply = testbed.exchange(Command::Version, &request, &[]);
    // QEMU receives the reply, including the NUL, in the buffer of the request.
    assert!(reply.payload.len() <= request.len());
    assert_eq!(reply.payload.last(), Some(&0));
    let version = Version::decode(&reply.payload).unwrap();
    assert_eq!((version.major, version.minor), (0, 0));
    let got = version.capabilities.unwrap();
    assert_eq!(got.max_msg_fds, Some(16));
    assert_eq!(got.max_data_xfer_size, Some(65536));
    assert_eq!((got.write_multiple, got.twin_socket, got.migration), (Some(true), None, false));
    assert!(testbed.server.session.in_use());
}

#[test]
fn version_without_json_is_answered_without() {
    let mut testbed = Testbed::silent(plain_endpoint());
    testbed.send(&message(0, 1, &[0, 0, 1, 0], false), &[]);
    let reply = testbed.client.receive();
    assert_eq!((reply.header.id, reply.payload), (0, vec![0, 0, 1, 0]));
}

#[test]
fn a_command_before_version_or_another_major_is_refused() {
    let mut testbed = Testbed::silent(plain_endpoint());
    assert_eq!(testbed.errno(Command::DeviceGetInfo, &[16, 0, 0, 0], &[]), Some(EINVAL));
    assert_eq!(testbed.errno(Command::Version, &[1, 0, 0, 0], &[]), Some(93));
    assert_eq!(testbed.errno(Command::Version, b"\0\0\0\0[]", &[]), Some(EINVAL));
    let tiny = b"\0\0\0\0{\"capabilities\":{\"max_data_xfer_size\":1}}";
    assert_eq!(testbed.errno(Command::Version, tiny, &[]), Some(EINVAL));
    testbed.greet(&None);
    assert_eq!(testbed.errno(Command::Version, &[0, 0, 0, 0], &[]), Some(EINVAL));
}

#[test]
fn partial_and_coalesced_messages_are_read() {
    let mut testbed = Testbed::new();
    let one = message(1, 9, &access(CONFIG, 0, 4, &[]), false);
    let two = message(2, 9, &access(0, 8, 4, &[]), false);
    // The client sends a message byte by byte.
    for byte in &one {
        testbed.send(&[*byte], &[]);
    }
    assert_eq!(testbed.client.receive().payload[16..], [0x36, 0x1b, 0x01, 0x00]);
    // The client sends two and a half messages at once, then the rest.
    let mut heap = [one, two.clone(), two].concat();
    let rest = heap.split_off(70);
    testbed.send(&heap, &[]);
    assert_eq!(testbed.client.receive().header.id, 1);
    assert_eq!(testbed.client.receive().payload[16..], [8, 9, 10, 11]);
    assert!(testbed.client.is_quiet());
    testbed.send(&rest, &[]);
    assert_eq!(testbed.client.receive().header.id, 2);
}

#[test]
fn descriptors_stay_with_their_message() {
    let mut testbed = Testbed::new();
    let ram = Shared::new("ram", 0, 0x2000).unwrap();
    let map = |address| {
        let map = DmaMap { flags: 3, offset: 0, address, size: 0x1000 };
        message(address as u16, 2, &encoded(|out| map.encode(out)), false)
    };
    // Three messages directly after each other, as QEMU sends them; only the second has a
    // descriptor.
    testbed.client.send(&map(0x1000), &[]);
    testbed.client.send(&map(0x2000), &[ram.file.as_fd()]);
    testbed.send(&map(0x3000), &[]);
    for id in [0x1000, 0x2000, 0x3000] {
        let header = testbed.client.receive().header;
        assert_eq!((header.id, header.error), (id, None));
    }
    let memory = testbed.server.session.memory;
    let shared = |address| memory.parts(address, 1, false).unwrap()[0].mapped;
    assert_eq!([0x1000, 0x2000, 0x3000].map(shared), [false, true, false]);
}

#[test]
fn unknown_commands_are_drained_and_refused() {
    let mut testbed = Testbed::new();
    for (command, errno) in [
        (0_u16, ENOSYS),
        (14, EOPNOTSUPP),
        (16, EOPNOTSUPP),
        (17, EOPNOTSUPP),
        (11, EOPNOTSUPP),
        (99, ENOSYS),
        (0xffff, ENOSYS),
    ] {
        testbed.client.send(&message(3, command, &[0x55; 1000], false), &[]);
        testbed.pump();
        let reply = testbed.client.receive();
        assert_eq!((reply.header.command, reply.header.error), (command, Some(errno)));
    }
    // The server still finds the start of the next message.
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn too_long_a_message_is_drained_and_refused() {
    let mut testbed = Testbed::new();
    let long = message(5, 10, &vec![0; MAX_PAYLOAD + 1], false);
    for chunk in long.chunks(50_000) {
        testbed.send(chunk, &[]);
    }
    assert_eq!(testbed.client.receive().header.error, Some(E2BIG));
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn invalid_message_header_ends_the_connection() {
    for head in [&[0; 16][..], &[0, 0, 1, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]] {
        let mut testbed = Testbed::new();
        testbed.send(head, &[]);
        assert!(testbed.client.is_closed());
        assert!(matches!(testbed.take_actions()[..], [Action::ClientGone { .. }]));
    }
}

#[test]
fn too_many_descriptors_are_closed_and_refused() {
    let mut testbed = Testbed::new();
    let event = eventfd();
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = open();
    for count in [17, 40] {
        let fds = vec![event.as_fd(); count];
        assert_eq!(testbed.errno(Command::DeviceReset, &[], &fds), Some(EMFILE));
    }
    // A message is refused too if the descriptors arrive with two parts of the message.
    let bytes = message(7, 13, &[0; 4], false);
    let ten = vec![event.as_fd(); 10];
    testbed.client.send(&bytes[..16], &ten);
    testbed.send(&bytes[16..], &ten);
    testbed.pump_until_answered();
    assert_eq!(testbed.client.receive().header.error, Some(EMFILE));
    // Other tests open and close descriptors at the same time. If descriptors were not closed,
    // there would be 77 more.
    assert!(open() < before + 60);
    // A message in many parts cannot collect an unlimited number of descriptors.
    for byte in &bytes[..3] {
        testbed.client.send(&[*byte], &[event.as_fd(); 17]);
    }
    // The server may read them only after its worker has closed the earlier descriptors.
    testbed.pump();
    while testbed.server.connected() {
        assert!(is_readable(&testbed.server, 5), "still connected");
        testbed.pump();
    }
    assert_eq!(testbed.server.take_closed(), Some(Closed::Descriptors));
}

#[test]
fn device_region_and_irq_info_are_answered() {
    let mut testbed = Testbed::new();
    let reply = testbed.exchange(Command::DeviceGetInfo, &[16, 0, 0, 0].repeat(4), &[]);
    let info = DeviceInfo { argsz: 16, flags: 3, num_regions: 9, num_irqs: 5 };
    assert_eq!(DeviceInfo::decode(&reply.payload), Ok(info));
    assert_eq!(testbed.errno(Command::DeviceGetInfo, &[15; 4], &[]), Some(EINVAL));
    assert_eq!(testbed.errno(Command::DeviceGetInfo, &[15, 0, 0, 0].repeat(4), &[]), Some(EINVAL));

    let sizes = [0x4000, 0, 0, 0, 0, 0, 0, 4096, 0];
    for (index, size) in sizes.into_iter().enumerate() {
        let asked = RegionInfo { argsz: 32, index: index as u32, ..RegionInfo::default() };
        // SPDK pads its request.
        let mut payload = encoded(|out| asked.encode_request(out));
        payload.resize(4064, 0);
        let reply = testbed.exchange(Command::DeviceGetRegionInfo, &payload, &[]);
        let info = RegionInfo::decode(&reply.payload).unwrap();
        assert_eq!((info.size, info.index), (size, index as u32));
        assert_eq!(info.flags, if size > 0 { 3 } else { 0 });
    }
    let asked = RegionInfo { argsz: 32, index: 9, ..RegionInfo::default() };
    let payload = encoded(|out| asked.encode_request(out));
    assert_eq!(testbed.errno(Command::DeviceGetRegionInfo, &payload, &[]), Some(EINVAL));

    for (index, answer) in
        [(0, Some((7, 1))), (1, Some((1, 0))), (2, Some((3, 4))), (3, None), (4, Some((1, 1)))]
    {
        let payload = encoded(|out| IrqInfo { argsz: 16, flags: 0, index, count: 0 }.encode(out));
        let reply = testbed.exchange(Command::DeviceGetIrqInfo, &payload, &[]);
        let info = IrqInfo::decode(&reply.payload).ok().map(|info| (info.flags, info.count));
        assert_eq!(info, answer);
    }
    let asked = RegionIoFds { argsz: 4096, ..RegionIoFds::default() };
    let payload = encoded(|out| asked.encode(out));
    let reply = testbed.exchange(Command::DeviceGetRegionIoFds, &payload, &[]);
    assert_eq!(RegionIoFds::decode(&reply.payload).unwrap().entries, []);
}

#[test]
fn posted_writes_get_no_reply_and_keep_their_order() {
    let mut testbed = Testbed::new();
    let posted =
        |offset, data: &[u8]| message(1, 10, &access(0, offset, data.len() as u32, data), true);
    let mut writes = vec![];
    for (i, offset) in [0x1000, 0x1004, 0x1000].into_iter().enumerate() {
        let write = SingleWrite { offset, region: 0, count: 4, data: [i as u8; 8] };
        writes.push(write);
    }
    let multi = encoded(|out| WriteMulti { writes: writes.clone() }.encode(out));
    let heap = [
        posted(0x14, &[1, 2, 3, 4]),
        message(2, 15, &multi, true),
        posted(0x4000, &[0]),
        message(3, 9, &access(0, 0x1000, 4, &[]), false),
    ];
    testbed.send(&heap.concat(), &[]);
    let reply = testbed.client.receive();
    assert_eq!((reply.header.id, &reply.payload[16..]), (3, &[2, 2, 2, 2][..]));
    let accesses = [(0x14, 4), (0x1000, 4), (0x1004, 4), (0x1000, 4), (0x1000, 4)];
    assert_eq!(testbed.take_accesses(), accesses);
    // The reply contains the number of writes.
    let reply = testbed.exchange(Command::RegionWriteMulti, &multi, &[]);
    assert_eq!(reply.payload, 3_u64.to_le_bytes());
    assert_eq!(testbed.server.session.counters.refused, 1);
}

#[test]
fn a_client_that_does_not_read_stops_being_read() {
    let mut testbed = Testbed::new();
    let read = message(1, 9, &access(0, 0, 0x2000, &[]), false);
    let mut sent = 0;
    testbed.client.0.set_nonblocking(true).unwrap();
    // Each request of 32 bytes has a reply of 8 KiB. The client sends until the server receives no
    // further request.
    while sent < 100_000 {
        let Ok(count) = rustix::io::write(&testbed.client.0, &read) else { break };
        assert_eq!(count, read.len());
        sent += 1;
        if sent % 100 == 0 {
            testbed.pump();
        }
    }
    assert!((100..100_000).contains(&sent), "{sent}");
    testbed.client.0.set_nonblocking(false).unwrap();
    for _ in 0..sent {
        testbed.pump();
        let mut head = [0; Header::SIZE + 16 + 0x2000];
        std::io::Read::read_exact(&mut &testbed.client.0, &mut head).unwrap();
        assert_eq!(Header::decode(&head).unwrap().size as usize, head.len());
    }
    testbed.pump();
    assert!(testbed.client.is_quiet());
}

#[test]
fn several_endpoints_have_sockets_of_their_own() {
    let testbed = Testbed::new();
    let other = Server::bind(&testbed.folder, 1, plain_endpoint()).unwrap();
    assert!(testbed.server.path().ends_with("0/cntrl") && other.path().ends_with("1/cntrl"));
}

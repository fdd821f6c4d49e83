//! Golden bytes and properties of the codec.

use super::*;
use crate::{encoded, hex};
use bytes::Bytes;
use proptest::prelude::*;
use std::num::NonZeroU32;

/// Checks that a value encodes to these bytes, and that the bytes decode to the value.
macro_rules! golden {
    ($type:ident, $value:expr, $text:expr) => {{
        let bytes = hex($text);
        assert_eq!(encoded(|out| $value.encode(out)), bytes);
        assert_eq!($type::decode(&bytes), Ok($value));
        bytes
    }};
}

#[test]
fn headers() {
    let command = Header::command(0x1234, Command::RegionRead, 16);
    assert_eq!(command.encode().to_vec(), hex("3412 0900 20000000 00000000 00000000"));
    let posted = Header { no_reply: true, ..command };
    assert_eq!(posted.encode().to_vec(), hex("3412 0900 20000000 10000000 00000000"));
    assert_eq!(posted.reply(24).encode().to_vec(), hex("3412 0900 28000000 01000000 00000000"));
    let refusal = command.error_reply(NonZeroU32::new(95).unwrap());
    assert_eq!(refusal.encode().to_vec(), hex("3412 0900 10000000 21000000 5f000000"));
    for header in [command, posted, refusal] {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
    assert_eq!(Header::decode(&[0; 16]), Err(Malformed::Size));
    assert_eq!(Header::decode(&[0; 15]), Err(Malformed::Short));
    let odd = hex("3412 0900 10000000 02000000 00000000");
    assert_eq!(Header::decode(&odd), Err(Malformed::Kind));
}

#[test]
fn command_numbers() {
    for command in Command::ALL {
        assert_eq!(Command::from_number(command.number()), Some(command));
    }
    assert_eq!(Command::from_number(0), None);
    assert_eq!(Command::from_number(19), None);
    assert_eq!(Command::RegionWriteMulti.number(), 15);
}

#[test]
fn version_without_json_is_four_bytes() {
    // SPDK's initiator: 0.1, no version data.
    let version = Version::decode(&hex("0000 0100")).unwrap();
    assert_eq!(version, Version { major: 0, minor: 1, capabilities: None });
    assert_eq!(encoded(|out| version.encode(out)), hex("0000 0100"));
}

#[test]
fn version_as_qemu_sends_it() {
    let mut payload = hex("0000 0000");
    payload.extend_from_slice(
        br#"{"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "max_msg_fds": 16, "max_data_xfer_size": 1048576, "max_dma_maps": 65535, "pgsizes": 4096, "write_multiple": true}}"#,
    );
    payload.push(0);
    let version = Version::decode(&payload).unwrap();
    let capabilities = version.capabilities.unwrap();
    assert_eq!(
        capabilities,
        Capabilities {
            max_msg_fds: Some(16),
            max_data_xfer_size: Some(1 << 20),
            max_dma_maps: Some(65535),
            pgsizes: Some(4096),
            write_multiple: Some(true),
            twin_socket: None,
            migration: true,
        }
    );
}

#[test]
fn version_reply_is_compact() {
    let reply = Version {
        major: 0,
        minor: 0,
        capabilities: Some(Capabilities {
            max_msg_fds: Some(16),
            write_multiple: Some(true),
            ..Capabilities::default()
        }),
    };
    let bytes = encoded(|out| reply.encode(out));
    assert_eq!(
        bytes[4..],
        b"{\"capabilities\":{\"max_msg_fds\":16,\"write_multiple\":true}}\0"[..]
    );
    assert_eq!(Version::decode(&bytes), Ok(reply));
}

#[test]
fn version_data_of_another_shape() {
    for text in ["[]", "{\"capabilities\":1}", "{\"capabilities\":{\"max_msg_fds\":-1}}", "{"] {
        let mut payload = vec![0; 4];
        payload.extend_from_slice(text.as_bytes());
        assert_eq!(Version::decode(&payload), Err(Malformed::Json), "{text}");
    }
    let twin = b"\0\0\0\0{\"capabilities\":{\"twin_socket\":{\"supported\":true},\"new\":[]}}";
    assert_eq!(Version::decode(twin).unwrap().capabilities.unwrap().twin_socket, Some(true));
}

#[test]
fn dma_ranges() {
    let map = DmaMap { flags: 3, offset: 0x1000, address: 0x1_0000_0000, size: 0x2000_0000 };
    let bytes = golden!(
        DmaMap,
        map,
        "20000000 03000000 0010000000000000 0000000001000000 0000002000000000"
    );
    assert_eq!(DmaMap::decode(&bytes[..31]), Err(Malformed::Short));

    let unmap = DmaUnmap { argsz: 24, flags: 2, address: 0, size: 0 };
    golden!(DmaUnmap, unmap, "18000000 02000000 0000000000000000 0000000000000000");

    let access = DmaAccess { address: 0xfee0_0000, count: 512 };
    golden!(DmaAccess, access, "0000e0fe00000000 0002000000000000");
}

#[test]
fn device_info() {
    let info = DeviceInfo { argsz: 16, flags: 3, num_regions: 9, num_irqs: 5 };
    golden!(DeviceInfo, info, "10000000 03000000 09000000 05000000");
}

#[test]
fn region_info_with_capability_chain() {
    let info = RegionInfo {
        argsz: 72,
        flags: REGION_FLAG_READ | REGION_FLAG_WRITE | REGION_FLAG_MMAP | REGION_FLAG_CAPS,
        index: 0,
        size: 0x4000,
        offset: 0,
        areas: vec![SparseArea { offset: 0x1000, size: 0x1000 }],
        msix_mappable: true,
    };
    let whole = hex("48000000 0f000000 00000000 20000000 0040000000000000 0000000000000000
         0100 0100 40000000 01000000 00000000 0010000000000000 0010000000000000
         0300 0100 00000000");
    assert_eq!(encoded(|out| info.encode_reply(4096, out)), whole);
    assert_eq!(RegionInfo::decode(&whole), Ok(info.clone()));
    // Too little room: only the structure, with the required size in argsz.
    let short = hex("48000000 0f000000 00000000 20000000 0040000000000000 0000000000000000");
    assert_eq!(encoded(|out| info.encode_reply(71, out)), short);
    let without = RegionInfo { areas: Vec::new(), msix_mappable: false, ..info };
    assert_eq!(RegionInfo::decode(&short), Ok(without));
    // A circular chain.
    let mut circular = whole;
    circular[36..40].copy_from_slice(&32_u32.to_le_bytes());
    assert_eq!(RegionInfo::decode(&circular), Err(Malformed::Count));
}

#[test]
fn region_info_request() {
    let request = RegionInfo { argsz: 32, index: 7, ..RegionInfo::default() };
    let bytes = hex("20000000 00000000 07000000 00000000 0000000000000000 0000000000000000");
    assert_eq!(encoded(|out| request.encode_request(out)), bytes);
    assert_eq!(RegionInfo::decode(&bytes), Ok(request));
}

#[test]
fn region_io_fds() {
    let fds = RegionIoFds {
        argsz: 56,
        flags: 0,
        index: 0,
        entries: vec![IoFd {
            offset: 0x1000,
            size: 4,
            fd_index: 1,
            kind: IO_FD_TYPE_IOEVENTFD,
            flags: 0,
            data: 9,
        }],
    };
    let bytes = golden!(
        RegionIoFds,
        fds,
        "38000000 00000000 00000000 01000000 0010000000000000 0400000000000000
         01000000 00000000 00000000 00000000 0900000000000000"
    );
    assert_eq!(RegionIoFds::decode(&bytes[..40]), Err(Malformed::Short));
}

#[test]
fn interrupts() {
    let info = IrqInfo { argsz: 16, flags: 7, index: 0, count: 1 };
    golden!(IrqInfo, info, "10000000 07000000 00000000 01000000");

    let cases = [
        (
            IrqSet {
                data: IrqData::Eventfd,
                action: IrqAction::Trigger,
                index: 2,
                start: 1,
                count: 3,
            },
            "14000000 24000000 02000000 01000000 03000000",
        ),
        (
            IrqSet { data: IrqData::None, action: IrqAction::Unmask, index: 0, start: 0, count: 1 },
            "14000000 11000000 00000000 00000000 01000000",
        ),
        (
            IrqSet {
                data: IrqData::Bool(Bytes::from_static(&[1, 0])),
                action: IrqAction::Mask,
                index: 2,
                start: 0,
                count: 2,
            },
            "16000000 0a000000 02000000 00000000 02000000 0100",
        ),
    ];
    for (set, text) in cases {
        let bytes = hex(text);
        assert_eq!(encoded(|out| set.encode(out)), bytes);
        assert_eq!(IrqSet::decode(&bytes.into()), Ok(set));
    }
    let decode = |text| IrqSet::decode(&hex(text).into());
    // Two actions; no data flag; fewer booleans than the count.
    assert_eq!(decode("14000000 31000000 00000000 00000000 01000000"), Err(Malformed::Flags));
    assert_eq!(decode("14000000 20000000 00000000 00000000 01000000"), Err(Malformed::Flags));
    assert_eq!(decode("14000000 22000000 00000000 00000000 ffffffff 01"), Err(Malformed::Count));
}

#[test]
fn accesses() {
    let access = RegionAccess { offset: 0x1008, region: 0, count: 4 };
    golden!(RegionAccess, access, "0810000000000000 00000000 04000000");

    let write = SingleWrite { offset: 0x1000, region: 0, count: 4, data: [1, 2, 3, 4, 0, 0, 0, 0] };
    let multi = WriteMulti { writes: vec![write] };
    let bytes = golden!(
        WriteMulti,
        multi,
        "0100000000000000 0010000000000000 00000000 04000000 0102030400000000"
    );
    let mut long = bytes.clone();
    long[20] = 9;
    assert_eq!(WriteMulti::decode(&long), Err(Malformed::Count));
    let mut many = bytes;
    many[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(WriteMulti::decode(&many), Err(Malformed::Count));
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let shared = Bytes::from(bytes.clone());
        let _ = Header::decode(&bytes);
        let _ = Version::decode(&bytes);
        let _ = DmaMap::decode(&bytes);
        let _ = DmaUnmap::decode(&bytes);
        let _ = DmaAccess::decode(&bytes);
        let _ = DeviceInfo::decode(&bytes);
        let _ = RegionInfo::decode(&bytes);
        let _ = RegionIoFds::decode(&bytes);
        let _ = IrqInfo::decode(&bytes);
        let _ = IrqSet::decode(&shared);
        let _ = RegionAccess::decode(&bytes);
        let _ = WriteMulti::decode(&bytes);
    }

    #[test]
    fn headers_round_trip(
        id: u16, command: u16, size in 16_u32.., reply: bool, no_reply: bool,
        error in proptest::option::of(any::<u32>()),
    ) {
        let kind = if reply { Kind::Reply } else { Kind::Command };
        let header = Header { id, command, size, kind, no_reply, error };
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn versions_round_trip(
        major: u16, minor: u16, json: bool,
        numbers in proptest::array::uniform4(proptest::option::of(any::<u64>())),
        flags in proptest::array::uniform2(proptest::option::of(any::<bool>())),
        migration: bool,
    ) {
        let [max_msg_fds, max_data_xfer_size, max_dma_maps, pgsizes] = numbers;
        let [write_multiple, twin_socket] = flags;
        let capabilities = json.then_some(Capabilities {
            max_msg_fds, max_data_xfer_size, max_dma_maps, pgsizes,
            write_multiple, twin_socket, migration,
        });
        let version = Version { major, minor, capabilities };
        prop_assert_eq!(Version::decode(&encoded(|out| version.encode(out))), Ok(version));
    }

    #[test]
    fn regions_round_trip(
        index: u32, size: u64, offset: u64, msix_mappable: bool,
        areas in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..4),
    ) {
        let areas: Vec<_> =
            areas.into_iter().map(|(offset, size)| SparseArea { offset, size }).collect();
        let mut info =
            RegionInfo { argsz: 0, flags: 3, index, size, offset, areas, msix_mappable };
        let bytes = encoded(|out| info.encode_reply(u32::MAX, out));
        info.argsz = bytes.len() as u32;
        if bytes.len() > RegionInfo::LENGTH {
            info.flags |= REGION_FLAG_CAPS;
        }
        prop_assert_eq!(RegionInfo::decode(&bytes), Ok(info));
    }

    #[test]
    fn irq_sets_round_trip(
        kind in 0..3, action in prop::sample::select(&IrqAction::ALL[..]), index: u32, start: u32,
        booleans in proptest::collection::vec(any::<u8>(), 0..40), count: u32,
    ) {
        let (data, count) = match kind {
            0 => (IrqData::None, count),
            1 => (IrqData::Eventfd, count),
            _ => (IrqData::Bool(booleans.clone().into()), booleans.len() as u32),
        };
        let set = IrqSet { data, action, index, start, count };
        prop_assert_eq!(IrqSet::decode(&encoded(|out| set.encode(out)).into()), Ok(set));
    }

    #[test]
    fn fixed_structures_round_trip(a: u32, b: u32, c: u32, d: u32, x: u64, y: u64, z: u64) {
        let map = DmaMap { flags: a, offset: x, address: y, size: z };
        prop_assert_eq!(DmaMap::decode(&encoded(|out| map.encode(out))), Ok(map));
        let unmap = DmaUnmap { argsz: a, flags: b, address: x, size: y };
        prop_assert_eq!(DmaUnmap::decode(&encoded(|out| unmap.encode(out))), Ok(unmap));
        let dma = DmaAccess { address: x, count: y };
        prop_assert_eq!(DmaAccess::decode(&encoded(|out| dma.encode(out))), Ok(dma));
        let info = DeviceInfo { argsz: a, flags: b, num_regions: c, num_irqs: d };
        prop_assert_eq!(DeviceInfo::decode(&encoded(|out| info.encode(out))), Ok(info));
        let irq = IrqInfo { argsz: a, flags: b, index: c, count: d };
        prop_assert_eq!(IrqInfo::decode(&encoded(|out| irq.encode(out))), Ok(irq));
        let access = RegionAccess { offset: x, region: a, count: b };
        prop_assert_eq!(RegionAccess::decode(&encoded(|out| access.encode(out))), Ok(access));
    }

    #[test]
    fn write_multi_round_trips(
        writes in proptest::collection::vec(
            (any::<u64>(), any::<u32>(), 0..9_u32, any::<[u8; 8]>()), 0..20),
    ) {
        let writes = writes
            .into_iter()
            .map(|(offset, region, count, data)| SingleWrite { offset, region, count, data })
            .collect();
        let multi = WriteMulti { writes };
        prop_assert_eq!(WriteMulti::decode(&encoded(|out| multi.encode(out))), Ok(multi));
    }
}

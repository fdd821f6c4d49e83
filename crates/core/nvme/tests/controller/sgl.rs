//! Scatter gather lists.

use super::*;
use wire::nvme::{SglDescriptor, SglKind};

/// Address of segments in host memory.
const SEGMENTS: u64 = DATA + 0x30_0000;

fn descriptor(kind: SglKind, address: u64, length: u32) -> SglDescriptor {
    SglDescriptor { address, length, subtype: 0, kind: kind as u8 }
}

fn block(address: u64, length: u32) -> SglDescriptor {
    descriptor(SglKind::DataBlock, address, length)
}

fn bucket(length: u32) -> SglDescriptor {
    descriptor(SglKind::BitBucket, 0, length)
}

/// Writes a segment to host memory; returns the descriptor that leads to the segment.
fn segment(
    host: &mut Host,
    at: u64,
    kind: SglKind,
    descriptors: &[SglDescriptor],
) -> SglDescriptor {
    let bytes: Vec<u8> = descriptors.iter().flat_map(|one| one.encode()).collect();
    host.testbed.put(at, &bytes);
    descriptor(kind, at, bytes.len() as u32)
}

fn last(host: &mut Host, descriptors: &[SglDescriptor]) -> SglDescriptor {
    segment(host, SEGMENTS, SglKind::LastSegment, descriptors)
}

#[test]
fn one_data_block_may_lie_at_any_double_word() {
    let mut host = Host::with_queue(config());
    let data = pattern(128 << 10, 1);
    host.testbed.put(DATA + 0xffc, &data);
    let whole = block(DATA + 0xffc, 128 << 10);
    host.io(write(0, 256, 0, 0).with_sgl1(whole)).expect_success();
    assert!(host.testbed.media.namespaces[&1][..128 << 10] == data);
    // A list may be longer than the data.
    let back = block(DATA + 0x10_0004, 1 << 20);
    host.io(read(0, 256, 0, 0).with_sgl1(back)).expect_success();
    assert!(host.testbed.load(DATA + 0x10_0004, 128 << 10).unwrap() == data);
    assert_eq!(host.testbed.load(DATA + 0x12_0004, 4).unwrap(), [0; 4], "no byte more");
}

#[test]
fn segments_lead_to_segments() {
    let mut host = Host::with_queue(config());
    let data = pattern(4096, 2);
    let places =
        [(0x10_000, 1000), (0x20_004, 96), (0x30_000, 0), (0x40_000, 2000), (0x50_000, 1000)];
    let mut from = 0;
    for (at, length) in places {
        host.testbed.put(DATA + at, &data[from..from + length]);
        from += length;
    }
    let blocks = places.map(|(at, length)| block(DATA + at, length as u32));
    let end = last(&mut host, &blocks[3..]);
    let middle = [&blocks[1..3], &[end]].concat();
    let middle = segment(&mut host, SEGMENTS + 0x1008, SglKind::Segment, &middle);
    let first = segment(&mut host, SEGMENTS + 0x2ff8, SglKind::Segment, &[blocks[0], middle]);
    host.io(write(9, 8, 0, 0).with_sgl1(first)).expect_success();
    assert!(host.testbed.media.namespaces[&1][9 * 512..][..4096] == data);
}

#[test]
fn segments_are_longer_than_a_read() {
    let mut host = Host::with_queue(config());
    let data = pattern(4096, 3);
    host.testbed.put(DATA, &data);
    // 1024 double words in reverse order, and two unnecessary descriptors.
    let words = (0..1024).rev().map(|word| block(DATA + word * 4, 4));
    let words: Vec<SglDescriptor> = words.chain([block(3, 3), bucket(9)]).collect();
    let list = last(&mut host, &words);
    host.io(write(0, 8, 0, 0).with_sgl1(list)).expect_success();
    let turned: Vec<u8> = data.as_chunks::<4>().0.iter().rev().flatten().copied().collect();
    assert!(host.testbed.media.namespaces[&1][..4096] == turned);
}

#[test]
fn a_bit_bucket_drops_what_is_read() {
    let mut host = Host::with_queue(config());
    let data = pattern(4096, 4);
    host.testbed.media.namespaces.get_mut(&1).unwrap()[..4096].copy_from_slice(&data);
    let parts = [block(DATA, 512), bucket(1001), block(DATA + 512, 4096 - 1513)];
    let list = last(&mut host, &[parts[0], bucket(1024), block(DATA + 512, 2560)]);
    host.io(read(0, 8, 0, 0).with_sgl1(list)).expect_success();
    assert_eq!(host.testbed.load(DATA, 3072).unwrap(), [&data[..512], &data[1536..]].concat());
    // The bytes after the first 1001 bytes are not a multiple of double words.
    let list = last(&mut host, &parts);
    let odd = host.io(read(0, 8, 0, 0).with_sgl1(list));
    odd.expect_failure(StatusCode::SGL_GRANULARITY_INVALID);
    host.io(read(0, 8, 0, 0).with_sgl1(bucket(4096))).expect_success();
    // A bit bucket in a write has no effect.
    let list = last(&mut host, &[block(DATA, 512), bucket(512)]);
    host.io(write(99, 1, 0, 0).with_sgl1(list)).expect_success();
    let short = host.io(write(99, 2, 0, 0).with_sgl1(list));
    short.expect_failure(StatusCode::DATA_SGL_LENGTH_INVALID);
}

#[test]
fn bad_descriptors_are_refused() {
    use StatusCode as Code;
    let mut host = Host::with_queue(config());
    let end = last(&mut host, &[block(DATA, 4096)]);
    let keyed = SglDescriptor { kind: 4, ..block(DATA, 4096) };
    let offset = SglDescriptor { subtype: 1, ..block(DATA, 4096) };
    for (first, code) in [
        (keyed, Code::SGL_TYPE_INVALID),
        (offset, Code::SGL_TYPE_INVALID),
        (SglDescriptor { kind: 15, ..keyed }, Code::SGL_TYPE_INVALID),
        (block(DATA, 4092), Code::DATA_SGL_LENGTH_INVALID),
        (block(DATA, 0), Code::DATA_SGL_LENGTH_INVALID),
        (block(DATA + 2, 4096), Code::SGL_GRANULARITY_INVALID),
        (block(DATA, 4098), Code::SGL_GRANULARITY_INVALID),
        (SglDescriptor { length: 0, ..end }, Code::INVALID_SGL_SEGMENT),
        (SglDescriptor { length: 17, ..end }, Code::INVALID_SGL_SEGMENT),
        (SglDescriptor { address: SEGMENTS + 4, ..end }, Code::INVALID_SGL_SEGMENT),
        // The segment ends without a descriptor of the next segment.
        (SglDescriptor { kind: 2, ..end }, Code::SUCCESS),
    ] {
        for command in [read(0, 8, 0, 0), write(0, 8, 0, 0)] {
            let done = host.io(command.with_sgl1(first));
            match code {
                Code::SUCCESS => assert_eq!(done.expect_success(), 0),
                code => done.expect_failure(code),
            }
        }
    }
    for (list, kind) in [
        // A segment descriptor in the last segment, and a segment descriptor before the end of its
        // segment.
        (vec![end], SglKind::LastSegment),
        (vec![end, block(DATA, 4096)], SglKind::Segment),
        (vec![block(DATA, 4092)], SglKind::Segment),
    ] {
        let first = segment(&mut host, SEGMENTS + 0x1000, kind, &list);
        let done = host.io(read(0, 8, 0, 0).with_sgl1(first));
        done.expect_failure(Code::INVALID_SGL_SEGMENT);
    }
    // A segment that leads to itself.
    let this = descriptor(SglKind::Segment, SEGMENTS, 16);
    host.testbed.put(SEGMENTS, &this.encode());
    host.io(read(0, 8, 0, 0).with_sgl1(this)).expect_failure(Code::INVALID_SGL_COUNT);
    let nowhere = descriptor(SglKind::LastSegment, 0x5000_0000, 16);
    let status = host.io(read(0, 8, 0, 0).with_sgl1(nowhere)).status;
    assert_eq!((status.code, status.do_not_retry), (Code::DATA_TRANSFER_ERROR, false));
}

//! Metadata without protection: the transfer and the place on the media.

use super::*;
use nvme::state::State;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{DsmRange, SglDescriptor, SglKind};

/// Address of metadata in host memory.
const METADATA: u64 = DATA + 0x30_0000;
/// LBA format 2: 512 bytes of data and 8 bytes of metadata.
const SMALL: u32 = 2;
/// LBA format 3: 4096 bytes of data and 8 bytes of metadata.
const LARGE: u32 = 3;
/// MSET: metadata at the end of each block's data.
const EXTENDED: u32 = 1 << 4;
/// Byte offset of the metadata of namespace 1 with format 2. The namespace has 8064 blocks, and the
/// data end at a multiple of 4096.
const BEGIN: usize = 8064 * 512;

/// A drive with records. Namespace 1 (4 MiB) has the format of `cdw10`, command dword 10 of Format
/// NVM.
fn host(cdw10: u32) -> Host {
    let testbed = Testbed::with_records(&config());
    let mut host = Host::started(testbed);
    format(&mut host, cdw10);
    host
}

fn format(host: &mut Host, cdw10: u32) {
    let opcode = admin::FORMAT;
    host.admin(Command { opcode, nsid: 1, cdw10, ..Command::default() }).expect_success();
}

fn with_metadata(command: Command) -> Command {
    Command { mptr: METADATA, ..command }
}

#[test]
fn contents_keep_their_size_and_the_number_of_blocks_follows() {
    let mut host = host(SMALL);
    let found = host.namespace_data(1);
    // (512 + 8) * 8064 = 4193280; 8065 blocks would need 4129280, rounded up to 4132864, and 64520
    // bytes: more than 4194304.
    assert_eq!((found.size, found.formatted, found.lba_format.metadata), (8064, 2, 8));
    assert_eq!((found.metadata_capabilities, found.media_capacity), (0b11, 4 << 20));
    format(&mut host, LARGE | EXTENDED);
    let found = host.namespace_data(1);
    // (4096 + 8) * 1022 = 4194288.
    assert_eq!((found.size, found.formatted), (1022, 0x13));
    let state = State::decode(&host.testbed.store.records).unwrap();
    let record = &state.namespaces[&1];
    assert_eq!((record.metadata, record.extended, record.rest), (8, true, 16));
    assert_eq!(record.bytes(), 4 << 20);
    format(&mut host, 0);
    assert_eq!(host.namespace_data(1).size, 8192, "nothing is lost");
}

#[test]
fn metadata_in_a_buffer_of_their_own_lie_behind_the_data() {
    let mut host = host(SMALL);
    let (data, metadata) = (pattern(8 * 512, 1), pattern(64, 2));
    host.testbed.put(DATA, &data);
    host.testbed.put(METADATA, &metadata);
    host.io(with_metadata(write(100, 8, DATA, 0))).expect_success();
    let media = &host.testbed.media.namespaces[&1];
    assert!(media[100 * 512..108 * 512] == data);
    assert_eq!(media[BEGIN + 800..][..64], metadata);
    host.testbed.put(METADATA, &[0; 72]);
    host.io(with_metadata(read(100, 8, page(9), 0))).expect_success();
    assert!(host.testbed.load(page(9), 8 * 512).unwrap() == data);
    assert_eq!(host.testbed.load(METADATA, 72).unwrap(), [&metadata[..], &[0; 8]].concat());
    // MDTS limits only the data, not separate metadata.
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, (1..32).map(page));
    host.io(with_metadata(write(0, 256, DATA, list))).expect_success();
    host.io(with_metadata(write(0, 257, DATA, list))).expect_failure(StatusCode::INVALID_FIELD);
    host.io(Command { mptr: METADATA + 2, ..read(0, 1, DATA, 0) })
        .expect_failure(StatusCode::INVALID_FIELD);
    // The address of the metadata has no memory.
    let nowhere = Command { mptr: !3, ..write(0, 1, DATA, 0) };
    assert_eq!(host.io(nowhere).status.code, StatusCode::DATA_TRANSFER_ERROR);
    host.testbed.subsystem.check_invariants();
}

#[test]
fn metadata_of_extended_blocks_lie_behind_the_data_too() {
    let mut host = host(SMALL | EXTENDED);
    let blocks = pattern(520 * 7, 3);
    host.testbed.put(DATA, &blocks);
    host.io(write(1, 7, DATA, 0)).expect_success();
    let media = &host.testbed.media.namespaces[&1];
    for (number, block) in blocks.chunks(520).enumerate() {
        assert_eq!(media[512 * (1 + number)..][..512], block[..512]);
        assert_eq!(media[BEGIN + 8 * (1 + number)..][..8], block[512..]);
    }
    host.io(read(1, 7, page(9), 0)).expect_success();
    assert!(host.testbed.load(page(9), 520 * 7).unwrap() == blocks);
    // The metadata count for MDTS: 252 * 520 = 131040, 253 * 520 = 131560.
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, (1..32).map(page));
    host.io(read(0, 252, DATA, list)).expect_success();
    host.io(read(0, 253, DATA, list)).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn sgls_lead_to_metadata() {
    let mut host = host(SMALL);
    let (data, metadata) = (pattern(512 * 2, 4), pattern(16, 5));
    host.testbed.put(DATA, &data);
    let block = |address, length| SglDescriptor {
        address,
        length,
        subtype: 0,
        kind: SglKind::DataBlock as u8,
    };
    let command = |opcode, psdt| {
        let command = write(0, 2, 0, 0).with_sgl1(block(DATA, 1024));
        Command { opcode, psdt, ..command }
    };
    // PSDT 01b: a buffer at any byte.
    host.testbed.put(METADATA + 3, &metadata);
    host.io(Command { mptr: METADATA + 3, ..command(nvm::WRITE, 1) }).expect_success();
    assert_eq!(host.testbed.media.namespaces[&1][BEGIN..][..16], metadata);
    // PSDT 10b: a descriptor, which may lead to a segment.
    let segment = METADATA + 0x1000;
    let parts = [block(METADATA + 0x2000, 4), block(METADATA + 0x3000, 12)];
    host.testbed.put(segment, &parts.map(|one| one.encode()).concat());
    let last = SglDescriptor { kind: SglKind::LastSegment as u8, ..block(segment, 32) };
    host.testbed.put(METADATA + 0x800, &last.encode());
    let two = Command { mptr: METADATA + 0x800, ..command(nvm::READ, 2) };
    host.io(two).expect_success();
    assert_eq!(host.testbed.load(METADATA + 0x2000, 4).unwrap(), metadata[..4]);
    assert_eq!(host.testbed.load(METADATA + 0x3000, 12).unwrap(), metadata[4..]);
    for (descriptor, code) in [
        (block(METADATA, 12), StatusCode::METADATA_SGL_LENGTH_INVALID),
        (block(METADATA + 2, 16), StatusCode::SGL_GRANULARITY_INVALID),
        (SglDescriptor { kind: 5, ..block(METADATA, 16) }, StatusCode::SGL_TYPE_INVALID),
    ] {
        host.testbed.put(METADATA + 0x800, &descriptor.encode());
        host.io(two).expect_failure(code);
    }
    host.io(Command { mptr: METADATA + 0x804, ..two }).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn compare_compares_metadata_too() {
    for (format, extended) in [(SMALL, false), (SMALL | EXTENDED, true)] {
        let mut host = host(format);
        let mut blocks = pattern(520 * 2, 6);
        host.testbed.put(DATA, &blocks);
        host.testbed.put(METADATA, &[7; 16]);
        host.io(with_metadata(write(3, 2, DATA, 0))).expect_success();
        let compare = with_metadata(Command { opcode: nvm::COMPARE, ..read(3, 2, DATA, 0) });
        host.io(compare).expect_success();
        match extended {
            true => {
                blocks[512] ^= 1;
                host.testbed.put(DATA, &blocks);
            }
            false => host.testbed.put(METADATA + 15, &[6]),
        }
        host.io(compare).expect_failure(StatusCode::COMPARE_FAILURE);
    }
}

#[test]
fn zeroed_deallocated_and_copied_blocks_have_metadata() {
    let mut host = host(SMALL);
    let metadata = |host: &Host, slba: usize, blocks: usize| {
        host.testbed.media.namespaces[&1][BEGIN + slba * 8..][..blocks * 8].to_vec()
    };
    host.testbed.put(METADATA, &pattern(64, 7));
    host.io(with_metadata(write(0, 8, DATA, 0))).expect_success();
    let zeroes = Command { opcode: nvm::WRITE_ZEROES, ..read(1, 2, 0, 0) };
    host.io(zeroes).expect_success();
    let range = DsmRange { attributes: 0, blocks: 1, slba: 4 };
    host.testbed.put(DATA, &range.encode());
    let deallocate = Command { opcode: nvm::DATASET_MANAGEMENT, cdw10: 0, ..read(0, 1, DATA, 0) };
    host.io(Command { cdw11: 4, ..deallocate }).expect_success();
    let mut expected = pattern(64, 7);
    expected[8..24].fill(0);
    expected[32..40].fill(0);
    assert_eq!(metadata(&host, 0, 8), expected);
    let ranges = [(3, 3), (0, 0)].map(|(slba, last)| wire::nvme::CopyRange {
        slba,
        last,
        ..Default::default()
    });
    host.testbed.put(DATA, &ranges.map(|one| one.encode()).concat());
    host.io(Command { opcode: nvm::COPY, cdw12: 1, ..read(1000, 1, DATA, 0) }).expect_success();
    let copied = [&expected[24..56], &expected[..8]].concat();
    assert_eq!(metadata(&host, 1000, 5), copied);
}

/// Answers only reads of host memory, until there are none.
fn fetch(host: &mut Host) {
    host.testbed.take_tlps(pcie::Ready::ALL);
    while let Some(request) = host.testbed.reads.pop_front() {
        host.testbed.answer_read(request, false);
        host.testbed.take_tlps(pcie::Ready::ALL);
    }
}

#[test]
fn data_and_metadata_of_a_block_are_never_apart() {
    let mut host = host(SMALL);
    host.testbed.put(DATA, &[1; 4096]);
    host.testbed.put(page(1), &[2; 4096]);
    host.testbed.put(METADATA, &[1; 64]);
    host.testbed.put(METADATA + 64, &[2; 64]);
    // Two writes and a read of the same blocks, while the media answer in any order.
    host.put(1, with_metadata(write(0, 8, DATA, 0)));
    host.put(1, Command { mptr: METADATA + 64, ..write(4, 8, page(1), 0) });
    host.put(1, Command { mptr: METADATA + 128, ..read(0, 8, page(2), 0) });
    host.put(1, with_metadata(write(100, 8, DATA, 0)));
    host.ring(1);
    fetch(&mut host);
    // Two requests per command: for the first write, and for the write of other blocks.
    assert_eq!(host.testbed.blocks.len(), 4);
    while let Some(request) = host.testbed.blocks.pop_back() {
        host.testbed.blocks.push_front(request);
        host.testbed.serve_block();
        host.testbed.take_tlps(pcie::Ready::ALL);
    }
    assert!(host.reap(1).iter().all(|done| done.status.is_success()));
    // The order of the two writes is not defined.
    let media = &host.testbed.media.namespaces[&1];
    let read = host.testbed.load(page(2), 4096).unwrap();
    let of_read = host.testbed.load(METADATA + 128, 64).unwrap();
    let stored = (&media[..12 * 512], &media[BEGIN..BEGIN + 12 * 8]);
    for (data, metadata) in [(&read[..], &of_read[..]), stored] {
        for (data, metadata) in data.chunks(512).zip(metadata.chunks(8)) {
            assert!(data.iter().chain(metadata).all(|byte| *byte == data[0]));
        }
    }
    host.testbed.subsystem.check_invariants();
}

#[test]
fn reset_releases_claimed_blocks() {
    let mut host = host(SMALL);
    for slba in [0, 0, 1] {
        host.put(1, with_metadata(write(slba, 2, DATA, 0)));
    }
    host.ring(1);
    fetch(&mut host);
    assert_eq!(host.testbed.blocks.len(), 2, "the others wait");
    host.configure(entry_sizes());
    host.testbed.settle();
    host.start();
    host.io(with_metadata(write(0, 8, DATA, 0))).expect_success();
    host.testbed.subsystem.check_invariants();
    // A failure of one of the two requests releases the blocks too.
    host.testbed.media.failure = Some(block::Error::Media);
    let failed = host.io(with_metadata(write(0, 8, DATA, 0)));
    assert_eq!(failed.status.code, StatusCode::WRITE_FAULT);
    host.testbed.media.failure = None;
    host.io(with_metadata(read(0, 8, DATA, 0))).expect_success();
    host.testbed.subsystem.check_invariants();
}

#[test]
fn drives_without_records_have_no_metadata() {
    let mut host = Host::with_queue(config());
    let found = host.namespace_data(1);
    assert_eq!((found.metadata_capabilities, found.protection_capabilities), (0, 0));
    assert_eq!((found.lba_formats, found.deallocate_features), (0, 0b1001));
    // MPTR and PRINFO have no effect.
    let command = Command { mptr: 1, cdw12: 0xf << 26, ..write(0, 1, DATA, 0) };
    host.io(command).expect_success();
}

#[test]
fn fused_commands_hold_metadata_too() {
    let mut host = host(SMALL);
    host.testbed.put(page(1), &[1; 4096]);
    host.testbed.put(page(2), &[2; 4096]);
    host.testbed.put(METADATA + 64, &[1; 64]);
    host.testbed.put(METADATA + 128, &[2; 64]);
    // Zeroes become 1, while another command writes 2 to half of the blocks.
    host.testbed.put(METADATA, &[0; 64]);
    host.put(1, Command { opcode: nvm::COMPARE, fuse: 1, ..with_metadata(read(0, 8, DATA, 0)) });
    host.put(1, Command { fuse: 2, mptr: METADATA + 64, ..write(0, 8, page(1), 0) });
    host.put(1, Command { mptr: METADATA + 128, ..write(4, 8, page(2), 0) });
    host.put(1, Command { mptr: METADATA + 192, ..read(0, 8, page(3), 0) });
    host.ring(1);
    fetch(&mut host);
    while let Some(request) = host.testbed.blocks.pop_back() {
        host.testbed.blocks.push_front(request);
        host.testbed.serve_block();
        fetch(&mut host);
    }
    let done = host.reap(1);
    assert_eq!(done.len(), 4);
    let media = &host.testbed.media.namespaces[&1];
    let found = host.testbed.load(page(3), 4096).unwrap();
    let of_found = host.testbed.load(METADATA + 192, 64).unwrap();
    let stored = (&media[..12 * 512], &media[BEGIN..BEGIN + 12 * 8]);
    for (data, metadata) in [(&found[..], &of_found[..]), stored] {
        for (data, metadata) in data.chunks(512).zip(metadata.chunks(8)) {
            assert!(data.iter().chain(metadata).all(|byte| *byte == data[0]));
        }
    }
    host.testbed.subsystem.check_invariants();
    // Only the metadata differ.
    let before = media[..512].to_vec();
    host.testbed.put(DATA, &before);
    host.testbed.put(METADATA, &[9; 8]);
    host.put(1, Command { opcode: nvm::COMPARE, fuse: 1, ..with_metadata(read(0, 1, DATA, 0)) });
    host.put(1, Command { fuse: 2, ..with_metadata(write(0, 1, page(1), 0)) });
    host.carry_out(1);
    let codes: Vec<_> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [StatusCode::COMPARE_FAILURE, StatusCode::ABORTED_FAILED_FUSED]);
    assert_eq!(host.testbed.media.namespaces[&1][..512], before);
}

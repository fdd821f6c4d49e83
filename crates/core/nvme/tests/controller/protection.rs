//! End-to-end data protection.

use super::*;
use proptest::prelude::*;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{
    CopyRange, DsmRange, IdentifyNamespace, ProtectionInformation as Information, controller_list,
};

/// Address of metadata in host memory.
const METADATA: u64 = DATA + 0x30_0000;
/// PRACT.
const ACT: u32 = 1 << 29;
/// PRCHK.
const GUARD: u32 = 1 << 28;
const APPLICATION: u32 = 1 << 27;
const REFERENCE: u32 = 1 << 26;
const ALL: u32 = GUARD | APPLICATION | REFERENCE;
/// Byte offset of the metadata of namespace 1, see the tests of `metadata`.
const BEGIN: usize = 8064 * 512;
/// The CRC of 512 bytes FFh, calculated bit by bit. The CRC of zeroes is 0.
const ONES: u16 = 0xe6a1;

/// A drive with records. Namespace 1 has 512-byte blocks with protection of type `kind`.
fn host(kind: u32) -> Host {
    formatted(2 | kind << 5)
}

fn formatted(cdw10: u32) -> Host {
    let testbed = Testbed::with_records(&config());
    let mut host = Host::started(testbed);
    let opcode = admin::FORMAT;
    host.admin(Command { opcode, nsid: 1, cdw10, ..Command::default() }).expect_success();
    host
}

/// The command with PRINFO, tags and MPTR. The mask of the application tag is FFFFh.
fn protected(command: Command, control: u32, application: u16, reference: u32) -> Command {
    Command {
        cdw12: command.cdw12 | control,
        cdw14: reference,
        cdw15: 0xffff << 16 | u32::from(application),
        mptr: METADATA,
        ..command
    }
}

fn stored(host: &Host, slba: usize) -> Information {
    let bytes = &host.testbed.media.namespaces[&1][BEGIN + slba * 8..][..8];
    let bytes: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    Information::decode(bytes[..].try_into().unwrap())
}

/// The decoded protection information of block `number` in the metadata buffer of the host.
fn transferred(host: &Host, number: u64) -> Information {
    let bytes = host.testbed.load(METADATA + number * 8, 8).unwrap();
    Information::decode(bytes[..].try_into().unwrap())
}

fn put(host: &mut Host, information: &[Information]) {
    let bytes: Vec<u8> = information.iter().flat_map(|one| one.encode()).collect();
    host.testbed.put(METADATA, &bytes);
}

fn with(guard: u16, application: u16, reference: u32) -> Information {
    Information { guard, application, reference }
}

#[test]
fn identify_reports_protection_capabilities_and_settings() {
    let mut host = formatted(2 | 3 << 5 | 1 << 8);
    let found = host.namespace_data(1);
    // Type 3 in the first eight bytes. DLFEAT: no DEAC, and no valid CRC in deallocated blocks.
    assert_eq!((found.protection, found.protection_capabilities), (0b1011, 0b1_1111));
    assert_eq!(found.deallocate_features, 1);
    // Create a namespace with type 1.
    let opcode = admin::NAMESPACE_MANAGEMENT;
    let management = Command { opcode, prp1: DATA, ..Command::default() };
    host.admin(Command { nsid: 2, cdw10: 1, ..management }).expect_success();
    let sizes = IdentifyNamespace { size: 8, capacity: 8, ..IdentifyNamespace::default() };
    let new = IdentifyNamespace { formatted: 2, protection: 1, ..sizes };
    host.testbed.put(DATA, &new.encode_with(&[]));
    let create = Command { nsid: 0, cdw10: 0, ..management };
    assert_eq!(host.admin(create).expect_success(), 2);
    host.testbed.put(DATA, &controller_list([1]));
    let attach = Command { opcode: admin::NAMESPACE_ATTACHMENT, nsid: 2, ..create };
    host.admin(attach).expect_success();
    let write = Command { nsid: 2, ..write(7, 1, DATA, 0) };
    host.io(protected(write, ACT | REFERENCE, 0, 7)).expect_success();
    host.io(protected(write, ACT | REFERENCE, 0, 6))
        .expect_failure(StatusCode::INVALID_PROTECTION_INFORMATION);
}

#[test]
fn the_controller_inserts_and_strips() {
    for (kind, references) in [(1, [100, 101]), (2, [7, 8]), (3, [7, 7])] {
        for extended in [0, 1 << 4] {
            let mut host = formatted(2 | kind << 5 | extended);
            host.testbed.put(DATA, &[[0xff; 512], [0; 512]].concat());
            host.testbed.put(METADATA, &[0x55; 16]);
            let first = references[0];
            host.io(protected(write(100, 2, DATA, 0), ACT, 0x1234, first)).expect_success();
            assert_eq!(stored(&host, 100), with(ONES, 0x1234, first));
            assert_eq!(stored(&host, 101), with(0, 0x1234, references[1]));
            let checks = if kind == 3 { GUARD | APPLICATION } else { ALL };
            let read = protected(read(100, 2, page(1), 0), ACT | checks, 0x1234, first);
            host.io(read).expect_success();
            assert_eq!(host.testbed.load(page(1), 1024).unwrap()[511..513], [0xff, 0]);
            assert_eq!(host.testbed.load(page(1) + 1024, 16).unwrap(), [0; 16], "stripped");
            assert_eq!(host.testbed.load(METADATA, 16).unwrap(), [0x55; 16]);
            host.io(Command { cdw15: 0xffff_1235, ..read })
                .expect_failure(StatusCode::APPLICATION_TAG_CHECK_ERROR);
        }
    }
}

#[test]
fn protection_information_from_host_is_checked_and_kept() {
    let mut host = host(1);
    host.testbed.put(DATA, &[0xff; 1024]);
    let good = [with(ONES, 0x12, 5), with(ONES, 0x12, 6)];
    put(&mut host, &good);
    let command = protected(write(5, 2, DATA, 0), ALL, 0x12, 5);
    host.io(command).expect_success();
    assert_eq!([stored(&host, 5), stored(&host, 6)], good);
    host.testbed.put(METADATA, &[0; 16]);
    host.io(protected(read(5, 2, page(1), 0), ALL, 0x12, 5)).expect_success();
    assert_eq!([transferred(&host, 0), transferred(&host, 1)], good);
    // A failed write writes nothing.
    host.testbed.media.log.clear();
    use StatusCode as Code;
    for (bad, code) in [
        (with(ONES ^ 1, 0x12, 6), Code::GUARD_CHECK_ERROR),
        (with(ONES, 0x13, 6), Code::APPLICATION_TAG_CHECK_ERROR),
        (with(ONES, 0x12, 7), Code::REFERENCE_TAG_CHECK_ERROR),
    ] {
        put(&mut host, &[good[0], bad]);
        host.io(command).expect_failure(code);
        let entry = host.last_error();
        assert_eq!((entry.lba, entry.nsid, entry.status.code), (6, 1, code));
    }
    assert_eq!(host.testbed.media.log, []);
    // Protection information that is not checked is stored unchanged.
    host.io(protected(write(5, 2, DATA, 0), 0, 0, 0)).expect_success();
    assert_eq!(stored(&host, 6), with(ONES, 0x12, 7));
}

#[test]
fn blocks_that_have_changed_on_the_media_are_noticed() {
    let mut host = host(1);
    host.testbed.put(DATA, &[0xff; 512]);
    host.io(protected(write(9, 1, DATA, 0), ACT, 0, 9)).expect_success();
    host.testbed.media.namespaces.get_mut(&1).unwrap()[9 * 512] ^= 1;
    let errors = |host: &mut Host| host.smart().media_errors;
    assert_eq!(errors(&mut host), 0);
    let guard = StatusCode::GUARD_CHECK_ERROR;
    for opcode in [nvm::READ, nvm::VERIFY] {
        let command = Command { opcode, ..read(8, 2, DATA, 0) };
        host.io(protected(command, GUARD, 0, 0)).expect_failure(guard);
    }
    assert_eq!(errors(&mut host), 2);
    host.io(protected(read(8, 2, DATA, 0), REFERENCE, 0, 8)).expect_success();
}

#[test]
fn deallocated_blocks_pass_every_check() {
    for kind in 1..=3 {
        let mut host = host(kind);
        let checks = if kind == 3 { GUARD | APPLICATION } else { ALL };
        host.io(protected(write(3, 1, DATA, 0), ACT, 0, 3)).expect_success();
        let range = DsmRange { attributes: 0, blocks: 1, slba: 3 };
        host.testbed.put(DATA, &range.encode());
        let opcode = nvm::DATASET_MANAGEMENT;
        host.io(Command { opcode, cdw10: 0, cdw11: 4, ..read(0, 1, DATA, 0) }).expect_success();
        host.io(protected(read(2, 3, DATA, 0), checks, 7, 2)).expect_success();
        for number in 0..3 {
            assert_eq!(transferred(&host, number), with(0xffff, 0xffff, u32::MAX));
        }
        let verify = Command { opcode: nvm::VERIFY, ..read(0, 8064, 0, 0) };
        host.io(protected(verify, checks, 7, 0)).expect_success();
    }
}

#[test]
fn write_zeroes_follows_pract() {
    let mut host = host(2);
    let zeroes = |slba, blocks| Command { opcode: nvm::WRITE_ZEROES, ..read(slba, blocks, 0, 0) };
    // Without PRACT the protection information is zeroes too. The guard of zeroes is 0.
    host.io(protected(zeroes(4, 2), 0, 9, 9)).expect_success();
    assert_eq!(
        [stored(&host, 3), stored(&host, 4)],
        [with(0xffff, 0xffff, u32::MAX), with(0, 0, 0)]
    );
    host.io(protected(zeroes(4, 2), ACT, 9, u32::MAX)).expect_success();
    assert_eq!([stored(&host, 4), stored(&host, 5)], [with(0, 9, u32::MAX), with(0, 9, 0)]);
    assert_eq!(stored(&host, 6).application, 0xffff);
    // DEAC has no effect.
    host.io(protected(zeroes(4, 1), ACT | 1 << 25, 8, 1)).expect_success();
    assert_eq!(stored(&host, 4), with(0, 8, 1));
    for check in [GUARD, APPLICATION, REFERENCE] {
        host.io(protected(zeroes(4, 1), ACT | check, 8, 1))
            .expect_failure(StatusCode::INVALID_PROTECTION_INFORMATION);
    }
}

#[test]
fn write_zeroes_inserts_in_pieces() {
    // The largest transfer is 8 KiB, which the metadata of 1024 blocks have.
    let mut config = configured(|settings| settings.max_transfer_shift = 1);
    config.settings.buffer = 8 << 10;
    let testbed = Testbed::with_records(&config);
    let mut host = Host::started(testbed);
    let format =
        Command { opcode: admin::FORMAT, nsid: 1, cdw10: 2 | 1 << 5, ..Command::default() };
    host.admin(format).expect_success();
    let zeroes = Command { opcode: nvm::WRITE_ZEROES, ..read(1, 3000, 0, 0) };
    host.io(protected(zeroes, ACT, 3, 1)).expect_success();
    for slba in [1, 1024, 1025, 3000] {
        assert_eq!(stored(&host, slba), with(0, 3, slba as u32));
    }
    let verify = Command { opcode: nvm::VERIFY, ..read(1, 3000, 0, 0) };
    host.io(protected(verify, ALL, 3, 1)).expect_success();
    host.io(protected(read(1, 16, DATA, page(1)), 0, 0, 0)).expect_success();
}

#[test]
fn compare_checks_and_does_not_compare_the_information() {
    let mut host = host(2);
    host.testbed.put(DATA, &[0xff; 512]);
    host.io(protected(write(0, 1, DATA, 0), ACT, 1, 50)).expect_success();
    let compare = Command { opcode: nvm::COMPARE, ..read(0, 1, DATA, 0) };
    // The tags from the host differ from the tags on the media.
    put(&mut host, &[with(ONES, 2, 60)]);
    host.io(protected(compare, GUARD, 1, 50)).expect_success();
    host.io(protected(compare, ALL, 1, 50)).expect_failure(StatusCode::APPLICATION_TAG_CHECK_ERROR);
    put(&mut host, &[with(ONES, 1, 50)]);
    host.io(protected(compare, ALL, 1, 50)).expect_success();
    host.testbed.put(DATA, &[0; 512]);
    host.io(protected(compare, GUARD, 1, 50)).expect_failure(StatusCode::GUARD_CHECK_ERROR);
    host.io(protected(compare, 0, 1, 50)).expect_failure(StatusCode::COMPARE_FAILURE);
    for opcode in [nvm::COMPARE, nvm::VERIFY] {
        let command = Command { opcode, ..compare };
        host.io(protected(command, ACT, 1, 50))
            .expect_failure(StatusCode::INVALID_PROTECTION_INFORMATION);
    }
}

#[test]
fn fields_that_do_not_fit_the_type_are_refused() {
    let invalid = StatusCode::INVALID_PROTECTION_INFORMATION;
    let mut first = host(1);
    for opcode in [nvm::READ, nvm::WRITE, nvm::COMPARE, nvm::VERIFY] {
        let command = Command { opcode, ..read(8, 1, DATA, 0) };
        first.io(protected(command, REFERENCE, 0, 9)).expect_failure(invalid);
    }
    let mut third = host(3);
    for opcode in [nvm::READ, nvm::WRITE, nvm::COMPARE, nvm::VERIFY] {
        let command = Command { opcode, ..read(8, 1, DATA, 0) };
        third.io(protected(command, REFERENCE, 0, 8)).expect_failure(invalid);
    }
}

/// Copies one range to `to`. `controls` are PRINFOR and PRINFOW; the tags are for the destination.
fn copy(
    host: &mut Host,
    range: CopyRange,
    to: u64,
    controls: [u32; 2],
    application: u16,
    reference: u32,
) -> Completion {
    host.testbed.put(page(3), &range.encode());
    let command = Command { opcode: nvm::COPY, cdw12: 0, ..read(to, 1, page(3), 0) };
    let sources = controls[0] >> 14;
    host.io(protected(command, controls[1] | sources, application, reference))
}

#[test]
fn copy_checks_strips_and_inserts() {
    let mut host = host(2);
    host.testbed.put(DATA, &[0xff; 1024]);
    host.io(protected(write(0, 2, DATA, 0), ACT, 1, 50)).expect_success();
    let range = CopyRange { slba: 0, last: 1, reference: 50, application: 1, mask: 0xffff };
    copy(&mut host, range, 10, [ALL | ACT, ACT], 2, 90).expect_success();
    assert_eq!([stored(&host, 10), stored(&host, 11)], [with(ONES, 2, 90), with(ONES, 2, 91)]);
    // Copy the protection information unchanged.
    copy(&mut host, range, 20, [ALL, ALL], 1, 50).expect_success();
    assert_eq!(stored(&host, 21), with(ONES, 1, 51));
    for (controls, range, code) in [
        ([ALL, GUARD], CopyRange { reference: 51, ..range }, StatusCode::REFERENCE_TAG_CHECK_ERROR),
        ([GUARD, ALL], range, StatusCode::APPLICATION_TAG_CHECK_ERROR),
        ([ACT, 0], range, StatusCode::INVALID_FIELD),
        ([0, ACT], range, StatusCode::INVALID_FIELD),
    ] {
        copy(&mut host, range, 30, controls, 9, 50).expect_failure(code);
        assert_eq!(stored(&host, 30).application, 0xffff, "nothing was written");
    }
}

#[test]
fn inserted_protection_information_survives_power_cycle() {
    let mut host = host(1);
    host.testbed.put(DATA, &[0xff; 512]);
    host.io(protected(write(9, 1, DATA, 0), ACT, 0, 9)).expect_success();
    host.testbed.power_cycle(&config().settings);
    host.testbed.enumerate(true);
    host.start();
    host.io(protected(read(9, 1, DATA, 0), ALL, 0, 9)).expect_success();
}

/// A block of the model: the byte that fills the data, and the protection information.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block(u8, Information);

const FREE: Block =
    Block(0, Information { guard: 0xffff, application: 0xffff, reference: u32::MAX });

/// CRC-16 bit by bit, independent of the implementation in the controller.
fn crc(fill: u8) -> u16 {
    (0..512).fold(0, |remainder: u16, _| {
        (0..8).fold(remainder ^ u16::from(fill) << 8, |remainder, _| {
            remainder << 1 ^ if remainder & 0x8000 != 0 { 0x8bb7 } else { 0 }
        })
    })
}

/// The result of the check of a block: the status of the first failed check.
fn check(
    kind: u32,
    block: Block,
    control: u32,
    application: u16,
    reference: u32,
) -> Option<StatusCode> {
    let Block(fill, found) = block;
    if found.application == 0xffff && (kind != 3 || found.reference == u32::MAX) {
        return None;
    }
    let faults = [
        (GUARD, found.guard != crc(fill), StatusCode::GUARD_CHECK_ERROR),
        (APPLICATION, found.application != application, StatusCode::APPLICATION_TAG_CHECK_ERROR),
        (REFERENCE, found.reference != reference, StatusCode::REFERENCE_TAG_CHECK_ERROR),
    ];
    faults.iter().find(|(bit, fault, _)| control & bit != 0 && *fault).map(|(.., code)| *code)
}

/// A model of sixteen blocks and the effects of commands.
struct Model {
    kind: u32,
    blocks: [Block; 16],
}

impl Model {
    fn reference(&self, first: u32, number: usize) -> u32 {
        if self.kind == 3 { first } else { first.wrapping_add(number as u32) }
    }

    /// Writes a byte to `count` blocks, with PRACT or with the protection information from the
    /// host.
    fn write(
        &mut self,
        slba: usize,
        fill: u8,
        control: u32,
        tags: (u16, u32),
        sent: &[Information],
    ) -> Option<StatusCode> {
        let new: Vec<Block> = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| {
                let reference = self.reference(tags.1, number);
                let inserted = with(crc(fill), tags.0, reference);
                Block(fill, if control & ACT != 0 { inserted } else { *sent })
            })
            .collect();
        if control & ACT == 0 {
            for (number, block) in new.iter().enumerate() {
                let reference = self.reference(tags.1, number);
                if let Some(code) = check(self.kind, *block, control, tags.0, reference) {
                    return Some(code);
                }
            }
        }
        self.blocks[slba..slba + new.len()].copy_from_slice(&new);
        None
    }

    fn read(
        &self,
        slba: usize,
        count: usize,
        control: u32,
        tags: (u16, u32),
    ) -> Option<StatusCode> {
        (0..count).find_map(|number| {
            let reference = self.reference(tags.1, number);
            check(self.kind, self.blocks[slba + number], control, tags.0, reference)
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Compares random commands with the model. Tags and data have few values, so that checks pass
    /// and fail.
    #[test]
    fn protected_commands_match_model(
        kind in 1u32..4,
        extended: bool,
        commands in proptest::collection::vec(
            (0u8..5, 0usize..16, 1usize..5, 0u32..16, any::<[bool; 4]>()), 1..40),
    ) {
        let mut host = formatted(2 | kind << 5 | u32::from(extended) << 4);
        let mut model = Model { kind, blocks: [FREE; 16] };
        for (operation, slba, count, control, [fill, tag, wrong, own]) in commands {
            let count = count.min(16 - slba);
            let (fill, application) = (0xa5 * u8::from(fill), 7 + u16::from(tag));
            let mut control = control << 26;
            if kind == 3 {
                control &= !REFERENCE;
            }
            let lba = slba as u32;
            // Type 1 rejects a reference tag that is not the LBA.
            let reference = if own && kind != 1 { 90 } else { lba };
            let tags = (application, reference);
            let sent: Vec<Information> = (0..count)
                .map(|number| with(crc(fill) ^ u16::from(wrong), 7, model.reference(lba, number)))
                .collect();
            let (read, opcode) = (read(slba as u64, count as u32, DATA, 0), [nvm::WRITE, nvm::READ, nvm::VERIFY, nvm::WRITE_ZEROES, nvm::DATASET_MANAGEMENT][usize::from(operation)]);
            let mut command = Command { opcode, ..read };
            let separate = extended && control & ACT == 0;
            let expected = match opcode {
                nvm::WRITE => {
                    let block = [fill; 512];
                    let bytes: Vec<u8> = match separate {
                        true => sent.iter().flat_map(|one| [&block[..], &one.encode()].concat()).collect(),
                        false => block.repeat(count),
                    };
                    host.testbed.put(DATA, &bytes);
                    put(&mut host, &sent);
                    model.write(slba, fill, control, tags, &sent)
                }
                nvm::READ => model.read(slba, count, control, tags),
                nvm::VERIFY => {
                    control &= !ACT;
                    model.read(slba, count, control, tags)
                }
                nvm::WRITE_ZEROES => {
                    control &= ACT;
                    let zeroes = vec![Information::default(); count];
                    model.write(slba, 0, control, tags, &zeroes)
                }
                _ => {
                    model.blocks[slba..slba + count].fill(FREE);
                    let range = DsmRange { attributes: 0, blocks: count as u32, slba: slba as u64 };
                    host.testbed.put(DATA, &range.encode());
                    command = Command { cdw10: 0, cdw11: 4, cdw12: 0, ..command };
                    control = 0;
                    None
                }
            };
            let done = host.io(protected(command, control, application, reference));
            prop_assert_eq!(done.status.code, expected.unwrap_or(StatusCode::SUCCESS));
            if opcode == nvm::READ && expected.is_none() {
                for (number, Block(fill, information)) in model.blocks[slba..slba + count].iter().enumerate() {
                    let size = if separate { 520 } else { 512 };
                    let found = host.testbed.load(DATA + (number * size) as u64, size).unwrap();
                    prop_assert_eq!(&found[..512], &[*fill; 512]);
                    if separate {
                        prop_assert_eq!(&found[512..], &information.encode());
                    } else if control & ACT == 0 {
                        prop_assert_eq!(transferred(&host, number as u64), *information);
                    }
                }
            }
            host.testbed.subsystem.check_invariants();
        }
    }
}

//! Random operations on a controller, decoded from fuzz bytes.

use super::commands::{self, LISTS};
use super::tracker::Tracker;
use super::{DATA, Host, Testbed, entry_sizes};
use crate::Source;
use ::nvme::block::Error;
use ::nvme::state::{Format, Records};
use ::nvme::{Config, NamespaceConfig};
use pcie::Ready;
use wire::Duration;
use wire::nvme::register::{Configuration, Doorbell, ShutdownNotice};
use wire::nvme::{IdentifyNamespace, StatusCode, controller_list};
use wire::tlp::Class;

/// Maximum number of operations.
const MAX_OPERATIONS: usize = 2000;

/// Executes operations on a controller, decoded from `bytes`.
///
/// The first byte is a bit field:
///
/// - bit 0: the host writes anything anywhere, and only the controller's own bounds are checked;
///   without this bit, the host follows the rules, and each of its commands must end exactly once
/// - bit 1: no MSI-X
/// - bit 2: the drive keeps records
/// - bit 3: value of CC.AMS (arbitration)
/// - bit 4: with bit 2, the namespaces have metadata
/// - bit 5: the controller supports doorbell buffers
/// - bit 6: the controller is bound to a host
///
/// The second byte selects the limits of the drive.
///
/// # Panics
/// If the controller fails.
pub fn run_operations(bytes: &[u8]) {
    let mut input = Source(bytes);
    let mode = input.byte();
    let mut config = config(input.byte());
    config.settings.doorbell_buffer = mode & 32 != 0;
    let records = (mode & 4 != 0).then(|| records(&config, mode & 16 != 0));
    let mut host = Host::over(testbed(&config, mode & 2 == 0, records));
    host.arbitration = mode >> 3 & 1;
    if mode & 64 != 0 {
        host.testbed.port().bind_host(Some([7; 16]));
    }
    if mode & 1 == 0 {
        ConformingHost::new(host, config, mode & 2 == 0).run(input);
    } else {
        run_arbitrary(host, input);
    }
}

/// Returns a configuration with small limits, so that operations reach the limits.
fn config(choice: u8) -> Config {
    let second = NamespaceConfig { block_shift: 12, ..NamespaceConfig::new(64) };
    let mut config = Config::new("FUZZ", vec![NamespaceConfig::new(2048), second]);
    let settings = &mut config.settings;
    settings.io_queues = 4;
    let bit = |bit: u8| choice >> bit & 1 != 0;
    settings.buffer = if bit(0) { 128 << 10 } else { 1 << 20 };
    settings.commands = if bit(1) { 2 } else { 64 };
    settings.fetch_batch = if bit(2) { 2 } else { 16 };
    settings.fetches = if bit(3) { 1 } else { 4 };
    settings.posted_backlog = if bit(4) { 0 } else { 64 << 10 };
    settings.volatile_write_cache = bit(5);
    settings.reads_in_flight = if bit(6) { 1 } else { 16 };
    settings.max_transfer_shift = if bit(7) { 2 } else { 5 };
    config
}

/// Returns the records of the drive. With `metadata`, namespace 1 has protection information of
/// type 1 in a separate buffer, and namespace 2 has other metadata at the end of each block.
fn records(config: &Config, metadata: bool) -> Records {
    let mut state = config.state();
    if metadata {
        for (nsid, block_shift, extended, protection) in [(1, 9, false, 1), (2, 12, true, 0)] {
            let namespace = state.namespaces.get_mut(&nsid).expect("one of two");
            let format = Format { block_shift, metadata: 8, extended, protection };
            *namespace = namespace.with_format(format);
        }
    }
    state.encode()
}

fn testbed(config: &Config, msix: bool, records: Option<Records>) -> Testbed {
    let mut testbed = match records {
        Some(records) => Testbed::from_records(config, records),
        None => Testbed::new(config.clone()),
    };
    testbed.enumerate(msix);
    // Lists of valid entries; the last entry of each page points to the next page.
    for list in 0..8u64 {
        let entry = |index: u64| match index {
            511 => LISTS + (list + 1) % 8 * 4096,
            _ => DATA + (index * 7 + list) % 256 * 4096,
        };
        testbed.put_list(LISTS + list * 4096, (0..512).map(entry));
    }
    testbed.put(commands::CONTROLLER, &controller_list([1]));
    let new = IdentifyNamespace { size: 8, capacity: 8, formatted: 1, ..Default::default() };
    testbed.put(commands::NAMESPACE, &new.encode());
    testbed
}

/// Performs a random event that does not depend on the host.
fn random_event(testbed: &mut Testbed, operation: u8, input: &mut Source) {
    match operation {
        0 => testbed.take_tlps(Ready::ALL),
        1 => testbed.take_tlps(Ready::ALL.with(Class::Posted, false)),
        2 => testbed.take_tlps(Ready::ALL.with(Class::NonPosted, false)),
        3 | 4 => {
            if let Some(request) = testbed.reads.pop_front() {
                testbed.answer_read(request, false);
            }
        }
        5 => {
            if let Some(request) = testbed.reads.pop_back() {
                testbed.answer_read(request, input.byte() < 4);
            }
        }
        6 => {
            let _ = testbed.serve_block() || testbed.serve_store();
        }
        7 => {
            // Media complete requests in any order.
            if let Some(request) = testbed.blocks.pop_back() {
                testbed.blocks.push_front(request);
            }
            // Half of the requests fail.
            use Error::{Internal, Media, NoSpace, NotReady, ReadOnly};
            let failures = [Media, ReadOnly, NoSpace, NotReady, Internal];
            let choice = usize::from(input.byte()) % (2 * failures.len());
            testbed.media.failure = choice.checked_sub(failures.len()).map(|at| failures[at]);
            testbed.store.failure = testbed.media.failure;
            let _ = testbed.serve_block() || testbed.serve_store();
            (testbed.media.failure, testbed.store.failure) = (None, None);
        }
        8 => testbed.settle(),
        9 => testbed.pass(Duration::from_us(input.u16().into())),
        10 => {
            let now = testbed.now;
            testbed.subsystem.set_temperature(now, input.u16() % 512);
        }
        _ => {
            let (now, nsid) = (testbed.now, 1 + u32::from(input.byte() & 1));
            testbed.subsystem.set_read_only(now, nsid, input.byte() < 16);
        }
    }
}

/// A host that follows the rules of NVMe.
struct ConformingHost {
    tracker: Tracker,
    config: Config,
    msix: bool,
}

impl ConformingHost {
    fn new(mut host: Host, config: Config, msix: bool) -> Self {
        host.enable(8);
        host.testbed.settle();
        let mut tame = Self { tracker: Tracker::new(host), config, msix };
        tame.start();
        tame
    }

    /// Starts with two I/O queue pairs, because most lists test I/O.
    fn start(&mut self) {
        if self.config.settings.doorbell_buffer {
            let (shadow, event_index) = commands::BUFFERS;
            // The drive refuses the command while it sanitizes. The host then uses the doorbell
            // registers.
            let done = self.tracker.host.give_buffers(shadow, event_index);
            let sanitizes = [StatusCode::SANITIZE_IN_PROGRESS, StatusCode::SANITIZE_FAILED];
            assert!(done.status.is_success() || sanitizes.contains(&done.status.code));
        }
        for id in 1..3 {
            self.tracker.toggle(id, 8 * id);
        }
        for _ in 0..2 {
            self.tracker.host.testbed.settle();
            self.tracker.reap(0);
        }
    }

    fn run(&mut self, mut input: Source) {
        for _ in 0..MAX_OPERATIONS {
            if input.is_empty() {
                break;
            }
            self.step(&mut input);
            self.tracker.host.testbed.subsystem.check_invariants();
            if self.tracker.host.testbed.controller().is_fatal() {
                self.reset(0);
            }
        }
        self.tracker.finish();
        let testbed = &mut self.tracker.host.testbed;
        testbed.subsystem.check_invariants();
        // The maximum time of interrupt coalescing (NVM Express 1.4, section 5.21.1.8).
        testbed.pass(Duration::from_us(25_500));
        let silent = &testbed.unsignalled;
        assert!(!self.msix || silent.is_empty(), "no interrupt for queues {silent:?}");
    }

    fn step(&mut self, input: &mut Source) {
        let operation = input.byte() % 32;
        let queue = u16::from(input.byte() % 4);
        match operation {
            0..=11 => random_event(&mut self.tracker.host.testbed, operation, input),
            12 | 13 => {
                let command = commands::admin(input);
                self.tracker.send(0, command);
            }
            14..=24 => {
                let command = commands::io(input);
                if queue > 0 {
                    self.tracker.send(queue, command);
                }
            }
            25..=27 => {
                self.tracker.reap(queue);
            }
            28 if queue > 0 => {
                self.tracker.toggle(queue, u16::from(input.byte() % 14) + 2);
            }
            29 => {
                let kind = input.byte();
                if kind < 64 {
                    self.reset(kind);
                }
            }
            30 if queue > 0 => {
                let [first, second] = commands::pair(input);
                let between = input.byte() % 32;
                if self.tracker.send(queue, first) {
                    if between < 12 {
                        random_event(&mut self.tracker.host.testbed, between, input);
                    }
                    self.tracker.send(queue, second);
                }
            }
            _ => {}
        }
    }

    /// Resets the controller in the way that `kind` selects, and starts the host again.
    fn reset(&mut self, kind: u8) {
        let host = &mut self.tracker.host;
        let records = !host.testbed.store.records.is_empty();
        match kind % 5 {
            0 => host.configure(entry_sizes()),
            1 => {
                let shutdown = ShutdownNotice::Normal;
                host.configure(Configuration { enable: true, shutdown, ..entry_sizes() });
                host.testbed.settle();
                host.configure(entry_sizes());
            }
            2 => {
                host.testbed.function_level_reset();
                host.testbed.enumerate(self.msix);
            }
            3 if records => {
                host.testbed.power_cycle(&self.config.settings);
                host.testbed.enumerate(self.msix);
            }
            _ => {
                host.testbed.hot_reset();
                host.testbed.enumerate(self.msix);
            }
        }
        host.testbed.settle_lost();
        assert!(!host.status().ready);
        host.enable(8);
        host.testbed.settle();
        assert!(host.status().ready);
        self.tracker.forget();
        self.tracker.host.testbed.unsignalled.clear();
        self.start();
    }
}

/// Runs a host that writes any value to any address.
fn run_arbitrary(mut host: Host, mut input: Source) {
    host.enable(16);
    host.testbed.settle();
    host.create(1, 16);
    host.create(2, 4);
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        arbitrary_step(&mut host, &mut input);
        host.testbed.subsystem.check_invariants();
    }
    host.testbed.settle();
    host.testbed.subsystem.check_invariants();
}

fn arbitrary_step(host: &mut Host, input: &mut Source) {
    let operation = input.byte() % 24;
    let queue = u16::from(input.byte() % 3);
    let testbed = &mut host.testbed;
    match operation {
        0..=11 => random_event(testbed, operation, input),
        12 => {
            let (offset, size) = (input.u16() % 0x40, input.pick(&[1, 2, 4, 8]));
            let offset = u64::from(offset) & !(size as u64 - 1);
            testbed.write(offset, size, input.u64());
        }
        13 => {
            let offset = u64::from(input.u16()) & !3;
            testbed.write(offset, 4, input.u32().into());
        }
        14 => {
            let offset = u64::from(input.u16()) & !7;
            testbed.read(offset, input.pick(&[1, 2, 4, 8]));
        }
        15 | 16 => {
            let value = u32::from(input.byte() % 20);
            let doorbell = match input.byte() % 2 {
                0 => Doorbell::SubmissionTail(queue),
                _ => Doorbell::CompletionHead(queue),
            };
            host.doorbell(doorbell, value);
        }
        17 => {
            let register = input.u16() & 0xffc;
            testbed.config_write(register, input.u32());
        }
        18 => testbed.hot_reset(),
        19 => testbed.enumerate(input.byte() & 1 == 0),
        20 => host.enable(16),
        _ => arbitrary_send(host, queue, input),
    }
}

fn arbitrary_send(host: &mut Host, queue: u16, input: &mut Source) {
    if host.pairs[usize::from(queue)].is_none() {
        return;
    }
    let command = match input.byte() % 4 {
        0 => commands::anything(input),
        1 => commands::admin(input),
        _ => commands::io(input),
    };
    host.put_as(queue, command);
    host.ring(queue);
    host.peek(queue, 4);
}

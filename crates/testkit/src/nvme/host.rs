//! A host that sends single commands.

use super::pair::admin_sizes;
use super::{DATA, Pair, Testbed, create_commands, entry_sizes, event_request, get_log, identify};
use ::nvme::Config;
use std::collections::VecDeque;
use wire::nvme::opcode::admin;
use wire::nvme::register::{
    ACQ, AQA, ASQ, CC, CSTS, Configuration, ControllerStatus, DOORBELLS, Doorbell,
};
use wire::nvme::{
    Command, CommandsSupported, Completion, ErrorLogEntry, IDENTIFY, IdentifyController,
    IdentifyNamespace, SmartLog, StatusCode, cns, log_page,
};

/// Address of Identify and log data: the last page of the data.
const ANSWERS: u64 = DATA + 0x3f_f000;

/// A host that sends single commands. Queues have up to 512 entries.
pub struct Host {
    /// The controller, and the machine around the controller.
    pub testbed: Testbed,
    /// Queue pairs by identifier; 0 is the admin pair.
    pub pairs: Vec<Option<Pair>>,
    /// Completions that the host took while it waited for another one, oldest first.
    pub done: VecDeque<Completion>,
    /// CC.AMS (arbitration) that [`enable`](Self::enable) sets.
    pub arbitration: u8,
    /// Addresses of the shadow doorbell buffer and the EventIdx buffer; `None` without buffers.
    pub shadow: Option<(u64, u64)>,
    /// Number of writes of doorbell registers.
    pub rung: u64,
    next_cid: u16,
}

impl Host {
    /// Creates a host with an enumerated and enabled drive.
    pub fn new(config: Config) -> Self {
        let mut host = Self::over(Testbed::enumerated(config, true));
        host.enable(32);
        assert!(host.status().ready);
        host
    }

    /// Creates a host as [`new`](Self::new), with I/O queue pair 1 of 16 entries and vector 1.
    pub fn with_queue(config: Config) -> Self {
        let mut host = Self::new(config);
        host.create(1, 16);
        host
    }

    /// Creates a host for a testbed, without changes to the testbed.
    pub fn over(testbed: Testbed) -> Self {
        let (pairs, done) = (vec![None; 65], VecDeque::new());
        Self { testbed, pairs, done, arbitration: 0, shadow: None, rung: 0, next_cid: 0 }
    }

    /// Creates a host for a testbed after power-on: enumerates and starts the drive.
    pub fn started(mut testbed: Testbed) -> Self {
        testbed.enumerate(true);
        let mut host = Self::over(testbed);
        host.start();
        host
    }

    /// Enables an enumerated drive, lets it store its changes, and creates I/O queue pair 1 of 16
    /// entries with vector 1.
    ///
    /// # Panics
    /// If the drive does not become ready.
    pub fn start(&mut self) {
        self.enable(32);
        self.testbed.settle();
        assert!(self.status().ready);
        self.create(1, 16);
    }

    /// Programs the admin queues with `entries` entries each, and sets CC.EN.
    pub fn enable(&mut self, entries: u16) {
        let pair = Pair::new(0, entries);
        self.testbed.write(AQA, 4, admin_sizes(entries));
        self.testbed.write(ASQ, 8, pair.sq());
        self.testbed.write(ACQ, 8, pair.cq());
        pair.clear(&mut self.testbed);
        self.pairs = vec![None; 65];
        self.pairs[0] = Some(pair);
        self.shadow = None;
        let arbitration = self.arbitration;
        self.configure(Configuration { enable: true, arbitration, ..entry_sizes() });
    }

    /// Writes CC (controller configuration).
    pub fn configure(&mut self, configuration: Configuration) {
        self.testbed.write(CC, 4, configuration.bits().into());
        self.testbed.take_tlps(pcie::Ready::ALL);
    }

    /// Reads CSTS (controller status).
    pub fn status(&mut self) -> ControllerStatus {
        ControllerStatus::from_bits(self.testbed.read(CSTS, 4) as u32)
    }

    /// Sends Doorbell Buffer Config with zeroed buffers. The host must not have used I/O queues
    /// before.
    pub fn give_buffers(&mut self, shadow: u64, event_index: u64) -> Completion {
        for buffer in [shadow, event_index] {
            self.testbed.put(buffer, &[0; 4096]);
        }
        let opcode = admin::DOORBELL_BUFFER_CONFIG;
        let command = Command { opcode, prp1: shadow, prp2: event_index, ..Command::default() };
        let done = self.admin(command);
        self.shadow = done.status.is_success().then_some((shadow, event_index));
        done
    }

    /// Zeroes the shadow doorbells of a queue pair that is about to be created.
    pub fn clear_shadow(&mut self, id: u16) {
        if let Some((shadow, _)) = self.shadow {
            self.testbed.put(shadow + u64::from(id) * 8, &[0; 8]);
        }
    }

    /// Creates a queue pair. The identifier of the pair is also the interrupt vector.
    pub fn create(&mut self, id: u16, entries: u16) {
        let pair = Pair::new(id, entries);
        pair.clear(&mut self.testbed);
        self.clear_shadow(id);
        for command in create_commands(&pair) {
            self.admin(command).expect_success();
        }
        self.pairs[usize::from(id)] = Some(pair);
    }

    /// Puts a command into a queue with a new identifier, without a doorbell. Returns the
    /// identifier.
    pub fn put(&mut self, queue: u16, command: Command) -> u16 {
        self.next_cid = self.next_cid.wrapping_add(1);
        let cid = self.next_cid;
        self.put_as(queue, Command { cid, ..command });
        cid
    }

    fn pair(&mut self, queue: u16) -> &mut Pair {
        self.pairs[usize::from(queue)].as_mut().expect("the queue exists")
    }

    /// Puts a command into a queue without changes.
    pub fn put_as(&mut self, queue: u16, command: Command) {
        let pair = self.pairs[usize::from(queue)].as_mut().expect("the queue exists");
        pair.put(&mut self.testbed, command);
    }

    /// Rings the tail doorbell.
    pub fn ring(&mut self, queue: u16) {
        let tail = self.pair(queue).tail;
        self.doorbell(Doorbell::SubmissionTail(queue), tail.into());
    }

    /// Rings the tail doorbell, and answers the read of the entries; with `refuse`, answers with
    /// Unsupported Request.
    ///
    /// # Panics
    /// If the drive does not read entries.
    pub fn fetch(&mut self, queue: u16, refuse: bool) {
        self.ring(queue);
        self.testbed.take_tlps(pcie::Ready::ALL);
        let read = self.testbed.reads.pop_front().expect("a fetch");
        self.testbed.answer_read(read, refuse);
        self.testbed.take_tlps(pcie::Ready::ALL);
    }

    /// Rings the tail doorbell, and processes everything that needs no time.
    pub fn carry_out(&mut self, queue: u16) {
        self.ring(queue);
        self.testbed.settle();
    }

    /// Writes a doorbell. With doorbell buffers, writes the shadow doorbell, and the register only
    /// if EventIdx requires a write.
    pub fn doorbell(&mut self, doorbell: Doorbell, value: u32) {
        if self.updates_shadow(doorbell, value) == Some(false) {
            return;
        }
        self.rung += 1;
        self.testbed.write(doorbell.offset(0), 4, value.into());
    }

    /// Writes a shadow doorbell. Returns whether the register must be written too, by the rule of
    /// Linux (`nvme_dbbuf_need_event`): the write passes the value of EventIdx. Returns `None`
    /// without a shadow doorbell.
    pub fn updates_shadow(&mut self, doorbell: Doorbell, value: u32) -> Option<bool> {
        let (shadow, event_index) = self.shadow?;
        let at = doorbell.offset(0) - DOORBELLS;
        // The admin queue has no shadow doorbell.
        if at < 8 {
            return None;
        }
        let load = |address: u64| {
            let bytes = self.testbed.load(address, 4).expect("buffers in memory");
            u32::from_le_bytes(bytes.try_into().expect("four bytes")) as u16
        };
        let (old, event) = (load(shadow + at), load(event_index + at));
        self.testbed.put(shadow + at, &value.to_le_bytes());
        let new = value as u16;
        Some(new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old))
    }

    /// Takes the completions of a queue and rings the head doorbell.
    pub fn reap(&mut self, queue: u16) -> Vec<Completion> {
        let done = self.peek(queue, usize::MAX);
        if !done.is_empty() {
            let head = self.pair(queue).head;
            self.doorbell(Doorbell::CompletionHead(queue), head.into());
        }
        done
    }

    /// Takes at most `most` completions of a queue, without a head doorbell.
    pub fn peek(&mut self, queue: u16, most: usize) -> Vec<Completion> {
        let Some(pair) = self.pairs[usize::from(queue)].as_mut() else { return Vec::new() };
        std::iter::from_fn(|| pair.take(&mut self.testbed)).take(most).collect()
    }

    /// Sends a command and returns its completion. Other completions are stored in `done`.
    ///
    /// # Panics
    /// If the completion does not come.
    pub fn execute(&mut self, queue: u16, command: Command) -> Completion {
        let cid = self.put(queue, command);
        self.carry_out(queue);
        let mut found = None;
        for completion in self.reap(queue) {
            assert_eq!(completion.sq_id, queue);
            if completion.cid == cid {
                assert!(found.replace(completion).is_none(), "two completions");
            } else {
                self.done.push_back(completion);
            }
        }
        found.unwrap_or_else(|| panic!("no completion of {command:?}"))
    }

    /// Sends an admin command and returns the completion.
    pub fn admin(&mut self, command: Command) -> Completion {
        self.execute(0, command)
    }

    /// Sends Identify, and returns the data, which use a reserved page of host memory.
    ///
    /// # Panics
    /// If the command fails.
    pub fn identify(&mut self, cns: u8, nsid: u32) -> [u8; IDENTIFY] {
        self.admin(identify(cns, nsid, ANSWERS)).expect_success();
        self.answer()
    }

    /// Returns Identify Controller data.
    pub fn controller_data(&mut self) -> IdentifyController {
        IdentifyController::decode(&self.identify(cns::CONTROLLER, 0))
    }

    /// Returns Identify Namespace data.
    pub fn namespace_data(&mut self, nsid: u32) -> IdentifyNamespace {
        IdentifyNamespace::decode(&self.identify(cns::NAMESPACE, nsid))
    }

    /// Returns the first `N` bytes of a log page.
    ///
    /// # Panics
    /// If the command fails.
    pub fn log<const N: usize>(&mut self, page: u8) -> [u8; N] {
        self.admin(get_log(page, N, ANSWERS)).expect_success();
        self.answer()
    }

    fn answer<const N: usize>(&self) -> [u8; N] {
        let data = self.testbed.load(ANSWERS, N).expect("host memory");
        data.try_into().expect("as long as asked for")
    }

    /// Returns the newest entry of the error log.
    pub fn last_error(&mut self) -> ErrorLogEntry {
        ErrorLogEntry::decode(&self.log(log_page::ERROR))
    }

    /// Returns the SMART / health log.
    pub fn smart(&mut self) -> SmartLog {
        SmartLog::decode(&self.log(log_page::SMART))
    }

    /// Returns the log of supported commands and their effects.
    pub fn effects(&mut self) -> CommandsSupported {
        CommandsSupported::decode(&self.log(log_page::EFFECTS))
    }

    /// Sends an Asynchronous Event Request and returns its identifier.
    pub fn request_event(&mut self) -> u16 {
        let cid = self.put(0, event_request());
        self.carry_out(0);
        cid
    }

    /// Sends an I/O command to queue 1 and returns the completion.
    pub fn io(&mut self, command: Command) -> Completion {
        self.execute(1, command)
    }
}

/// Checks of a completion.
pub trait Expect {
    /// Returns dword 0 of the completion of a successful command.
    ///
    /// # Panics
    /// If the command failed.
    fn expect_success(&self) -> u32;
    /// Checks that a command failed with `code`, DNR and More.
    ///
    /// # Panics
    /// If the status has another code, or lacks DNR (a permanent failure) or More (an entry in the
    /// error log).
    fn expect_failure(&self, code: StatusCode);
}

impl Expect for Completion {
    fn expect_success(&self) -> u32 {
        assert!(self.status.is_success(), "{:?}", self.status);
        self.result
    }

    fn expect_failure(&self, code: StatusCode) {
        assert_eq!(self.status.code, code);
        assert!(self.status.do_not_retry && self.status.more, "{:?}", self.status);
    }
}

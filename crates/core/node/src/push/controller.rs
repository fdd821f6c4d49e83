//! The state of one followed NVMe controller: registers, queues, admin commands in flight.

use super::Reason;
use super::doorbell::Turn;
use super::identify::Capture;
use super::in_flight::InFlight;
use super::learn::Watch;
use super::reset_event::AdminTail;
use super::unread::Unread;
use follow::{Effect, Queue, Queues, Registers, Ring, completion_entries, touches};
use pcie::root::MSI_WINDOW;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::nvme::register::{ACQ, AQA, CC, DOORBELLS, Doorbell, NSSR, ShutdownNotice};
use wire::nvme::{
    COMPLETION_ENTRY, Command, Completion, IDENTIFY, SUBMISSION_ENTRY, StatusCode, cns, opcode,
};
use wire::push::{self, Record};
use wire::tlp::{self, MemoryRequest, Tlp};

/// CMBMSC and PMRMSC (NVM Express 1.4, sections 3.1.14 and 3.1.24). With them, host addresses may
/// be in the controller's own memory.
const OWN_MEMORY: [u64; 2] = [0x50, 0xe14];
/// The most namespaces whose format is kept.
const MOST_FORMATS: usize = 4096;
/// Queues are followed only with the entry sizes of the NVM command set, as powers of two
/// (section 3.1.5, figure 73).
const ENTRY_SIZES: (u8, u8) = (SUBMISSION_ENTRY.ilog2() as u8, COMPLETION_ENTRY.ilog2() as u8);

/// A submission queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Submission {
    pub id: u16,
    pub ring: Ring,
    pub tail: u16,
    /// SQ head of the last completion entry.
    pub head: u16,
    completion_queue: u16,
    /// Whether the receiver was notified of the queue.
    pub announced: bool,
    /// Whether the deletion of the queue is under way.
    pub suspended: bool,
    /// Number of slots submitted by doorbells so far.
    rung: u64,
    /// Number of commands completed so far.
    completed: u64,
    /// Number of commands up to and including the last one pushed.
    pushed_until: u64,
}

impl Submission {
    fn new(id: u16, ring: Ring, completion_queue: u16) -> Self {
        Self { id, ring, completion_queue, ..Self::default() }
    }

    /// Moves the tail; returns the first new slot and the number of new slots.
    pub(super) fn ring(&mut self, tail: u16) -> (u16, u16) {
        let first = std::mem::replace(&mut self.tail, tail);
        let count = self.ring.distance(first, tail);
        self.rung += u64::from(count);
        (first, count as u16)
    }

    /// Notes the last `count` slots, of which the first `pushed` were pushed.
    pub(super) fn pushed(&mut self, count: usize, pushed: usize) {
        if pushed > 0 {
            self.pushed_until = self.rung - (count - pushed) as u64;
        }
    }

    /// Whether one of the last `rest` slots may hold a push from the previous lap.
    pub(super) fn may_hold(&self, rest: u64) -> bool {
        rest > 0
            && self.pushed_until > 0
            && self.pushed_until + u64::from(self.ring.entries()) > self.rung - rest
    }
}

/// A controller below the root port.
#[derive(Debug, Default)]
pub(super) struct Controller {
    pub registers: Registers,
    enabled: bool,
    /// Whether the admin queues were written since the controller was enabled, so there was a
    /// reset.
    admin_set: bool,
    /// Whether nothing is pushed until the next controller reset.
    off: bool,
    /// Why the controller's state is unknown until its next reset.
    lost: Option<Reason>,
    /// Whether the controller may have its own memory at host addresses.
    own_memory: bool,
    /// Whether a submission queue other than the admin queue was created.
    io_queues: bool,
    /// Whether there are submission queues that are not followed.
    others: bool,
    /// A command from whose transfer a block size may be learned.
    pub watch: Option<Watch>,
    pub queues: Queues<Submission, Ring>,
    /// The tail of the admin completion queue; `None` if the driver may no longer use the queue.
    pub admin_tail: Option<AdminTail>,
    /// Admin commands in flight.
    pub admin: BTreeMap<u16, Command>,
    /// Admin commands whose entries are not yet known.
    pub unread: Unread,
    captures: BTreeMap<u16, Capture>,
    /// Binary logarithms of block sizes, by NSID.
    pub formats: BTreeMap<u32, u8>,
    /// Bytes pushed for commands that are not complete.
    pub in_flight: InFlight,
    /// Whether the receiver may have pushed bytes.
    pub has_pushed: bool,
}

impl Controller {
    /// The reason why nothing may be pushed, if any.
    pub(super) fn obstacle(&self) -> Option<Reason> {
        match self {
            Self { own_memory: true, .. } => Some(Reason::OwnMemory),
            Self { lost: Some(reason), .. } => Some(*reason),
            Self { enabled: false, .. } => Some(Reason::Controller),
            Self { off: true, .. } => Some(Reason::DoorbellBuffer),
            // The effects of these admin commands are not yet known.
            Self { unread, .. } if !unread.is_empty() => Some(Reason::Memory),
            _ => None,
        }
    }

    /// Fails unless a namespace is certain to have the opcodes of the NVM command set. With several
    /// command sets (CC.CSS 110b), this holds for namespaces whose data Identify returns by CNS 00h
    /// (NVM Express 2.0, section 5.17.2.1).
    pub(super) fn has_nvm_commands(&self, nsid: u32) -> Result<(), Reason> {
        match self.registers.configuration().command_set {
            0 => Ok(()),
            6 if self.formats.contains_key(&nsid) => Ok(()),
            6 => Err(Reason::BlockSize),
            _ => Err(Reason::Opcode),
        }
    }

    /// Handles a write to registers, and sends the messages that must precede it.
    pub(super) fn register_write(&mut self, offset: u64, bytes: &[u8], turn: &mut Turn<'_, '_>) {
        self.registers.write(offset, bytes);
        let touches = |at, length| touches(offset, bytes, at, length);
        if OWN_MEMORY.iter().any(|at| touches(*at, 8)) {
            self.own_memory = true;
            self.end_before(turn);
        }
        if offset >= DOORBELLS {
            return self.doorbells(offset, bytes, turn);
        }
        self.admin_set |= touches(AQA, ACQ + 8 - AQA);
        if touches(NSSR, 4) {
            self.disable(turn);
        }
        if touches(CC, 4) {
            self.configure(turn);
        }
    }

    fn configure(&mut self, turn: &mut Turn<'_, '_>) {
        let configuration = self.registers.configuration();
        if !configuration.enable || configuration.shutdown != ShutdownNotice::None {
            return self.disable(turn);
        }
        if (self.enabled || self.lost.is_some()) && !self.admin_set {
            return;
        }
        // After a function level reset the queues are set again. The reset has invalidated all
        // pushed bytes, unless an unexpected doorbell followed.
        self.disable(turn);
        let admin = self.registers.admin_queues();
        self.enabled = admin.is_some();
        self.lost = (!self.enabled).then_some(Reason::Controller);
        if let Some((submission, completion)) = admin {
            self.queues.add_submission(0, submission, Submission::new(0, submission, 0));
            self.queues.add_completion(0, completion, completion);
            self.admin_tail = Some(AdminTail::START);
        }
    }

    /// Handles a reset or shutdown of the controller.
    fn disable(&mut self, turn: &mut Turn<'_, '_>) {
        self.end_before(turn);
        self.forget();
    }

    /// Forgets everything that a reset ends. Block sizes stay, because host software need not send
    /// Identify again; they go too if an unseen Format command is possible.
    fn forget(&mut self) {
        let Self { registers, own_memory, has_pushed, .. } = *self;
        let seen = self.lost.is_none() && !self.off;
        let formats = std::mem::take(&mut self.formats);
        let formats = if seen { formats } else { BTreeMap::new() };
        *self = Self { registers, own_memory, has_pushed, formats, ..Self::default() };
    }

    /// Handles the loss of the controller's state: pushes nothing until the next controller reset.
    pub(super) fn lose(&mut self, reason: Reason, turn: &mut Turn<'_, '_>) {
        self.end_before(turn);
        self.forget();
        self.lost = Some(reason);
    }

    /// Handles slots of the admin submission queue whose entries are not available: invalidates
    /// everything, and pushes nothing until the controller has read these entries
    /// ([`fetched`](Self::fetched)).
    pub(super) fn misses(
        &mut self,
        queue: &Submission,
        first: u16,
        count: usize,
        turn: &mut Turn<'_, '_>,
    ) {
        self.end_before(turn);
        self.unread.add((0..count).map(|at| queue.ring.after(first, at as u32)));
    }

    /// Invalidates everything, in front of the write of this turn.
    fn end_before(&mut self, turn: &mut Turn<'_, '_>) {
        if let Some(record) = self.end_all() {
            turn.end(&record);
        }
    }

    /// Invalidates everything that may have been pushed. The receiver forgets the queues as well.
    pub(super) fn end_all(&mut self) -> Option<Record> {
        for queue in self.queues.submission.values_mut() {
            (queue.announced, queue.pushed_until) = (false, 0);
        }
        std::mem::take(&mut self.has_pushed).then_some(Record::EndAll)
    }

    fn doorbells(&mut self, offset: u64, bytes: &[u8], turn: &mut Turn<'_, '_>) {
        for (at, value) in (offset..).step_by(4).zip(bytes.chunks(4)) {
            // Software writes whole double words (section 3.1.24); two bytes have the value.
            let Some(value) = value.first_chunk().map(|bytes| u16::from_le_bytes(*bytes)) else {
                continue;
            };
            self.learn_stride(at);
            match self.doorbell(at) {
                Some(Doorbell::SubmissionTail(queue)) => self.ring(queue, value, turn),
                Some(Doorbell::CompletionHead(0)) => {
                    let last = self.queues.completion.get(&0).map_or(0, Ring::last);
                    self.admin_tail = self.admin_tail.filter(|_| value <= last);
                    self.admin_tail.iter_mut().for_each(|tail| tail.head = value);
                }
                // The first doorbell is always known; the bytes after it may be the MSI-X table.
                None if self.registers.stride.is_none() && self.io_queues => {
                    turn.counters.not_pushed.add(Reason::Stride, 1);
                }
                Some(Doorbell::CompletionHead(_)) | None => {}
            }
        }
    }

    /// Learns the stride if host software does not read CAP: while the admin queue is the only
    /// submission queue, a doorbell after the first one is the doorbell of the admin completion
    /// queue.
    fn learn_stride(&mut self, offset: u64) {
        let stride = (offset - DOORBELLS).checked_ilog2().and_then(|log| log.checked_sub(2));
        let certain = self.registers.stride.is_none() && self.enabled && !self.io_queues;
        if let Some(stride) = stride.filter(|_| certain).map(|stride| stride as u8)
            && offset == Doorbell::CompletionHead(0).offset(stride)
        {
            self.registers.stride = Some(stride);
        }
    }

    /// The doorbell at an offset. The first one always belongs to the admin submission queue.
    fn doorbell(&self, offset: u64) -> Option<Doorbell> {
        Doorbell::at(offset, self.registers.stride.or((offset == DOORBELLS).then_some(0))?)
    }

    /// The record that announces a queue to the receiver.
    pub(super) fn announcement(&self, queue: &Submission) -> Option<Record> {
        let completion = self.queues.completion.get(&queue.completion_queue)?;
        Some(Record::Queue(push::Queue {
            id: queue.id,
            last: queue.ring.last(),
            head: queue.head,
            completion_last: completion.last(),
            base: queue.ring.base(),
            completion_base: completion.base(),
        }))
    }

    /// Handles an admin command that the host submits.
    pub(super) fn submitted(&mut self, command: Command, turn: &mut Turn<'_, '_>) {
        let (low, high) = (command.cdw10 as u16, (command.cdw10 >> 16) as u16);
        match command.opcode {
            opcode::admin::DELETE_SQ => {
                if let Some(queue) =
                    self.queues.submission.get_mut(&low).filter(|queue| queue.id != 0)
                {
                    queue.suspended = true;
                    let announced = std::mem::take(&mut queue.announced);
                    queue.pushed_until = 0;
                    if announced {
                        turn.end(&Record::EndQueue(low));
                    }
                }
            }
            // SQID in bits 15:0, CID in bits 31:16 of dword 10 (section 5.1).
            opcode::admin::ABORT if self.has_pushed => {
                turn.end(&Record::EndCommand { queue: low, command: high });
            }
            opcode::admin::DOORBELL_BUFFER_CONFIG => {
                self.end_before(turn);
                self.off = true;
            }
            opcode::admin::IDENTIFY if command.cdw10 as u8 == cns::NAMESPACE => {
                // Without a list, the data are one page.
                let ranges =
                    nvme::follow(&command, IDENTIFY, self.registers.page(), true, |_, _| None);
                let capture = ranges.map(|ranges| (command.cid, Capture::new(ranges)));
                self.captures.extend(capture);
            }
            _ => self.forget_formats(Effect::from_command(&command)),
        }
        self.admin.insert(command.cid, command);
    }

    /// Forgets the block sizes that a command may change.
    fn forget_formats(&mut self, effect: Effect) {
        if matches!(effect, Effect::Formats | Effect::Attachment) {
            self.formats.clear();
            self.captures.clear();
        }
    }

    /// Watches a command, if its namespace's block size is not known and no other command of the
    /// controller has data.
    pub(super) fn watch(&mut self, queue: u16, command: Command) {
        let wanted = self.registers.configuration().command_set == 0
            && !self.formats.contains_key(&command.nsid)
            && self.formats.len() < MOST_FORMATS;
        let one = |queue: &Submission| {
            if queue.id == 0 { 0 } else { queue.rung.saturating_sub(queue.completed) }
        };
        let alone = || {
            self.queues.submission.values().map(one).sum::<u64>() == 1
                && !self.others
                && self.admin.values().all(|c| c.opcode == opcode::admin::ASYNC_EVENT_REQUEST)
        };
        self.watch = if wanted && alone() { Watch::new(queue, command) } else { None };
    }

    /// Handles a read of host memory by the controller.
    pub(super) fn host_read(&mut self, request: MemoryRequest) {
        if self.unread.is_empty() && self.watch.is_none() {
            return;
        }
        let address = request.first_byte();
        let queue = self.queues.at(address);
        if !self.unread.is_empty() && queue == Some(Queue::Submission(0)) {
            self.unread.read(request);
        }
        if let Some(watch) = &mut self.watch
            && !matches!(queue, Some(Queue::Submission(_)))
        {
            watch.moves(false, address, request.byte_count());
        }
    }

    /// Handles host memory that the controller receives.
    pub(super) fn fetched(&mut self, c: &tlp::Completion, data: &[u8], turn: &mut Turn<'_, '_>) {
        let Some(ring) = self.queues.submission.get(&0).map(|queue| queue.ring) else { return };
        for command in self.unread.take(c, data, ring.base()) {
            self.submitted(command, turn);
        }
    }

    /// Whether a write to these addresses neither reveals anything nor invalidates anything.
    pub(super) fn ignores(&self, written: &Range<u64>) -> bool {
        self.captures.is_empty() && self.watch.is_none() && !self.queues.touches(written)
    }

    /// Handles a write of the controller to host memory. Returns the resulting invalidation.
    pub(super) fn host_write(&mut self, tlp: &Tlp, request: MemoryRequest) -> Option<Record> {
        if !self.captures.is_empty() {
            for (at, bytes) in pcie::split::enabled_runs(&request, &tlp.data) {
                let address = request.address + at as u64;
                self.captures.values_mut().for_each(|capture| capture.write(address, &bytes));
            }
        }
        let Some(Queue::Completion(id)) = self.queues.at(request.address) else {
            let interrupt = MSI_WINDOW.contains(&request.address);
            if let Some(watch) = self.watch.as_mut().filter(|_| !interrupt) {
                for (at, bytes) in pcie::split::enabled_runs(&request, &tlp.data) {
                    watch.moves(true, request.address + at as u64, bytes.len());
                }
            }
            return None;
        };
        let Some(entries) = completion_entries(tlp, request) else {
            let record = self.end_all();
            self.forget();
            self.lost = Some(Reason::Lost);
            return record;
        };
        let mut at = request.address;
        for entry in entries {
            if id == 0
                && let Some(ring) = self.queues.completion.get(&0)
            {
                let tail = self.admin_tail.take();
                self.admin_tail = tail.and_then(|tail| tail.behind(at, entry.phase, ring));
                at += COMPLETION_ENTRY as u64;
            }
            self.completed(entry);
        }
        None
    }

    fn completed(&mut self, entry: Completion) {
        self.in_flight.remove(entry.sq_id, entry.cid);
        let queue = self.queues.submission.get_mut(&entry.sq_id);
        if let Some(queue) = queue.filter(|queue| entry.sq_head <= queue.ring.last()) {
            queue.head = entry.sq_head;
            queue.completed += 1;
        }
        if let Some(watch) = self.watch.take_if(|watch| watch.id == (entry.sq_id, entry.cid))
            && entry.status.code == StatusCode::SUCCESS
        {
            let nsid = watch.nsid();
            self.formats
                .extend(watch.block_shift(self.registers.page()).map(|shift| (nsid, shift)));
        }
        if entry.sq_id == 0
            && let Some(command) = self.admin.remove(&entry.cid)
        {
            let capture = self.captures.remove(&entry.cid);
            match entry.status.code == StatusCode::SUCCESS {
                true => self.succeeded(&command, capture),
                false => self.failed(&command),
            }
        }
    }

    fn succeeded(&mut self, command: &Command, capture: Option<Capture>) {
        let sizes = self.registers.configuration();
        let known = (sizes.sq_entry_size, sizes.cq_entry_size) == ENTRY_SIZES;
        match Effect::from_command(command) {
            Effect::CreateCompletion { id, ring: Some(ring), .. } if known => {
                self.queues.add_completion(id, ring, ring);
            }
            Effect::CreateCompletion { .. } => {}
            Effect::CreateSubmission { id, ring, completion } => {
                self.io_queues = true;
                let followed = known && self.queues.completion.contains_key(&completion);
                match ring.filter(|_| followed) {
                    Some(ring) => {
                        let queue = Submission::new(id, ring, completion);
                        self.queues.add_submission(id, ring, queue);
                    }
                    None => self.others = true,
                }
            }
            Effect::DeleteSubmission(id) => {
                self.queues.remove_submission(id);
                self.in_flight.remove_queue(id);
            }
            Effect::DeleteCompletion(id) => {
                self.queues.remove_completion(id);
            }
            // Other data structures do not change the known format.
            Effect::Identify(nsid) => {
                let shift = capture.and_then(|capture| capture.block_shift());
                self.formats.remove(&nsid);
                let room = self.formats.len() < MOST_FORMATS;
                self.formats.extend(shift.filter(|_| room).map(|shift| (nsid, shift)));
            }
            effect => self.forget_formats(effect),
        }
    }

    fn failed(&mut self, command: &Command) {
        match command.opcode {
            opcode::admin::DELETE_SQ => {
                if let Some(queue) = self.queues.submission.get_mut(&(command.cdw10 as u16)) {
                    queue.suspended = false;
                }
            }
            opcode::admin::DOORBELL_BUFFER_CONFIG => self.off = false,
            _ => {}
        }
    }
}

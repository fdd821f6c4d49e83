//! Reads and writes of contents with checksums by io_uring. A read has the data and their checksums
//! as two transfers, and is verified when both have ended. A write has its intent, then data and
//! checksums. If anything fails, a thread executes the whole request, which also reports errors.

use super::Task;
use super::checksums::{Checksums, LARGEST, UNIT, mismatches, sums_of, units_around};
use super::transfers::{Progress, Transfers};
use crate::media::done;
use bytes::{Bytes, BytesMut};
use nvme::block::Operation;
use std::io;

/// What a transfer belongs to.
#[derive(Debug)]
pub(super) enum Part {
    /// A request without checksums.
    Whole(Task),
    /// The data of a request with this number.
    Data(usize),
    /// The checksums of the data.
    Sums(usize),
    /// The intent of a write.
    Intent(usize),
}

/// A request under way.
#[derive(Debug)]
struct Pending {
    task: Task,
    /// Number of transfers under way.
    left: u8,
    failed: bool,
    /// Number of bytes of the data and of the checksums.
    bytes: (usize, usize),
    /// The data of a read.
    data: BytesMut,
    /// The checksums: of a read as read, of a write to be written.
    sums: Bytes,
}

/// The requests under way by number.
#[derive(Debug, Default)]
pub(super) struct Checked {
    requests: Vec<Option<Pending>>,
    free: Vec<usize>,
}

impl Checked {
    fn add(&mut self, request: Pending) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.requests[number] = Some(request);
        number
    }

    fn get(&mut self, number: usize) -> &mut Pending {
        self.requests[number].as_mut().expect("it is under way")
    }

    fn remove(&mut self, number: usize) -> Pending {
        self.free.push(number);
        self.requests[number].take().expect("it is under way")
    }
}

impl Transfers {
    /// Starts a read, or a write of whole units. Returns another request, for a thread.
    pub(super) fn start_checked(&mut self, task: Task, checksums: &Checksums) -> Option<Task> {
        if self.ring.room() < 2 {
            return Some(task);
        }
        let (offset, length) = task.0.operation.range();
        let range = offset..offset + length;
        let units = units_around(&range);
        let sums = ((units.end - units.start) / UNIT * 4) as usize;
        let bytes = ((units.end - units.start) as usize, sums);
        let pending = |task, left, sums| Pending {
            task,
            left,
            failed: false,
            bytes,
            data: BytesMut::new(),
            sums,
        };
        match &task.0.operation {
            Operation::Read { .. } => {
                let number = self.checked.add(pending(task, 2, Bytes::new()));
                let data = BytesMut::zeroed(bytes.0);
                self.ring.read(units.start, data, Part::Data(number));
                let place = checksums.layout.sum(units.start);
                self.ring.read(place, BytesMut::zeroed(sums), Part::Sums(number));
            }
            Operation::Write { data, .. } if units == range && length <= LARGEST => {
                let sums = sums_of(data);
                let (place, intent) = checksums.intent(offset, data, &sums, task.1.intent());
                let number = self.checked.add(pending(task, 1, sums.into()));
                self.ring.write(place, intent.into(), Part::Intent(number));
            }
            _ => return Some(task),
        }
        None
    }

    /// Handles the end of a transfer of a request with checksums.
    pub(super) fn part_ended(
        &mut self,
        part: Part,
        read: Option<BytesMut>,
        result: io::Result<usize>,
        checksums: &Checksums,
    ) -> Progress {
        let (Part::Data(number) | Part::Sums(number) | Part::Intent(number)) = part else {
            unreachable!("a request with checksums has parts")
        };
        let pending = self.checked.get(number);
        let expected = match part {
            Part::Data(_) => pending.bytes.0,
            Part::Sums(_) => pending.bytes.1,
            _ => checksums.intent_length(pending.bytes.1),
        };
        pending.failed |= result.ok() != Some(expected);
        pending.left -= 1;
        match (&part, read) {
            (Part::Data(_), Some(read)) => pending.data = read,
            (Part::Sums(_), Some(read)) => pending.sums = read.freeze(),
            _ => {}
        }
        if pending.left > 0 {
            return Progress::Continues;
        }
        let announced = matches!(part, Part::Intent(_));
        if announced && !pending.failed && self.ring.room() >= 2 {
            self.write_data(number, checksums);
            return Progress::Continues;
        }
        let Pending { task, failed, data, sums, .. } = self.checked.remove(number);
        match (&task.0.operation, failed || announced) {
            (Operation::Read { offset, length }, false)
                if mismatches(&data, &sums).next().is_none() =>
            {
                let from = (offset % UNIT) as usize;
                let data = data.freeze().slice(from..from + length);
                Progress::Completed(task.0.id, Ok(data))
            }
            (Operation::Write { .. }, false) => Progress::Completed(task.0.id, done()),
            _ => Progress::ForThread(task),
        }
    }

    /// Starts to write data and checksums of a request whose intent is written.
    fn write_data(&mut self, number: usize, checksums: &Checksums) {
        let pending = self.checked.get(number);
        pending.left = 2;
        let Operation::Write { offset, data } = &pending.task.0.operation else {
            unreachable!("only writes have an intent")
        };
        let (offset, data, sums) = (*offset, data.clone(), pending.sums.clone());
        self.ring.write(offset, data, Part::Data(number));
        self.ring.write(checksums.layout.sum(offset), sums, Part::Sums(number));
    }
}

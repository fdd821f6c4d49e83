//! All lists of a port as one list, as hardware and `tc` take it.

use wire::Duration;

use super::track::Row;
use super::{Entry, GateControlList, GateStates, Gates, Operation, hyperperiod};
use crate::{LocalTime, QUEUES};

impl Gates {
    /// The first list of the port together with the lists of classes, as one list over the least
    /// common multiple of their cycles. Without lists of classes, this is the first list. Later
    /// lists ([`Self::then`]) and the clock do not matter.
    ///
    /// `None` if the lists do not fit into one: too many entries or too long a cycle
    /// ([`GateControlList::MAX_ENTRIES`], [`GateControlList::MAX_CYCLE`]).
    pub fn merged(&self) -> Option<GateControlList> {
        let [(_, last), ..] = &self.classes[..] else { return Some(self.list.clone()) };
        let cycles = self.classes.iter().map(|(_, list)| list.cycle_time());
        let cycle = hyperperiod(cycles.chain([self.list.cycle_time()]))?;
        let base = last.base_time();
        let start = LocalTime::from_ps(i64::try_from(base.as_ps()).ok()?);
        let (mut at, end) = (start, start.as_ps().checked_add_unsigned(cycle.as_ps())?);
        let mut entries = Vec::new();
        while at.as_ps() < end {
            if entries.len() > GateControlList::MAX_ENTRIES {
                return None;
            }
            let (states, operation, until) = self.entry_at(at);
            let interval = Duration::from_ps((until.min(end) - at.as_ps()).cast_unsigned());
            entries.push(Entry { operation, states, interval });
            at = LocalTime::from_ps(until.min(end));
        }
        GateControlList::new(base, cycle, &entries).ok()
    }

    /// The gates at a local time, the operation of an entry that begins then, and when the gates or
    /// the hold change next.
    fn entry_at(&self, at: LocalTime) -> (GateStates, Operation, i64) {
        let mut until = i64::MAX;
        let mut is_open = |next: Option<(LocalTime, LocalTime)>| {
            let (opens, closes) = next.unwrap_or((LocalTime::from_ps(i64::MAX), at));
            let open = opens <= at;
            until = until.min(if open { closes } else { opens }.as_ps());
            open
        };
        let first = |row: Row| row.windows(&self.list).next(at);
        let mut states = 0;
        for queue in 0..QUEUES {
            let windows = match self.class_list(queue) {
                Some(list) => list.windows(queue).next(at),
                None => first(Row::Queue(queue)),
            };
            states |= u8::from(is_open(windows)) << queue;
        }
        let held = is_open(first(Row::Hold));
        let plain = self.list.entries().iter().all(|one| one.operation == Operation::SetGateStates);
        let operation = match held {
            _ if plain => Operation::SetGateStates,
            true => Operation::SetAndHoldMac,
            false => Operation::SetAndReleaseMac,
        };
        (GateStates(states), operation, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Cqf, taprio};
    use wire::Instant;

    #[test]
    fn cyclic_queues_and_a_schedule_become_one_list() {
        let list = taprio::parse("sched-entry H 80 30us sched-entry R 7f 170us").unwrap();
        let gates = Gates::new(list, Clock::default());
        assert_eq!(gates.merged().unwrap().entries(), gates.list().entries());
        let (cycle, base) = (Duration::from_us(50), Instant::from_ns(10_000));
        let pair = Cqf { classes: [2, 3], cycle, base };
        // From 10 us on: classes 2 and 3 alternate each 50 us, beginning with 3; the schedule opens
        // class 7 alone up to 30 us.
        let expected = "base-time 10000 sched-entry H 88 20us sched-entry R 7b 30us \
                        sched-entry R 77 50us sched-entry R 7b 50us sched-entry R 77 40us \
                        sched-entry H 84 10us cycle-time 200us";
        let merged = pair.gates(gates).merged().unwrap();
        assert_eq!(taprio::words(&merged), taprio::words(&taprio::parse(expected).unwrap()));
        let alone = pair.gates(Gates::always_open(Clock::default())).merged().unwrap();
        let expected = "base-time 10000 sched-entry S fb 50us sched-entry S f7 50us";
        assert_eq!(taprio::words(&alone), taprio::words(&taprio::parse(expected).unwrap()));
    }

    #[test]
    fn lists_without_a_common_cycle_are_not_merged() {
        let list = taprio::parse("sched-entry S ff 999983ns").unwrap();
        let pair = Cqf { classes: [2, 3], cycle: Duration::from_ns(999_979), base: Instant::ZERO };
        assert!(pair.gates(Gates::new(list, Clock::default())).merged().is_none());
    }
}

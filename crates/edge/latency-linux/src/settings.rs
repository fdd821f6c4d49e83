//! The requested settings of the machine, and their results.

use crate::hardware::HardwareStamps;
use crate::realtime::{lock_memory, prioritise};
use crate::{MachineOptions, Marks, Operator, Port, Setting};
use linux::cpu::pin;
use linux::time::tai_offset_s;

/// Settings with their results.
#[derive(Clone)]
pub(crate) struct Settings<'a> {
    /// The settings, in the order of the requests.
    pub all: Vec<Setting>,
    operator: &'a dyn Operator,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(operator: &'a dyn Operator) -> Self {
        Self { all: Vec::new(), operator }
    }

    /// Adds a requested setting with its result. Reports a refusal to the operator at once.
    pub(crate) fn add(&mut self, name: &str, wanted: String, granted: Result<(), String>) {
        if let Err(why) = &granted {
            self.operator.warn(&format!("{name} {wanted} refused: {why}"));
        }
        self.all.push(Setting::asked(name, wanted, granted));
    }

    /// Adds a property that was found, not requested.
    pub(crate) fn note(&mut self, name: &str, value: String, note: &str) {
        let (name, note) = (name.to_owned(), note.to_owned());
        self.all.push(Setting { name, value, in_force: true, note });
    }

    /// Requests all settings of this thread and of the process.
    pub(crate) fn machine(&mut self, machine: &MachineOptions) {
        if machine.lock_memory {
            self.add("locked memory", "all".to_owned(), lock_memory());
        }
        if let Some(cpu) = machine.cpu {
            self.add("CPU", cpu.to_string(), pin(cpu));
        }
        if let Some(priority) = machine.fifo {
            self.add("SCHED_FIFO", priority.to_string(), prioritise(priority));
        }
        let seconds = tai_offset_s();
        let note = match seconds {
            0 => "CLOCK_TAI equals CLOCK_REALTIME: the kernel's TAI offset is not set",
            _ => "",
        };
        self.note("TAI offset", format!("{seconds} s"), note);
    }

    /// Sets DSCP and priority of a socket. The DSCP comes first, because it also changes the
    /// priority.
    pub(crate) fn marks(&mut self, marks: &Marks, port: &Port) {
        if let Some(dscp) = marks.dscp {
            let set = port.set_dscp(dscp).map_err(|error| error.to_string());
            self.add("DSCP", dscp.to_string(), set);
        }
        if let Some(priority) = marks.priority {
            let set = port.set_priority(priority).map_err(|error| error.to_string());
            self.add("priority", priority.to_string(), set);
        }
    }

    /// Enables time stamps. Hardware stamps are disabled when the returned value is dropped.
    pub(crate) fn stamps(
        &mut self,
        machine: &MachineOptions,
        port: &Port,
    ) -> std::io::Result<Option<HardwareStamps>> {
        let hardware = machine.hardware.as_ref().and_then(|interface| {
            let on = HardwareStamps::on(port, interface);
            let name = "hardware stamps";
            match &on {
                Ok(on) => self.note(name, interface.clone(), &on.note()),
                Err(why) => self.add(name, interface.clone(), Err(why.clone())),
            }
            on.ok()
        });
        port.stamp(hardware.is_some())?;
        if machine.stamp_offset != 0 {
            let value = format!("{} ns", machine.stamp_offset);
            self.note("stamp offset", value, "added to every time stamp of this end, for tests");
        }
        Ok(hardware)
    }
}

/// Shifts the reported stamps of this end by [`MachineOptions::stamp_offset`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift(pub i64);

impl Shift {
    /// Shifts a time in ns.
    pub(crate) fn apply(self, at: u64) -> u64 {
        at.saturating_add_signed(self.0)
    }

    /// Shifts a stamp in ns; 0 means unknown.
    pub(crate) fn stamp(self, at: u64) -> latency::Stamp {
        latency::stamp(at).and_then(|at| latency::stamp(self.apply(at.get())))
    }
}

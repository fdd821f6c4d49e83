//! What was asked of the machine, and what it granted.

use super::document::Setting;
use super::options::{MachineArgs, MarkArgs};
use crate::output::warning;
use live::clock::tai_offset_s;
use live::latency::{HardwareStamps, Port, lock_memory, pin, prioritise};

/// Settings with what became of them.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub Vec<Setting>);

impl Settings {
    /// Adds one; a refusal is also said on standard error.
    pub fn add(&mut self, name: &str, wanted: String, granted: Result<(), String>) {
        if let Err(why) = &granted {
            warning(format_args!("{name} {wanted} refused: {why}"));
        }
        self.0.push(Setting::asked(name, wanted, granted));
    }

    /// Adds one that was looked at, not asked for.
    pub fn note(&mut self, name: &str, value: String, note: &str) {
        let (name, note) = (name.to_owned(), note.to_owned());
        self.0.push(Setting { name, value, in_force: true, note });
    }

    /// Asks for everything that concerns this thread and the process.
    pub fn machine(&mut self, args: &MachineArgs) {
        if args.lock_memory {
            self.add("locked memory", "all".to_owned(), lock_memory());
        }
        if let Some(cpu) = args.cpu {
            self.add("CPU", cpu.to_string(), pin(cpu));
        }
        if let Some(priority) = args.fifo {
            self.add("SCHED_FIFO", priority.to_string(), prioritise(priority));
        }
        let seconds = tai_offset_s();
        let note = match seconds {
            0 => "CLOCK_TAI equals CLOCK_REALTIME: nobody has told the kernel the leap seconds",
            _ => "",
        };
        self.note("TAI offset", format!("{seconds} s"), note);
    }

    /// Marks what a socket sends: DSCP first, which changes the priority too.
    pub fn marks(&mut self, args: &MarkArgs, port: &Port) {
        if let Some(dscp) = args.dscp {
            let set = port.set_dscp(dscp).map_err(|error| error.to_string());
            self.add("DSCP", dscp.to_string(), set);
        }
        if let Some(priority) = args.priority {
            let set = port.set_priority(priority).map_err(|error| error.to_string());
            self.add("priority", priority.to_string(), set);
        }
    }

    /// Asks for stamps; those of the hardware end with what is returned.
    pub fn stamps<'a>(
        &mut self,
        args: &MachineArgs,
        port: &'a Port,
    ) -> std::io::Result<Option<HardwareStamps<'a>>> {
        let hardware = args.hardware.as_ref().and_then(|interface| {
            let on = HardwareStamps::on(port, interface);
            let name = "hardware stamps";
            match &on {
                Ok(on) => self.note(name, interface.clone(), &on.note()),
                Err(why) => self.add(name, interface.clone(), Err(why.clone())),
            }
            on.ok()
        });
        port.stamp(hardware.is_some())?;
        if args.stamp_offset != 0 {
            let value = format!("{} ns", args.stamp_offset);
            self.note("stamp offset", value, "added to every stamp of this end, as a test");
        }
        Ok(hardware)
    }
}

/// A stamp of this end as it is reported: with `--stamp-offset`.
#[derive(Clone, Copy, Debug)]
pub struct Shift(pub i64);

impl Shift {
    /// A time in ns.
    pub fn of(self, at: u64) -> u64 {
        at.saturating_add_signed(self.0)
    }

    /// A stamp in ns; 0 is none.
    pub fn stamp(self, at: u64) -> latency::Stamp {
        latency::stamp(at).and_then(|at| latency::stamp(self.of(at.get())))
    }
}

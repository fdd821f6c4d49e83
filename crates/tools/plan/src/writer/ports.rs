//! Ports: schedules, shapers, preemption, VLANs; and the filters of streams.

use super::{Keys, time};
use crate::dump::key;
use sim::ethernet::port::{Algorithm, Class, Config, Counted, Preemption};
use std::collections::BTreeSet;
use tsn::preemption::verification;
use tsn::psfp::{self, GateEntry};
use tsn::{Cqf, GateControlList};
use wire::{Duration, Instant};

/// Bits per byte: plans have rates and bursts in bytes.
pub(super) const BITS: u64 = 8;

/// Returns a part of a plan, for `include`: the keys of ports that differ from their defaults, with
/// schedules and shapers, and filters. A port has the names of its table, such as `bridges`, `left`,
/// `ports`, `right`; a filter has its name. Capacities in bytes, and the advances of holds, are not
/// written.
pub fn write_ports(ports: &[(Vec<&str>, &Config)], filters: &[(String, &psfp::Config)]) -> String {
    let mut keys = Keys::default();
    let mut names = BTreeSet::new();
    for (path, port) in ports {
        let table = path.iter().map(|part| key(part)).collect::<Vec<_>>().join(".");
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let parts = path.iter().skip(1).filter(|part| !["ports", "link"].contains(part));
        let parts: Vec<String> = parts.map(|part| part.chars().map(plain).collect()).collect();
        let mut own = parts.join("-");
        while !names.insert(own.clone()) {
            own.push('-');
        }
        keys.port(&table, &own, port);
    }
    for (name, filter) in filters {
        keys.filter(&format!("filters.{}", key(name)), filter);
    }
    keys.text()
}

pub(super) fn since_start(at: Instant) -> Duration {
    at.since(Instant::ZERO)
}

pub(super) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

pub(super) fn quoted(text: impl ToString) -> String {
    format!("\"{}\"", text.to_string())
}

impl Keys {
    /// Adds the keys of a port to a table. `own` begins the names of its schedules and shapers.
    pub(super) fn port(&mut self, table: &str, own: &str, port: &Config) {
        if let (Some(gates), []) = (&port.gates, &port.cqf[..]) {
            self.quoted(table, "schedule", own);
            self.schedule(&format!("schedules.{own}"), gates.list());
        }
        let default = Config::new(port.rate);
        if port.queue_of_priority != default.queue_of_priority {
            self.add(table, "class_of_pcp", list(port.queue_of_priority));
        }
        let frames = port.classes[0].queue_frames;
        if frames != Class::default().queue_frames {
            self.add(table, "queue_frames", frames);
        }
        self.shapers(table, own, port);
        if let Some(Preemption { express, fragment, verify, .. }) = &port.preemption {
            self.add(table, "express", list((0..8).filter(|class| express >> class & 1 == 1)));
            // A first fragment has 64 (1 + addFragSize) - 4 bytes.
            let add = fragment.min_sent() / 64;
            if add > 0 {
                self.add(table, "add_frag_size", add);
            }
            if !verify.enabled {
                self.quoted(table, "verify", "off");
            }
            if verify.time != verification::Config::default().time {
                self.time(table, "verify_time", verify.time);
            }
        }
        if !port.vlans.is_empty() {
            self.add(table, "vlans", list(&port.vlans));
        }
        if port.pvid != default.pvid {
            self.add(table, "pvid", port.pvid);
        }
    }

    fn shapers(&mut self, table: &str, own: &str, port: &Config) {
        let mut shapers = Vec::new();
        for (number, class) in (0..).zip(&port.classes) {
            let pair = port.cqf.iter().find(|pair| pair.classes.contains(&number));
            let name = format!("{own}-{}", pair.map_or(number, |pair| pair.classes[0]));
            let shaper = format!("shapers.{name}");
            let mut is_shaped = self.shaper(&shaper, &class.algorithm);
            if let Some(most) = class.max_sdu {
                self.size(&shaper, "max_sdu", most as u64);
                is_shaped = true;
            }
            if is_shaped && pair.is_none() {
                shapers.push(quoted(format!("{number} {name}")));
            }
        }
        for Cqf { classes, cycle, base } in &port.cqf {
            let name = format!("{own}-{}", classes[0]);
            let shaper = format!("shapers.{name}");
            self.quoted(&shaper, "algorithm", "cqf");
            self.time(&shaper, "cycle", *cycle);
            self.time(&shaper, "base", since_start(*base));
            shapers.extend(classes.map(|class| quoted(format!("{class} {name}"))));
        }
        if !shapers.is_empty() {
            self.add(table, "shapers", list(shapers));
        }
    }

    fn schedule(&mut self, table: &str, gates: &GateControlList) {
        let entries = gates.entries().iter().map(|entry| {
            let (letter, states) = (entry.operation.letter(), entry.states.0);
            quoted(format!("{letter} {states:02x} {}", time(entry.interval)))
        });
        self.time(table, "base", since_start(gates.base_time()));
        self.time(table, "cycle", gates.cycle_time());
        self.add(table, "entries", list(entries));
    }

    /// Adds a shaper, and returns whether the class has one.
    fn shaper(&mut self, table: &str, algorithm: &Algorithm) -> bool {
        let counted = match algorithm {
            Algorithm::StrictPriority | Algorithm::Own(_) => return false,
            Algorithm::CreditBased(shaper) => {
                self.quoted(table, "algorithm", "cbs");
                self.rate(table, "idle_slope", shaper.idle_slope);
                if !shaper.rises_in_guard_band {
                    self.quoted(table, "guard_band_credit", "frozen");
                }
                shaper.counted
            }
            Algorithm::Ats(shaper) => {
                self.quoted(table, "algorithm", "ats");
                self.rate(table, "rate", shaper.committed.rate);
                self.size(table, "burst", shaper.committed.burst / BITS);
                if let Some(most) = shaper.max_residence {
                    self.time(table, "max_residence", most);
                }
                shaper.counted
            }
            Algorithm::Ets { weight } => {
                self.quoted(table, "algorithm", "ets");
                self.add(table, "weight", weight);
                Counted::WithGap
            }
        };
        if counted == Counted::FrameOnly {
            self.quoted(table, "counted", "frame");
        }
        true
    }

    /// Adds a rate in bits per second.
    pub(super) fn rate(&mut self, table: &str, key: &'static str, bits_per_second: u64) {
        self.quoted(table, key, format!("{}B/s", bits_per_second / BITS));
    }

    fn filter(&mut self, table: &str, filter: &psfp::Config) {
        self.table(table);
        if let Some(most) = filter.max_sdu {
            self.size(table, "max_sdu", most);
        }
        self.on(table, "block_oversize", filter.block_on_oversize);
        if let Some(gate) = &filter.gate {
            let entry = |entry: &GateEntry| {
                let interval = time(entry.interval);
                let ipv = entry.ipv.map_or_else(String::new, |ipv| format!(" ipv={ipv}"));
                let octets =
                    entry.octets.map_or_else(String::new, |most| format!(" octets={most}B"));
                quoted(match entry.open {
                    true => format!("open {interval}{ipv}{octets}"),
                    false => format!("closed {interval}"),
                })
            };
            self.add(table, "entries", list(gate.entries.iter().map(entry)));
            self.time(table, "cycle", gate.cycle);
            self.time(table, "base", since_start(gate.base));
            self.on(table, "block_closed", gate.close_on_invalid);
            self.on(table, "block_octets", gate.close_on_excess);
        }
        let Some(meter) = &filter.meter else { return };
        self.rate(table, "rate", meter.cir);
        self.size(table, "burst", meter.cbs);
        if meter.ebs > 0 {
            self.rate(table, "excess_rate", meter.eir);
            self.size(table, "excess_burst", meter.ebs);
            self.quoted(table, "yellow", if meter.drop_on_yellow { "drop" } else { "pass" });
            self.on(table, "coupling", meter.coupling);
        }
        self.on(table, "block_red", meter.mark_all_red);
    }

    fn on(&mut self, table: &str, key: &'static str, is_on: bool) {
        if is_on {
            self.quoted(table, key, "on");
        }
    }
}

//! Random commands of three hosts on two controllers, losses of power and ends of the process,
//! compared with a model.

use super::*;
use nvme::Subsystem;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The Host Identifiers.
const IDS: [[u8; 8]; 3] = [*b"host-000", *b"host-111", *b"host-222"];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A command of this controller and host: opcode, action, flags, type and two keys.
    Command(usize, usize, u8, u32, u32, u32, [u64; 2]),
    Open,
    Reopen,
}

/// What the specification states, in its words.
#[derive(Default)]
struct Model {
    keys: BTreeMap<usize, u64>,
    /// Type of the reservation, and the host that has acquired it.
    held: Option<(u32, usize)>,
    persists: bool,
    generation: u32,
}

impl Model {
    fn holds(&self, host: usize) -> bool {
        match self.held {
            Some((kind, _)) if kind >= 5 => self.keys.contains_key(&host),
            held => held.is_some_and(|(_, holder)| holder == host),
        }
    }

    fn allows(&self, host: usize, writes: bool) -> bool {
        match self.held {
            None => true,
            Some((kind, _)) if kind % 2 == 1 && !writes => true,
            Some((1 | 2, holder)) => holder == host,
            Some(_) => self.keys.contains_key(&host),
        }
    }

    fn unregister(&mut self, goes: impl Fn(usize, u64) -> bool) {
        self.keys.retain(|host, key| !goes(*host, *key));
        let left = match self.held {
            Some((kind, _)) if kind >= 5 => !self.keys.is_empty(),
            Some((_, holder)) => self.keys.contains_key(&holder),
            None => false,
        };
        self.held = self.held.filter(|_| left);
    }

    fn register(
        &mut self,
        host: usize,
        action: u32,
        flags: u32,
        [old, new]: [u64; 2],
    ) -> StatusCode {
        let key = self.keys.get(&host).copied();
        let wrong = match action {
            0 => key.is_some_and(|key| key != new),
            _ => flags & IGNORE_KEY == 0 && key != Some(old),
        };
        if wrong {
            return CONFLICT;
        }
        match action {
            1 => self.unregister(|other, _| other == host),
            _ => drop(self.keys.insert(host, new)),
        }
        match flags >> 30 {
            0 => {}
            state => self.persists = state == 3,
        }
        self.generation += 1;
        StatusCode::SUCCESS
    }

    fn preempt(&mut self, host: usize, kind: u32, victim: u64) -> StatusCode {
        let of_holder = self.held.map(|(kind, holder)| match kind >= 5 {
            true => victim == 0,
            false => self.keys[&holder] == victim,
        });
        match of_holder {
            Some(true) => {
                let all = self.held.is_some_and(|(kind, _)| kind >= 5);
                self.unregister(|other, key| other != host && (all || key == victim));
                self.held = Some((kind, host));
            }
            Some(false) if victim == 0 => return INVALID,
            Some(false)
                if self.held.is_some_and(|(kind, _)| kind >= 5)
                    && !self.keys.values().any(|key| *key == victim) =>
            {
                return CONFLICT;
            }
            _ => self.unregister(|_, key| key == victim),
        }
        self.generation += 1;
        StatusCode::SUCCESS
    }

    fn command(
        &mut self,
        host: usize,
        opcode: u8,
        action: u32,
        flags: u32,
        kind: u32,
        keys: [u64; 2],
    ) -> StatusCode {
        if opcode == nvm::RESERVATION_REGISTER {
            return self.register(host, action, flags, keys);
        }
        if self.keys.get(&host) != Some(&keys[0]) {
            return CONFLICT;
        }
        match (opcode, action) {
            (nvm::RESERVATION_ACQUIRE, 0) => match self.held {
                None => self.held = Some((kind, host)),
                Some((held, _)) if held == kind && self.holds(host) => {}
                Some(_) => return CONFLICT,
            },
            (nvm::RESERVATION_ACQUIRE, _) => return self.preempt(host, kind, keys[1]),
            (_, 0) if !self.holds(host) => {}
            (_, 0) if self.held.is_some_and(|(held, _)| held != kind) => return INVALID,
            (_, 0) => self.held = None,
            _ => {
                self.unregister(|_, _| true);
                self.generation += 1;
            }
        }
        StatusCode::SUCCESS
    }
}

fn step() -> impl Strategy<Value = Step> {
    let keys = [0..3u64, 0..3u64];
    let flags = prop_oneof![
        4 => Just(0),
        1 => Just(IGNORE_KEY),
        1 => Just(2 << 30),
        2 => Just(3 << 30),
    ];
    let opcode = prop_oneof![
        3 => Just(nvm::RESERVATION_REGISTER),
        4 => Just(nvm::RESERVATION_ACQUIRE),
        1 => Just(nvm::RESERVATION_RELEASE),
    ];
    let command = (0..2usize, 0..3usize, opcode, 0..3u32, flags, 1..7u32, keys).prop_map(
        |(controller, host, opcode, action, flags, kind, keys)| {
            let register = opcode == nvm::RESERVATION_REGISTER;
            let action = if opcode == nvm::RESERVATION_RELEASE { action % 2 } else { action };
            let flags = if register { flags } else { 0 };
            Step::Command(controller, host, opcode, action, flags, kind, keys)
        },
    );
    prop_oneof![20 => command, 1 => Just(Step::Open), 1 => Just(Step::Reopen)]
}

/// Compares the report and the access of a host with the model.
fn compare(two: &mut Two, model: &Model, controller: usize, host: usize) {
    let drive = two.at(controller);
    identify(drive, &IDS[host]).expect_success();
    let found = report(drive, 24 + 6 * 24, false);
    let header = ReservationStatus::decode(found[..24].try_into().unwrap());
    let kind = model.held.map_or(0, |(kind, _)| kind as u8);
    assert_eq!((header.kind, header.persists), (kind, model.persists));
    assert_eq!(header.generation, model.generation);
    let structures = found[24..].chunks(24).take(header.controllers.into());
    let hosts: BTreeMap<Vec<u8>, (u64, bool)> = structures
        .map(|one| {
            let key = u64::from_le_bytes(one[16..].try_into().unwrap());
            (one[8..16].to_vec(), (key, one[2] != 0))
        })
        .collect();
    let expected =
        model.keys.iter().map(|(host, key)| (IDS[*host].to_vec(), (*key, model.holds(*host))));
    assert_eq!(hosts, expected.collect());
    for (command, writes) in [(read(0, 1, DATA, 0), false), (write(0, 1, DATA, 0), true)] {
        let conflict = drive.io(command).status.code == CONFLICT;
        assert_eq!(!conflict, model.allows(host, writes), "host {host}, writes: {writes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_commands_do_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut two = two();
        let mut model = Model::default();
        let mut last = (0, 0);
        for step in steps {
            match step {
                Step::Command(controller, host, opcode, action, flags, kind, keys) => {
                    let drive = two.at(controller);
                    identify(drive, &IDS[host]).expect_success();
                    let kind_field = if opcode == nvm::RESERVATION_REGISTER { 0 } else { kind << 8 };
                    let cdw10 = action | flags | kind_field;
                    let done = reserve(drive, Command { opcode, cdw10, ..register(0) }, keys);
                    let expected = model.command(host, opcode, action, flags, kind, keys);
                    prop_assert_eq!(done.status.code, expected, "{:?}", step);
                    last = (controller, host);
                }
                Step::Open => {
                    two.restart(Subsystem::open);
                    model = if model.persists { model } else { Model::default() };
                }
                Step::Reopen => two.restart(Subsystem::reopen),
            }
            compare(&mut two, &model, last.0, (last.1 + 1) % 3);
            compare(&mut two, &model, 1 - last.0, last.1);
            two.at(0).testbed.subsystem.check_invariants();
        }
    }
}

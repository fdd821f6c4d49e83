//! The analyser explains all pushes of a real host node at every tap, and finds the commands that
//! the function receives.

use super::machine::{Machine, io, machine, with_push};
use super::real::{analysed, at_root_port, check, commands, explained, in_tunnel, storm};
use crate::commands::replay::{Difference, Issued, compare};
use crate::commands::view::{self, Options};
use crate::commands::{Command, PushedBytes, StepKind};
use node::push::Mode;
use nvme::initiator::Op;

fn sum(commands: &[Command], parts: impl Fn(&Command) -> PushedBytes) -> u64 {
    commands.iter().map(|command| parts(command).sum()).sum()
}

fn count_steps(commands: &[Command], kind: StepKind) -> usize {
    let steps = commands.iter().flat_map(|command| &command.steps);
    steps.filter(|step| step.kind == kind).count()
}

/// Random commands, many at once, each with entry, lists and data from push or from the host.
#[test]
fn a_storm_with_push_is_explained_at_all_taps() {
    for (mode, payload) in [(Mode::All, 256), (Mode::All, 4096), (Mode::Entries, 512)] {
        let mut machine = with_push(payload, 2048, mode);
        let (_, mut driver) = machine.bring_up(2);
        storm(&mut machine, &mut driver, 6);
        let (pushed, store) = (machine.pushed(), machine.store());
        assert!(pushed.entries > 300 && store.hits > 50, "{pushed:?} {store:?}");
        let taps = [at_root_port(&machine), in_tunnel(&machine)];
        let (function, at_function) = analysed(&machine.function);
        let function = commands(function);
        explained(&at_function);
        assert_eq!((at_function.pushes, at_function.reads), (0, store.hits + store.misses));
        let list = |commands: &[Command]| commands.iter().map(Issued::from).collect::<Vec<_>>();
        for (events, seen) in taps {
            explained(&seen);
            let counted = (seen.pushes, seen.pushed_bytes, seen.reads);
            assert_eq!(counted, (pushed.messages, pushed.bytes, store.misses));
            let commands = commands(events);
            assert_eq!(compare(list(&commands), list(&function)), Difference::default());
            for command in &commands {
                let text = || view::transaction(command, Options::default());
                assert!(command.is_whole() && command.end.is_some(), "{}", text());
                assert!(command.steps.is_sorted_by_key(|step| step.number), "{}", text());
                assert!(command.steps[0].at == command.start, "{}", text());
            }
            assert_eq!(sum(&commands, |command| command.push.pushed), pushed.bytes);
            assert_eq!(sum(&commands, Command::answered_from_push), store.hit_bytes, "{mode:?}");
            assert_eq!(count_steps(&commands, StepKind::Push) > 0, pushed.entries > 0);
            let report = check(commands, machine.media());
            assert_eq!((report.blocks_wrong, report.incomplete), (0, 0), "{report:?}");
            assert!(report.bytes_written > 100_000, "{report:?}");
        }
    }
}

fn kinds(command: &Command) -> Vec<&'static str> {
    let mut kinds: Vec<_> = command.steps.iter().map(|step| step.kind.name()).collect();
    kinds.dedup();
    kinds
}

/// Returns the last write and the last read of 4 KiB. Their payloads differ from earlier ones.
fn write_and_read(machine: &mut Machine) -> [Command; 2] {
    let (_, mut driver) = machine.bring_up(1);
    let buffer = machine.buffer(4096);
    for op in [Op::Write, Op::Read] {
        driver.submit(machine.now, 0, io(op, 64, 8, buffer)).unwrap();
        assert_eq!(machine.drain(&mut driver, 0), 0);
    }
    let (events, seen) = at_root_port(machine);
    explained(&seen);
    let mut commands = commands(events);
    commands.split_off(commands.len() - 2).try_into().expect("two commands")
}

#[test]
fn a_pushed_command_has_no_fetch() {
    let ends = ["CQE write", "MSI-X", "CQ doorbell"];
    let all = PushedBytes { entry: 64, lists: 0, data: 4096 };
    let entry = PushedBytes { data: 0, ..all };
    let [write, read] = write_and_read(&mut with_push(256, 2048, Mode::All));
    assert_eq!(kinds(&write), [&["push", "SQ doorbell"][..], &ends].concat());
    assert_eq!(kinds(&read), [&["push", "SQ doorbell", "data write"][..], &ends].concat());
    assert_eq!((write.answered_from_push(), read.answered_from_push()), (all, entry));
    // Queue (28 bytes) and entry (16 + 64) leave 132 of 256 bytes of data in the first message,
    // 16 messages of 240 follow, then 124 bytes: 3 + 18 TLPs in all.
    assert_eq!(write.traffic.tlps_down, 2 + 18);
    let [write, read] = write_and_read(&mut with_push(256, 2048, Mode::Entries));
    let data = ["data read", "data completion"];
    assert_eq!(kinds(&write), [&["push", "SQ doorbell"][..], &data, &ends].concat());
    assert_eq!((write.answered_from_push(), read.answered_from_push()), (entry, entry));
    let [write, _] = write_and_read(&mut machine(256, 2048));
    assert_eq!(write.answered_from_push(), PushedBytes::default());
    assert_eq!(kinds(&write)[..3], ["SQ doorbell", "SQE fetch", "SQE data"]);
}

//! The printed views.

use super::commands::testbed;
use super::{Drive, Testbed, io};
use crate::commands::json::Transaction;
use crate::commands::view::{self, Options};
use crate::commands::{Command, StepKind};

/// Runs a write whose completions arrive after all requests, as in figure 11.
fn write(testbed: &mut Testbed, drive: &mut Drive) -> Command {
    (testbed.read_request, testbed.completion_size) = (256, 128);
    testbed.begin(drive, 1, &[io(1, 17, 4096, 8, 0x12_3456_7000, 0)]);
    testbed.read_host(drive, 0x12_3456_7000, &[5; 4096]);
    testbed.end(drive, 1, 17, 0);
    testbed.commands.pop().unwrap()
}

fn read(testbed: &mut Testbed, drive: &mut Drive) -> Command {
    testbed.begin(drive, 1, &[io(2, 18, 4096, 8, 0x10_0000, 0)]);
    testbed.write_host(drive, 0x10_0000, &[5; 4096]);
    testbed.end(drive, 1, 18, 0x280);
    testbed.commands.pop().unwrap()
}

#[track_caller]
fn shown(text: &str, expected: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 100), "too wide:\n{text}");
    assert_eq!(text.trim_end(), expected.trim(), "\n{text}");
}

#[test]
fn a_write_and_a_read_by_meaning() {
    type Run = fn(&mut Testbed, &mut Drive) -> Command;
    let write: (Run, _) = (write, include_str!("golden/write_by_meaning.txt"));
    for (run, golden) in [write, (read, include_str!("golden/read_by_meaning.txt"))] {
        let (mut testbed, mut drive) = testbed();
        shown(&view::transaction(&run(&mut testbed, &mut drive), Options::default()), golden);
    }
}

#[test]
fn a_write_on_the_link() {
    let (mut testbed, mut drive) = testbed();
    let command = write(&mut testbed, &mut drive);
    shown(
        &view::link(&[&command], Options::default()),
        include_str!("golden/write_on_the_link.txt"),
    );
    let full = view::link(&[&command], Options { fold: false });
    assert_eq!(full.lines().count(), 3 + command.steps.len());
}

#[test]
fn json_has_the_documented_names() {
    let (mut testbed, mut drive) = testbed();
    let mut command = read(&mut testbed, &mut drive);
    command.steps.retain(|step| step.kind != StepKind::DataWrite);
    command.steps[1].address = 1 << 60;
    let json = serde_json::to_value(Transaction::from(&command)).unwrap();
    assert_eq!(json["command"], "read");
    assert_eq!(json["status"], 0x280);
    assert_eq!(
        json["steps"][0].to_string(),
        r#"{"address":3758100488,"bytes":4,"direction":"down","from_push":false,"packet":104,"step":"SQ doorbell","t_ns":0,"tag":null,"tlp":"MWr32"}"#
    );
    assert_eq!(json["steps"][1]["address"], "0x1000000000000000");
    assert_eq!(json["steps"][1]["step"], "SQE fetch");
    assert!(json["steps"][1]["tag"].is_u64());
}

#[test]
fn commands_share_doorbells_on_the_link() {
    let (mut testbed, mut drive) = testbed();
    let entries = [20545, 1].map(|cid| io(2, cid, 8, 1, 0x10_0000 + u64::from(cid) * 4096, 0));
    testbed.begin(&mut drive, 2, &entries);
    for entry in entries {
        testbed.write_host(&drive, entry.prp1, &[5; 512]);
        testbed.post(&mut drive, 2, 2, entry.cid, 0);
    }
    testbed.interrupt(&drive, 2);
    testbed.take(&mut drive, 2, 2);
    let [first, second] = &testbed.commands[testbed.commands.len() - 2..] else { panic!() };
    shown(
        &view::link(&[first, second], Options::default()),
        include_str!("golden/two_on_the_link.txt"),
    );
}

//! Checks `docs/nvme-support.md`: the answers of drives to every command, feature and log page of
//! the specification, and the tests that prove the answers.

mod guests;
mod proofs;

use nvme::{Config, NamespaceConfig};
use proofs::{ADMIN, FEATURES, IO, LOG_PAGES, Proofs};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use testkit::nvme::{DATA, Host, Testbed};
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{Command, Completion, StatusCode, feature, log_page};

const HEAD: &str = "# NVMe support

Each command, feature and log page of NVM Express 1.4, and of 2.0 where Linux uses it: supported, \
or refused with which status, and the tests of it. [nvme.md](nvme.md) describes the behaviour. \
Drives with records are those in folders (`--drive`). The tested drives have `--doorbell-buffer` and \
two controllers; without them Doorbell Buffer Config and Asymmetric Namespace Access are refused.

A test compares this page with the answers of a drive. To regenerate the page:

```
FARLANE_BLESS=1 cargo test --package farlane-nvme --test main support
```

The tests are in `crates/core/nvme/tests`, those with a guest (a stock Linux kernel with nvme-cli, \
fio and others) in `crates/farlane/tests/stock_guest`.
";

/// A drive with records, or without.
fn host(records: bool) -> Host {
    let mut config = Config::new("SUPPORT", vec![NamespaceConfig::new(64)]);
    config.settings.doorbell_buffer = true;
    let mut testbed = if records { Testbed::with_records(&config) } else { Testbed::new(config) };
    testbed.subsystem.add_controller(testbed.now);
    Host::started(testbed)
}

/// A section of the document: codes with names, the answer to each code, and the tests that prove
/// the answer.
struct Section {
    title: &'static str,
    name: fn(u8) -> Option<&'static str>,
    ask: fn(&mut Host, u8) -> Result<(), StatusCode>,
    proofs: Proofs,
    guests: Proofs,
}

const SECTIONS: [Section; 4] = [
    Section {
        title: "Admin commands",
        name: admin::name,
        ask: ask_admin,
        proofs: ADMIN,
        guests: guests::ADMIN,
    },
    Section { title: "I/O commands", name: nvm::name, ask: ask_io, proofs: IO, guests: guests::IO },
    Section {
        title: "Features",
        name: feature::name,
        ask: ask_feature,
        proofs: FEATURES,
        guests: guests::FEATURES,
    },
    Section {
        title: "Log pages",
        name: log_page::name,
        ask: ask_log_page,
        proofs: LOG_PAGES,
        guests: guests::LOG_PAGES,
    },
];

fn result(done: &Completion) -> Result<(), StatusCode> {
    if done.status.is_success() { Ok(()) } else { Err(done.status.code) }
}

fn ask_admin(host: &mut Host, opcode: u8) -> Result<(), StatusCode> {
    if host.effects().admin[usize::from(opcode)].bits() & 1 != 0 {
        return Ok(());
    }
    let refused = result(&host.admin(Command { opcode, ..Command::default() }));
    assert!(refused.is_err(), "admin command {opcode:#x} is supported, the effects log says not");
    refused
}

fn ask_io(host: &mut Host, opcode: u8) -> Result<(), StatusCode> {
    if host.effects().io[usize::from(opcode)].bits() & 1 != 0 {
        return Ok(());
    }
    let refused = result(&host.io(Command { opcode, nsid: 1, ..Command::default() }));
    assert!(refused.is_err(), "I/O command {opcode:#x} is supported, the effects log says not");
    refused
}

/// Requests the capabilities of a feature: SEL 011b.
fn ask_feature(host: &mut Host, id: u8) -> Result<(), StatusCode> {
    let cdw10 = u32::from(id) | 3 << 8;
    let opcode = admin::GET_FEATURES;
    result(&host.admin(Command { opcode, nsid: 1, cdw10, ..Command::default() }))
}

/// Reads 512 bytes of a log page, one telemetry block. For persistent events, the command
/// establishes a context.
fn ask_log_page(host: &mut Host, page: u8) -> Result<(), StatusCode> {
    let opcode = admin::GET_LOG_PAGE;
    let action = u32::from(page == log_page::PERSISTENT_EVENT);
    let cdw10 = u32::from(page) | action << 8 | 127 << 16;
    result(&host.admin(Command { opcode, prp1: DATA, cdw10, ..Command::default() }))
}

/// The text of a row from the results of drives with and without records, and whether any of them
/// supports the code.
fn status(with: Result<(), StatusCode>, without: Result<(), StatusCode>) -> (String, bool) {
    match (with, without) {
        (Ok(()), Ok(())) => ("supported".into(), true),
        (Ok(()), Err(code)) => {
            (format!("supported by drives with records, by others {}", refused(code)), true)
        }
        (Err(code), _) => (refused(code), false),
    }
}

fn refused(code: StatusCode) -> String {
    let name = code.name().expect("a status that has a name").replace('_', " ").to_lowercase();
    format!("refused: {name}, {:x}/{:02x}h", code.kind(), code.code())
}

fn section(section: &Section) -> String {
    let mut text =
        format!("\n## {}\n\n| code | name | status | tests | with a guest |\n", section.title);
    text += "| --- | --- | --- | --- | --- |\n";
    let (mut with, mut without) = (host(true), host(false));
    for code in 0..=u8::MAX {
        let Some(name) = (section.name)(code) else { continue };
        let answers = ((section.ask)(&mut with, code), (section.ask)(&mut without, code));
        let (status, supported) = status(answers.0, answers.1);
        let tests = test_names(section.proofs, code);
        assert_eq!(supported, !tests.is_empty(), "{name} ({code:02x}h): {status}, tests {tests}");
        let tests = if supported { tests } else { "`unlisted_codes_are_refused`".into() };
        let guests = test_names(section.guests, code);
        writeln!(text, "| {code:02x}h | {name} | {status} | {tests} | {guests} |").unwrap();
    }
    text
}

/// The tests for a code.
fn test_names(proofs: Proofs, code: u8) -> String {
    let found = proofs.iter().filter(|(proven, _)| *proven == code).flat_map(|(_, tests)| *tests);
    found.map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the document is written only when asked for")]
fn support_document_matches_drives() {
    let text = SECTIONS.iter().fold(HEAD.to_owned(), |text, one| text + &section(one));
    let path = folder().join("../../../docs/nvme-support.md");
    if std::env::var_os("FARLANE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    for (line, expected) in found.lines().zip(text.lines()) {
        assert_eq!(line, expected, "docs/nvme-support.md");
    }
    assert_eq!(found.len(), text.len(), "docs/nvme-support.md has other lines at its end");
}

/// The source text of all tests in a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(path).unwrap(),
    };
    entries.map(read).collect()
}

#[test]
fn the_tests_of_the_document_exist() {
    let own = sources(&folder().join("tests"));
    let guests = sources(&folder().join("../../farlane/tests/stock_guest"));
    for section in &SECTIONS {
        for (sources, proofs) in [(&own, section.proofs), (&guests, section.guests)] {
            for (code, test) in
                proofs.iter().flat_map(|(code, all)| all.iter().map(move |one| (code, one)))
            {
                let function = format!("#[test]\nfn {test}() {{");
                assert_eq!(sources.matches(&function).count(), 1, "{test} for {code:02x}h");
            }
        }
    }
}

#[test]
fn unlisted_codes_are_refused() {
    for records in [false, true] {
        let mut host = host(records);
        for section in &SECTIONS {
            for code in 0..=u8::MAX {
                let known = section.proofs.iter().any(|(proven, _)| *proven == code);
                // Codes that the table does not list must fail.
                if !known {
                    let answer = (section.ask)(&mut host, code);
                    assert!(answer.is_err(), "{} {code:02x}h", section.title);
                }
            }
        }
        host.testbed.subsystem.check_invariants();
    }
}

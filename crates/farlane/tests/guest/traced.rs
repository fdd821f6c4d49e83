//! What the nodes recorded of a run, and what `farlane trace` makes of it: a
//! capture, a sequence diagram and a report, left beside the traces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use farlane::analyse::{self, Event};
use farlane::trace::{Found, Run, Statistics, path};
use wire::nvme::opcode;

use crate::check::{self, Expected};

/// The traces of a host and a device node in a folder.
pub struct Traces {
    folder: PathBuf,
    files: [PathBuf; 2],
}

impl Traces {
    /// Where `host` and `device` are to record, in `folder`.
    pub fn new(folder: &Path) -> Self {
        let files = ["host.trace", "device.trace"].map(|name| folder.join(name));
        Self { folder: folder.to_owned(), files }
    }

    /// The options of the host node and of the device node.
    pub fn options(&self) -> [[&str; 2]; 2] {
        self.files.each_ref().map(|file| ["--trace", file.to_str().expect("a plain name")])
    }

    /// Checks everything against what was captured between the nodes.
    ///
    /// # Panics
    ///
    /// If something differs.
    pub fn check(&self, expected: &Expected) {
        let run = Run::open(&self.files).unwrap_or_else(|error| panic!("{error}"));
        let (commands, statistics) = self.commands(&run);
        assert_eq!(commands.len(), expected.commands.len(), "commands in trace and capture");
        let read = commands.iter().position(|command| {
            let pages = command.transfer == analyse::Transfer::ToHost(4096);
            command.queue != 0 && command.entry.opcode == opcode::nvm::READ && pages
        });
        let read = read.expect("a read of a page");
        self.capture(expected);
        self.diagram(read + 1, &commands[read]);
        self.report(&statistics);
        println!(
            "trace: {} commands, as captured; traces, pcapng, diagram and report in {}",
            commands.len(),
            self.folder.display()
        );
    }

    /// All commands; what their segments and lanes say adds up.
    fn commands(&self, run: &Run) -> (Vec<analyse::Command>, Statistics) {
        for node in &run.nodes {
            let index = &node.index;
            let flaws = (index.lost, index.gaps, index.bad, node.file.cut, node.file.damaged);
            assert_eq!(flaws, (0, 0, 0, false, 0), "{}", node.file.path.display());
        }
        let (mut commands, mut statistics) = (Vec::new(), Statistics::default());
        let done = run.analyse(|found, _| {
            let Found::Event(Event::Command(command)) = found else { return };
            let legs = path(run, &command);
            if let Some(total) = command.duration() {
                let segments = analyse::segments::split(&command);
                let sum: u64 = segments.iter().map(|segment| segment.ns).sum();
                assert_eq!(sum, total.as_ns(), "{command:#?}");
                let lanes: u64 = legs.iter().map(|leg| leg.to_ns.abs_diff(leg.from_ns)).sum();
                assert_eq!(lanes, total.as_ns(), "{command:#?}");
            }
            statistics.add(&command, &legs);
            commands.push(*command);
        });
        assert_eq!(done.unwrap_or_else(|error| panic!("{error}")).1, 0, "unreadable TLPs");
        (commands, statistics)
    }

    /// Asks for one file.
    fn ask(&self, option: &str, name: &str, more: &[&str]) -> PathBuf {
        let out = self.folder.join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_farlane"))
            .arg("trace")
            .args(&self.files)
            .arg(option)
            .arg(&out)
            .args(more)
            .output()
            .expect("farlane");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{option}: {errors}");
        out
    }

    /// tshark finds the same commands in it.
    fn capture(&self, expected: &Expected) {
        let capture = self.ask("--pcapng", "trace.pcapng", &["--limit", "0"]);
        check::commands(&capture, expected);
    }

    fn diagram(&self, number: usize, command: &analyse::Command) {
        let number = number.to_string();
        let picture = self.ask("--svg", "read.svg", &["--command", &number]);
        let picture = fs::read_to_string(picture).unwrap();
        well_formed(&picture);
        assert!(picture.contains("Read, 4 KiB: "), "the command's name");
        let lines = picture.matches("<polyline ").count();
        assert_eq!(lines, command.steps.len(), "a line a TLP");
        for step in &command.steps {
            assert!(picture.contains(&format!(">{}: ", step.kind)), "{}", step.kind);
            assert!(picture.contains(step.tlp), "{}", step.tlp);
        }
    }

    fn report(&self, statistics: &Statistics) {
        let page = self.ask("--html", "report.html", &["--limit", "0"]);
        let page = fs::read_to_string(page).unwrap();
        for kind in statistics.kinds() {
            let row = format!("<td class=\"l\">{}</td><td>{}</td>", kind.kind, kind.latency.n);
            assert!(page.contains(&row), "no row {row}");
        }
        assert_eq!(page.matches("class=\"sequence\"").count(), 2, "median and worst");
        assert!(page.contains("svg class=\"plot\"") && !page.contains("NaN"));
    }
}

/// Whether every element is closed in order, every attribute quoted, and no
/// character stands bare that may not (XML 1.0, sections 2.4 and 3.1).
///
/// # Panics
///
/// If not.
pub fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim();
    while let Some(start) = rest.find('<') {
        entities(&rest[..start]);
        let end = start + rest[start..].find('>').expect("an end of the tag");
        let (tag, after) = (&rest[start + 1..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
            assert!(!open.is_empty() || rest.is_empty(), "one root");
            continue;
        }
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "{name:?}");
        let parts: Vec<&str> = attributes.split('"').collect();
        assert!(parts.len() % 2 == 1 && parts[parts.len() - 1].trim().is_empty(), "{tag}");
        for pair in parts.chunks_exact(2) {
            assert!(pair[0].trim().ends_with('='), "{tag}");
            entities(pair[1]);
        }
        if !empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "still open: {open:?}");
}

fn entities(text: &str) {
    for part in text.split('&').skip(1) {
        let (name, _) = part.split_once(';').expect("an entity's end");
        assert!(["amp", "lt", "gt", "quot"].contains(&name), "&{name};");
    }
}

#[test]
fn what_is_not_well_formed_is_seen() {
    well_formed("<a b=\"1\"><c/>x &lt; y</a>\n");
    for wrong in ["<a>", "<a></b>", "<a b=1/>", "<a>&</a>", "<a/>x", "<a b=\"&x;\"/>", "<a></a><b>"]
    {
        assert!(std::panic::catch_unwind(|| well_formed(wrong)).is_err(), "{wrong}");
    }
}

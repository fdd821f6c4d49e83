//! Traces that the nodes recorded of a run, and the capture, sequence diagram and report that
//! `farlane trace` makes of them. All files stay next to the traces.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::commands::{self, Event};
use analysis::trace::{Anomalies, Finding, Run, Statistics, path};
use wire::nvme::opcode;

use crate::support::check::{self, Expected};
use crate::support::program::{prints, text};

/// Traces of a host node and a device node in a folder.
pub struct Traces {
    folder: PathBuf,
    files: [PathBuf; 2],
}

impl Traces {
    /// Returns the traces of nodes that will record into `folder`.
    pub fn new(folder: &Path) -> Self {
        let files = ["host.trace", "device.trace"].map(|name| folder.join(name));
        Self { folder: folder.to_owned(), files }
    }

    /// Returns the options of the host node and of the device node.
    pub fn options(&self) -> [[&str; 2]; 2] {
        self.files.each_ref().map(|file| ["--trace", file.to_str().expect("a plain name")])
    }

    /// Compares the traces with the connection that was captured between the nodes. Panics if
    /// anything differs.
    pub fn check(&self, expected: &Expected) {
        let run = Run::open(&self.files).unwrap_or_else(|error| panic!("{error}"));
        let (commands, statistics) = self.commands(&run);
        assert_eq!(commands.len(), expected.commands.len(), "commands in trace and capture");
        let read = commands.iter().position(|command| {
            let pages = command.transfer == commands::Transfer::ToHost(4096);
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

    /// Returns all commands and their statistics. Checks that intervals and stages add up.
    fn commands(&self, run: &Run) -> (Vec<commands::Command>, Statistics) {
        for node in &run.nodes {
            let index = &node.index;
            let flaws = (index.lost, index.gaps, index.bad, node.file.cut, node.file.damaged);
            assert_eq!(flaws, (0, 0, 0, false, 0), "{}", node.file.path.display());
        }
        let (mut commands, mut statistics) = (Vec::new(), Statistics::default());
        let done = run.analyse(|found, _| {
            let Finding::Event(Event::Command(command)) = found else { return };
            let legs = path(run, &command);
            if let Some(total) = command.duration_ns() {
                let intervals = commands::intervals::split(&command);
                let sum: u64 = intervals.iter().map(|interval| interval.ns).sum();
                assert_eq!(sum, total, "{command:#?}");
                let stages: u64 = legs.iter().map(|leg| leg.to_ns.abs_diff(leg.from_ns)).sum();
                assert_eq!(stages, total, "{command:#?}");
            }
            statistics.add(&command, &legs);
            commands.push(*command);
        });
        assert_eq!(done.unwrap_or_else(|error| panic!("{error}")).1, 0, "unreadable TLPs");
        (commands, statistics)
    }

    /// Writes one file by an option of `farlane trace`; returns the path.
    fn ask(&self, option: &str, name: &str, more: &[&str]) -> PathBuf {
        let out = self.folder.join(name);
        let [host, device, file] = [&self.files[0], &self.files[1], &out].map(|path| text(path));
        prints(&[&["trace", &host, &device, option, &file], more].concat());
        out
    }

    /// Checks that tshark finds the same commands in a capture of the trace.
    fn capture(&self, expected: &Expected) {
        let capture = self.ask("--pcapng", "trace.pcapng", &["--limit", "0"]);
        check::commands(&capture, expected);
    }

    fn diagram(&self, number: usize, command: &commands::Command) {
        let number = number.to_string();
        let picture = self.ask("--svg", "read.svg", &["--command", &number]);
        let picture = fs::read_to_string(picture).unwrap();
        roxmltree::Document::parse(&picture).expect("well-formed XML");
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
            let row = format!("<td class=\"l\">{}</td><td>{}</td>", kind.kind, kind.commands);
            assert!(page.contains(&row), "no row {row}");
        }
        assert_eq!(page.matches("class=\"sequence\"").count(), 2, "median and worst");
        assert!(page.contains("svg class=\"plot\"") && !page.contains("NaN"));
    }
}

/// Checks what the host node recorded of a drive that was killed, was replaced by a larger one,
/// returned unchanged, and hung; and that the traces of the killed node and of the returned node
/// fit. Panics if the losses are not among the anomalies.
pub fn losses_stand_out(files: &[PathBuf; 3]) {
    let run = Run::open(files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run.nodes.iter().filter(|node| node.parent.is_some()).count(), 2);
    let (mut anomalies, mut status) = (Anomalies::default(), Vec::new());
    let done = run.analyse(|found, counters| {
        anomalies.observe(&found);
        if let Finding::Tlp(_, _, tlp, _) = &found {
            anomalies.count(counters, tlp.mnemonic());
        }
        if let Finding::Event(Event::Command(command)) = found {
            status.push((command.queue, command.status.is_some(), path(&run, &command).len()));
        }
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    anomalies.finish(&run);
    println!("trace: {}", anomalies.text());
    let count = |name: &str| anomalies.unexplained.get(name).map_or(0, |trouble| trouble.count);
    // The node was killed, the larger one ended in order, and the last one hung.
    assert!(count("link down") >= 3, "{}", anomalies.text());
    // Commands waited when the last node hung. The loss interrupted each before its fetch, before
    // its completion entry, or before the host took the completion entry.
    let lost = count("command without a completion entry")
        + count("submission entry rung for and never fetched (timeout)")
        + count("completion entry whose head doorbell was never rung");
    assert!(lost >= 1, "{}", anomalies.text());
    let unanswered = status.iter().filter(|(_, ended, _)| !ended).count() as u64;
    assert!(unanswered >= count("command without a completion entry"), "{unanswered}");
    assert!(status.len() > 400, "{} commands", status.len());
    let seen = status.iter().filter(|(queue, _, legs)| *queue != 0 && *legs > 4).count();
    assert!(seen > 200, "{seen} commands were followed into a device");
}

//! `--dry-run`: the lab as a shell script.

use super::bridge::Bridge;
use super::cables::Far;
use super::experiment::{Experiment, Run, file_name};
use super::measure::{BEYOND, enter};
use super::step::{End, Step};
use std::fmt::Write;

/// Remembers the last program: dash's `$(jobs -p)` is empty.
const STARTED: &str = "started=\"$started $!\"";

/// The script of an experiment: what the lab would do, line by line.
pub fn script(experiment: &Experiment, bridges: &[Bridge]) -> String {
    let mut text = format!(
        "#!/bin/sh\n# farlane latency lab, as a script: needs root. Documents go to $out.\n\
         set -u\nout=${{out:-.}}\nfolder={}\nmkdir -p \"$folder\"\n\
         # Waits until the last program has written a text to a file: FILE TEXT.\n\
         ready() {{ until grep -q \"$2\" \"$1\" 2>/dev/null; do kill -0 $!; sleep 0.1; done; }}\n",
        experiment.place.folder().display()
    );
    for bridge in bridges {
        part(&mut text, experiment, *bridge).expect("a String takes all");
    }
    text
}

fn part(text: &mut String, experiment: &Experiment, bridge: Bridge) -> std::fmt::Result {
    let steps = experiment.steps(bridge);
    let late = experiment.late_steps();
    writeln!(text, "\n# Bridge: {}\n(", bridge.name())?;
    writeln!(text, "started=\nundo() {{\n    set +e\n    kill $started 2>/dev/null\n    wait")?;
    for undo in steps.0.iter().chain(&late.0).rev().filter_map(|step| step.undo.as_ref()) {
        writeln!(text, "    {undo}")?;
    }
    writeln!(
        text,
        "    rm -rf \"$folder\"/*\n}}\ntrap undo EXIT\ntrap 'exit 1' INT TERM\nset -ex"
    )?;
    steps.0.iter().try_for_each(|step| line(text, step))?;
    late.0.iter().try_for_each(|step| line(text, step))?;
    for run in experiment.runs() {
        run_lines(text, experiment, bridge, &run)?;
    }
    writeln!(text, ")")
}

fn line(text: &mut String, Step { line, end, .. }: &Step) -> std::fmt::Result {
    match end {
        End::Itself => writeln!(text, "{line}"),
        End::Lab { log, ready } => kept(text, line, log, ready),
    }
}

fn kept(text: &mut String, line: &str, log: &str, ready: &str) -> std::fmt::Result {
    // An earlier run's log has the text already, and is there until the program is started.
    writeln!(
        text,
        "rm -f \"$folder/{log}\"\n{line} >\"$folder/{log}\" 2>&1 &\n\
         {STARTED}\nready \"$folder/{log}\" '{ready}'"
    )
}

fn run_lines(
    text: &mut String,
    experiment: &Experiment,
    bridge: Bridge,
    run: &Run,
) -> std::fmt::Result {
    let seconds = experiment.seconds(run) + BEYOND;
    writeln!(text, "\n# Run: {}", run.name)?;
    let document = |what| format!("\"$out/{}.json\"", file_name(bridge, run, what));
    let log = "\"$folder/listen.log\"";
    let is_ours = experiment.far == Far::Namespace;
    if is_ours {
        writeln!(
            text,
            "rm -f {log}\n{} >{} 2>{log} &",
            experiment.listen(bridge, run),
            document("listen")
        )?;
        writeln!(text, "listener=$!\n{STARTED}\nready {log} 'listening on'")?;
    }
    if let Some(stress) = experiment.stress.filter(|_| run.is_loaded) {
        let (server, ready) = stress.server(&experiment.place);
        if is_ours {
            kept(text, &server, "stress-server.log", ready)?;
        }
        for client in stress.clients(&enter(&experiment.place), seconds) {
            writeln!(text, "{client} >/dev/null &\n{STARTED}")?;
        }
    }
    if let Some(reads) = &run.reads {
        let address = experiment.far(reads.is_tagged());
        let (device, ready) = reads.device(&experiment.place, address);
        kept(text, &device, "device.log", ready)?;
        let io = reads.io(&experiment.place, address, seconds);
        writeln!(text, "{io} >{} &\nreads=$!\n{STARTED}", document("reads"))?;
    }
    writeln!(text, "{} >{}", experiment.talk(bridge, run), document("talk"))?;
    if run.reads.is_some() {
        writeln!(text, "wait $reads")?;
    }
    if is_ours { writeln!(text, "wait $listener") } else { Ok(()) }
}

//! `--dry-run`: the lab as a shell script.

use super::bridge::Bridge;
use super::cables::Far;
use super::check;
use super::experiment::{Experiment, Run, file_name};
use super::measure::{BEYOND, enter};
use super::step::{End, Step};
use super::stress::Stress;
use std::fmt::Write;

/// Lines that all bridges need. The script has its own folder, with a dot, which no lab's name
/// contains.
const HEAD: &str = r#"mkdir -p "${folder%/*}"
# If it is there, this script is at work, or was killed.
mkdir "$folder" || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
failed=0
# Waits until the last program has written a text to a file: FILE TEXT.
ready() { until grep -qs "$2" "$1"; do kill -0 $!; sleep 0.1; done; }
# Ends programs: PID...
end() { kill "$@" 2>/dev/null || :; wait "$@" || :; }
"#;

/// Name of the list of programs that end with the bridge; the other list has programs that end with
/// the run.
const KEPT: &str = "kept";
const STARTED: &str = "started";

/// Returns the script of an experiment: the lab's actions, line by line.
pub fn script(experiment: &Experiment, bridges: &[Bridge]) -> String {
    let mut text = format!(
        "#!/bin/sh\n# farlane latency lab, as a script: needs root. Documents go to $out.\n\
         set -u\nout=${{out:-.}}\nfolder={}.script\n{HEAD}",
        experiment.place.folder().display()
    );
    for bridge in bridges {
        part(&mut text, experiment, *bridge).expect("a String takes all");
    }
    text + "exit $failed\n"
}

fn part(text: &mut String, experiment: &Experiment, bridge: Bridge) -> std::fmt::Result {
    writeln!(text, "\n# Bridge: {}", bridge.name())?;
    if let Some(why) = check::impossible(experiment, bridge) {
        return writeln!(text, "# It is not built: {why}.");
    }
    let steps = experiment.steps(bridge);
    writeln!(text, "(\nfor name in {}; do", experiment.place.namespaces().join(" "))?;
    writeln!(text, "test ! -e /run/netns/$name || {{ echo $name is there >&2; exit 1; }}\ndone")?;
    writeln!(text, "listener= reads= started= kept=\nundo() {{\nset +e")?;
    writeln!(text, "end $listener $reads $started $kept")?;
    for undo in steps.0.iter().rev().filter_map(|step| step.undo.as_ref()) {
        writeln!(text, "{}", here(experiment, undo))?;
    }
    writeln!(text, "rm -rf \"$folder\"/*\n}}")?;
    writeln!(text, "trap undo EXIT\ntrap 'exit 1' INT TERM\nset -ex")?;
    for Step { line, end, .. } in &steps.0 {
        let line = here(experiment, line);
        match end {
            End::Itself => writeln!(text, "{line}")?,
            End::Lab { log, ready } => keep(text, (&line, log, ready), KEPT)?,
        }
    }
    if experiment.kernel_fifo.is_some() {
        writeln!(text, "# --kernel-fifo: only the lab finds the kernel's threads as it runs.")?;
    }
    if let Some(folder) = &experiment.keep {
        writeln!(text, "mkdir -p '{folder}'")?;
    }
    for run in experiment.runs() {
        run_lines(text, experiment, bridge, &run)?;
    }
    // In `( ... ) || failed=1` the shell would ignore `set -e`.
    writeln!(text, ")\ntest $? -eq 0 || failed=1")
}

/// Replaces the lab's folder in a line by the script's folder.
fn here(experiment: &Experiment, line: &str) -> String {
    line.replace(&format!("{}/", experiment.place.folder().display()), "$folder/")
}

fn remember(list: &str) -> String {
    format!("{list}=\"${list} $!\"")
}

fn keep(text: &mut String, (line, log, ready): (&str, &str, &str), list: &str) -> std::fmt::Result {
    // The log of an earlier run contains the text, and exists until the program is started.
    writeln!(
        text,
        "rm -f \"$folder/{log}\"\n{line} >\"$folder/{log}\" 2>&1 &\n\
         {}\nready \"$folder/{log}\" '{ready}'",
        remember(list)
    )
}

fn run_lines(
    text: &mut String,
    experiment: &Experiment,
    bridge: Bridge,
    run: &Run,
) -> std::fmt::Result {
    writeln!(text, "\n# Run: {}", run.name)?;
    let document = |part| format!("\"$out/{}.json\"", file_name(bridge, run, part));
    let log = "\"$folder/listen.log\"";
    let is_ours = experiment.far == Far::Namespace;
    if is_ours {
        let listen = experiment.listen(bridge, run);
        writeln!(text, "rm -f {log}\n{listen} >{} 2>{log} &", document("listen"))?;
        writeln!(text, "listener=$!\nready {log} 'listening on'")?;
    }
    load(text, experiment, run)?;
    if let Some(reads) = &run.reads {
        let address = experiment.far(reads.is_tagged());
        let (device, ready) = reads.device(&experiment.place, address);
        keep(text, (&device, "device.log", ready), STARTED)?;
        let io = reads.io(&experiment.place, address, experiment.seconds(run) + BEYOND);
        writeln!(text, "{io} >{} &\nreads=$!", document("reads"))?;
    }
    writeln!(text, "{} >{}", experiment.talk(bridge, run), document("talk"))?;
    if run.reads.is_some() {
        writeln!(text, "wait $reads\nreads=")?;
    }
    if run.reads.is_some() || run.is_loaded {
        writeln!(text, "end $started\nstarted=")?;
    }
    if is_ours { writeln!(text, "wait $listener\nlistener=") } else { Ok(()) }
}

fn load(text: &mut String, experiment: &Experiment, run: &Run) -> std::fmt::Result {
    let Some(stress) = experiment.stress.filter(|_| run.is_loaded) else { return Ok(()) };
    if experiment.far == Far::Namespace {
        let (server, ready) = Stress::server(&experiment.place);
        keep(text, (&server, "stress-server.log", ready), STARTED)?;
    }
    let client = stress.client(&enter(&experiment.place), experiment.seconds(run) + BEYOND);
    writeln!(text, "{client} >/dev/null &\n{}", remember(STARTED))?;
    Ok(())
}

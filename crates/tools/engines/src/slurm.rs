//! Array jobs of Slurm. Each task runs many points, because clusters limit the size of arrays.

use super::child::{last_message, output};
use super::{LOOK, Launch, show};
use plan::run::Watch;
use plan::run::points::{Folder, ranges};
use report::{Failure, Outcome};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Maximum size of an array unless the cluster names another (`MaxArraySize`, slurm.conf(5)).
const ARRAY: usize = 1001;
/// Times that a point starts whose task ended without a result, as after the loss of a node.
const TRIES: usize = 2;
/// Looks at the folder for each question to the cluster.
const PATIENCE: usize = 10;

/// Runs the missing points. Returns why points failed whose tasks left no result.
pub fn run(
    launch: &Launch<'_>,
    missing: &[usize],
    (tasks, options): (Option<usize>, &[(String, String)]),
    watch: &Watch<'_>,
) -> Result<BTreeMap<usize, String>, Failure> {
    let folder = launch.folder;
    let logs = folder.path().join("slurm");
    std::fs::create_dir_all(&logs)
        .map_err(|error| Failure(format!("cannot write {}: {error}", logs.display())))?;
    let most = largest_array()?;
    let mut missing = missing.to_vec();
    let mut last = Vec::new();
    for _ in 0..TRIES {
        let count = tasks.unwrap_or(missing.len()).clamp(1, most.min(missing.len()));
        last = parts(&missing, count);
        let job = submit(launch, &last, options)?;
        wait(&job, folder, watch)?;
        missing = folder.missing();
        if missing.is_empty() || (watch.is_stopped)() {
            return Ok(BTreeMap::new());
        }
    }
    let why = |number: usize| {
        let task = last.iter().position(|part| part.contains(&number)).unwrap_or(0);
        let log = log(folder, task);
        format!("its task ended without a result: {}: {}", log.display(), last_message(&log))
    };
    Ok(missing.into_iter().map(|number| (number, why(number))).collect())
}

/// Returns the points of each task.
fn parts(missing: &[usize], count: usize) -> Vec<Vec<usize>> {
    let bound = |part: usize| part * missing.len() / count;
    (0..count).map(|part| missing[bound(part)..bound(part + 1)].to_vec()).collect()
}

fn log(folder: &Folder, task: usize) -> PathBuf {
    folder.path().join("slurm").join(format!("{task}.log"))
}

/// Submits an array job. Returns its number.
fn submit(
    launch: &Launch<'_>,
    parts: &[Vec<usize>],
    options: &[(String, String)],
) -> Result<String, Failure> {
    let mut worker = launch.worker.clone();
    worker.push(launch.folder.path().display().to_string());
    if let Some(limit) = launch.timeout {
        worker.extend(["--point-timeout".to_owned(), format!("{}ns", limit.as_ns())]);
    }
    worker.push("--only".to_owned());
    let worker: Vec<String> = worker.iter().map(|word| quoted(word)).collect();
    let parts: Vec<String> = parts.iter().map(|part| ranges(part)).collect();
    let script = format!(
        "#!/bin/sh\nset -- {}\nshift \"$SLURM_ARRAY_TASK_ID\"\nexec {} \"$1\"\n",
        parts.join(" "),
        worker.join(" ")
    );
    let mut command = Command::new("sbatch");
    command.args(["--parsable", "--job-name=farlane", "--requeue", "--open-mode=truncate"]);
    command.arg(format!("--array=0-{}", parts.len() - 1));
    let logs = launch.folder.path().join("slurm");
    command.arg(format!("--output={}/%a.log", logs.display()));
    command.args(options.iter().map(|(key, value)| format!("--{key}={value}")));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error| Failure(format!("engine slurm: cannot run sbatch: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    // A program that ends early has closed its input; its message says why.
    let _ = child.stdin.take().expect("a pipe").write_all(script.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure(format!("engine slurm: {}", errors.trim())));
    }
    // JOB, or JOB;CLUSTER.
    let job = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(job.split(';').next().unwrap_or_default().to_owned())
}

/// Waits until the job has left the queue. A stop cancels it.
fn wait(job: &str, folder: &Folder, watch: &Watch<'_>) -> Outcome {
    let mut is_cancelled = false;
    for look in 0.. {
        if (watch.is_stopped)() && !is_cancelled {
            is_cancelled = true;
            output(Command::new("scancel").arg(job))?;
        }
        let is_over = show(folder, watch);
        if (is_over || look % PATIENCE == 0) && queued(job)?.is_empty() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns the tasks of a job that have not ended. Slurm forgets a job some minutes after its end.
fn queued(job: &str) -> Result<String, Failure> {
    let tasks = output(Command::new("squeue").args(["--noheader", "--format=%i", "--jobs", job]));
    match tasks {
        Err(Failure(why)) if why.contains("Invalid job id") => Ok(String::new()),
        tasks => tasks.map(|text| text.trim().to_owned()),
    }
}

/// Returns the largest number of tasks of an array.
fn largest_array() -> Result<usize, Failure> {
    let config = output(Command::new("scontrol").args(["show", "config"]));
    let config = config.map_err(|Failure(why)| Failure(format!("engine slurm: {why}")))?;
    let line = config.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"));
    let size = line.and_then(|line| line.split('=').nth(1)?.trim().parse().ok());
    Ok(size.unwrap_or(ARRAY).max(1))
}

/// Returns a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_one_task_of_about_the_same_size() {
        let missing: Vec<usize> = (0..10_000).filter(|number| number % 3 != 0).collect();
        let parts = parts(&missing, 1001);
        assert_eq!(parts.concat(), missing);
        let sizes = parts.iter().map(Vec::len);
        assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("it's a $PATH"), "'it'\\''s a $PATH'");
    }
}

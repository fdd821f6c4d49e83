//! Runs steps and programs, and undoes them.

use super::child::{Child, end_left};
use super::journal::{Journal, Process, Undo};
use super::place::Place;
use super::step::{End, Step, Steps};
use latency_linux::Operator;
use report::{Failure, Outcome, last_line};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum time for a program to become ready.
const READY: Duration = Duration::from_secs(60);

/// Steps and programs of a lab, with the actions that undo them.
pub struct Site<'a> {
    /// Folder of the lab's files.
    folder: PathBuf,
    operator: &'a dyn Operator,
    journal: Journal,
    /// Actions to undo, latest last.
    done: Vec<Undo>,
    /// Programs that run as long as the lab, with their command lines.
    kept: Vec<(String, Child)>,
}

impl<'a> Site<'a> {
    /// Begins a lab after undoing the actions that an earlier lab has left. Also returns the number
    /// of undone actions.
    ///
    /// # Errors
    /// A lab with this name runs, a namespace with its name is not the lab's, or files cannot be
    /// created.
    pub fn open(place: &Place, operator: &'a dyn Operator) -> Result<(Self, usize), Failure> {
        let folder = place.folder();
        let (mut journal, left) = Journal::open(&folder)?;
        let failed: Vec<String> = left
            .iter()
            .filter_map(|undo| take_back(undo, &folder).err())
            .map(|why| why.0)
            .collect();
        if !failed.is_empty() {
            return Err(Failure(format!(
                "what an earlier lab left is not taken down: {}",
                failed.join("; ")
            )));
        }
        journal.clear()?;
        for namespace in place.namespaces() {
            if Path::new("/run/netns").join(&namespace).exists() {
                return Err(Failure(format!(
                    "the namespace {namespace} is not a lab's: no journal has it; --name gives this \
                     lab's namespaces other names"
                )));
            }
        }
        let (done, kept) = (Vec::new(), Vec::new());
        Ok((Self { folder, operator, journal, done, kept }, left.len()))
    }

    /// Runs all steps until one fails.
    ///
    /// # Errors
    /// The line and its output, or an interrupt.
    pub fn build(&mut self, steps: &Steps) -> Outcome {
        steps.0.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Outcome {
        self.go_on()?;
        if let Some(undo) = &step.undo {
            self.journal.add(&Undo::Line(undo.clone()))?;
        }
        match &step.end {
            End::Itself => run(&step.line, &self.folder)?,
            End::Lab { log, ready } => {
                let child = self.start(&step.line, log)?;
                child.wait_for(ready, READY, self.operator).map_err(|why| about(step, &why))?;
                self.kept.push((step.line.clone(), child));
            }
        }
        self.done.extend(step.undo.clone().map(Undo::Line));
        Ok(())
    }

    /// Starts a program, with its standard output and standard error in files of this name.
    ///
    /// # Errors
    /// If the files or the shell cannot be started.
    pub fn start(&mut self, line: &str, name: &str) -> Result<Child, Failure> {
        let path = |ending: &str| self.folder.join(format!("{name}{ending}"));
        let (output, errors) = (path(".out"), path(""));
        let mut command = shell(&format!("exec {line}"));
        command.env("PATH", own_program(&self.folder)?);
        command.stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let child = command.spawn()?;
        if let Some(process) = Process::find(child.id()) {
            self.journal.add(&Undo::Kill(process))?;
        }
        Ok(Child::new(child, output, errors)?)
    }

    /// Checks that the lab may continue.
    ///
    /// # Errors
    /// If the lab must stop, or if a program that the lab needs has ended.
    pub fn go_on(&mut self) -> Outcome {
        if self.operator.has_stopped() {
            return Err(Failure("interrupted".into()));
        }
        for (line, child) in &mut self.kept {
            if let Some(why) = child.ended()? {
                return Err(Failure(format!("`{line}` has ended: {why}")));
            }
        }
        Ok(())
    }

    /// Returns the operator, who can stop the lab.
    pub fn operator(&self) -> &'a dyn Operator {
        self.operator
    }

    /// Undoes everything, latest first. Actions that cannot be undone stay in the journal.
    ///
    /// # Errors
    /// The lines that failed, and their output.
    pub fn take_down(&mut self) -> Outcome {
        // Dropping a program ends it.
        self.kept.clear();
        let (mut failed, mut why) = (Vec::new(), Vec::new());
        while let Some(undo) = self.done.pop() {
            if let Err(Failure(reason)) = take_back(&undo, &self.folder) {
                failed.push(undo);
                why.push(reason);
            }
        }
        failed.reverse();
        self.done = failed;
        if self.done.is_empty() {
            return Ok(self.journal.clear()?);
        }
        // The journal still has these actions. Other lines of the journal succeed if they run
        // twice.
        Err(Failure(format!("not taken down: {}", why.join("; "))))
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        if let Err(Failure(why)) = self.take_down() {
            self.operator.warn(&why);
        }
    }
}

/// Returns a shell for `line` in a process group of its own, so that Ctrl-C does not end the shell.
fn shell(line: &str) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null()).process_group(0);
    command
}

/// Creates a folder with a link to this program as `farlane`. Returns PATH with this folder first.
fn own_program(folder: &Path) -> Result<OsString, Failure> {
    let own = folder.join("bin");
    fs::create_dir_all(&own)?;
    let link = own.join("farlane");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(std::env::current_exe()?, link)?;
    let all = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(own).chain(std::env::split_paths(&all));
    std::env::join_paths(paths).map_err(|error| Failure(format!("PATH: {error}")))
}

/// Runs a line to its end. The output goes to a file, because a daemon that the line starts may
/// keep a pipe open.
fn run(line: &str, folder: &Path) -> Outcome {
    let log = folder.join("step.log");
    let output = File::create(&log)?;
    let status = shell(line).stdout(output.try_clone()?).stderr(output).status()?;
    match status.success() {
        true => Ok(()),
        false => {
            let text = fs::read_to_string(&log).unwrap_or_default();
            Err(Failure(format!("`{line}`: {}", last_line(&text, &status.to_string()))))
        }
    }
}

/// Returns the standard output of a line.
///
/// # Errors
/// If the line fails: the line, and its last message.
pub fn output(line: &str) -> Result<String, Failure> {
    let output = shell(line).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let log = String::from_utf8_lossy(&output.stderr);
            Err(Failure(format!("`{line}`: {}", last_line(&log, &output.status.to_string()))))
        }
    }
}

fn take_back(undo: &Undo, folder: &Path) -> Outcome {
    match undo {
        Undo::Line(line) => run(line, folder),
        Undo::Kill(process) => {
            end_left(*process);
            Ok(())
        }
    }
}

fn about(step: &Step, why: &Failure) -> Failure {
    Failure(format!("`{}`: {}", step.line, why.0))
}

//! Engines as options.

use super::{local, ray, slurm};
use plan::run::Watch;
use plan::run::document::SweepDocument;
use plan::run::points::Folder;
use report::Failure;
use std::path::PathBuf;
use std::str::FromStr;
use wire::Duration;

/// What runs points: `local`, `ray` or `slurm`, followed by its options as in
/// `slurm,tasks=100,partition=short`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Threads of this process.
    Local {
        /// Number of points at once; by default, one for each processor.
        threads: Option<usize>,
    },
    /// Tasks of Ray.
    Ray {
        /// A Python with the packages farlane and ray.
        python: PathBuf,
        /// Address of the cluster; by default, a running one of this machine, or a new one.
        address: Option<String>,
    },
    /// An array job of Slurm.
    Slurm {
        /// Number of tasks; by default, one for each point, as far as the cluster permits.
        tasks: Option<usize>,
        /// Options of sbatch(1) and their values.
        options: Vec<(String, String)>,
    },
}

/// A sweep to run.
pub struct Launch<'a> {
    /// The sweep.
    pub folder: &'a Folder,
    /// Name of the plan.
    pub name: &'a str,
    /// Maximum time for a point.
    pub timeout: Option<Duration>,
    /// Command of a worker of Slurm, to which folder and points are added.
    pub worker: Vec<String>,
}

const KNOWN: &str = "expected local[,threads=N], ray[,address=HOST:PORT][,python=FILE] or \
                     slurm[,tasks=N][,OPTION=VALUE]…";

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(',');
        let mut engine = match words.next() {
            Some("local") => Self::Local { threads: None },
            Some("ray") => Self::Ray { python: "python3".into(), address: None },
            Some("slurm") => Self::Slurm { tasks: None, options: Vec::new() },
            _ => return Err(KNOWN.to_owned()),
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or(KNOWN)?;
            let number = || {
                let number = value.parse().ok().filter(|number| *number > 0);
                number.map(Some).ok_or_else(|| format!("{key}={value}: expected a number from 1"))
            };
            match (&mut engine, key) {
                (Self::Local { threads }, "threads") => *threads = number()?,
                (Self::Ray { python, .. }, "python") => *python = value.into(),
                (Self::Ray { address, .. }, "address") => *address = Some(value.to_owned()),
                (Self::Slurm { tasks, .. }, "tasks") => *tasks = number()?,
                (Self::Slurm { options, .. }, _) => options.push((key.into(), value.into())),
                _ => return Err(format!("unknown option {key}: {KNOWN}")),
            }
        }
        Ok(engine)
    }
}

impl Engine {
    /// Runs all missing points. Returns the document of the sweep; points that failed are in it.
    ///
    /// # Errors
    /// If the engine or the folder cannot be used.
    pub fn run(&self, launch: &Launch<'_>, watch: &Watch<'_>) -> Result<SweepDocument, Failure> {
        let Launch { folder, name, timeout, .. } = launch;
        let missing = folder.missing();
        let mut unwritten = Default::default();
        if !missing.is_empty() {
            match self {
                Self::Local { threads } => {
                    unwritten = local::work(folder, &missing, *threads, *timeout, watch)?;
                }
                Self::Ray { python, address } => {
                    ray::run(launch, (python, address.as_deref()), watch)?;
                }
                Self::Slurm { tasks, options } => {
                    unwritten = slurm::run(launch, &missing, (*tasks, options), watch)?;
                }
            }
        }
        (watch.progress)(None);
        folder.document(name, &unwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_options() {
        let parsed: Engine = "slurm,tasks=9,partition=short,time=1:00:00".parse().unwrap();
        let options = [("partition", "short"), ("time", "1:00:00")];
        let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        assert_eq!(parsed, Engine::Slurm { tasks: Some(9), options });
        let parsed: Engine = "ray,address=10.0.0.1:6379,python=/opt/python3".parse().unwrap();
        let address = Some("10.0.0.1:6379".to_owned());
        assert_eq!(parsed, Engine::Ray { python: "/opt/python3".into(), address });
        assert_eq!("local".parse(), Ok(Engine::Local { threads: None }));
        for (wrong, why) in [
            ("cloud", "expected local"),
            ("local,tasks=2", "unknown option tasks"),
            ("local,threads=0", "threads=0: expected a number from 1"),
            ("ray,address", "expected local"),
        ] {
            let error = wrong.parse::<Engine>().unwrap_err();
            assert!(error.starts_with(why), "{wrong}: {error}");
        }
    }
}

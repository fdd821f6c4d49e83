//! Workloads in fio's terms, from options of the command line or sections of a job file. Keys,
//! ranges and messages are the same as in `[workload]` of plans.

use keys::{Origin, job};
use report::Failure;
use wire::Duration;
use workload::{Fio, JobSpec};

/// The data to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No data.
    #[default]
    No,
    /// Data that this run wrote.
    Written,
    /// All data, as an earlier run wrote them. Writes are left out.
    Only,
}

/// A workload: the options, or a section of a job file.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name of the section; otherwise the kind of workload.
    pub name: String,
    /// Place of the section, for errors.
    pub origin: Origin,
    /// The workload.
    pub workload: JobSpec,
    /// Whether a size was given; otherwise the whole namespace is used.
    pub sized: bool,
    /// The data to compare.
    pub verify: Verify,
    /// Time before the measurement starts.
    pub ramp: Duration,
    /// Number of the group. Sections of one group run at the same time.
    pub group: usize,
}

/// All workloads of a run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Sections by group. Groups run one after the other.
    pub sections: Vec<Section>,
    /// Seed, if it was given.
    pub randseed: Option<u64>,
}

impl Request {
    /// Returns the groups in order. The sections of a group run at the same time.
    pub fn groups(&self) -> impl Iterator<Item = &[Section]> {
        self.sections.chunk_by(|a, b| a.group == b.group)
    }
}

/// A key with its value and place.
pub type Setting = (&'static str, String, Origin);

/// Keys of a workload that `farlane io` accepts.
pub const KEYS: [&str; 20] = [
    "rw",
    "rwmixread",
    "bs",
    "iodepth",
    "numjobs",
    "size",
    "io_size",
    "number_ios",
    "loops",
    "offset",
    "runtime",
    "time_based",
    "rate",
    "thinktime",
    "thinktime_blocks",
    "nsid",
    "dd",
    "count",
    "configreads",
    "gap",
];

/// Builds a section from these settings.
///
/// # Errors
/// One line that names the place of the key.
pub fn section(
    name: Option<&str>,
    settings: &[Setting],
    origin: Origin,
    verify: Verify,
    ramp: Duration,
) -> Result<Section, Failure> {
    let fail = |origin: &Origin, message: &str| Failure(origin.fail(message).to_string());
    let kinds = ["rw", "dd", "configreads"];
    if !settings.iter().any(|(key, ..)| kinds.contains(key)) {
        return Err(fail(&origin, "one of rw, dd and configreads is missing"));
    }
    let workload = job::parse(settings, &origin).map_err(|error| Failure(error.to_string()))?;
    let place = |key| settings.iter().find(|(known, ..)| *known == key).map(|(.., origin)| origin);
    let sized = place("size").is_some() || place("dd").is_some();
    let own_name = match &workload {
        JobSpec::Fio(fio) => fio.rw.name(),
        JobSpec::Dd { .. } => "dd",
        _ => "configreads",
    };
    if ramp > Duration::ZERO && workload.fio().is_none() {
        return Err(fail(&origin, "'ramp_time' does not apply to configreads"));
    }
    match (&workload, verify) {
        (JobSpec::Fio(_) | JobSpec::Dd { .. }, _) | (_, Verify::No) => {}
        _ => return Err(fail(&origin, "configuration reads have no data to verify")),
    }
    if verify == Verify::Only {
        let once = |fio: &Fio| fio.runtime.is_none() && fio.io_size.is_none() && fio.loops == 1;
        let whole = workload.fio().filter(once);
        if whole.is_none_or(|fio| fio.rw != workload::Rw::Write) || ramp > Duration::ZERO {
            let message = "verify_only is for rw=write without runtime, ramp_time, io_size and loops: \
                each block was written once";
            return Err(fail(&origin, message));
        }
    }
    let name = name.unwrap_or(own_name).to_owned();
    Ok(Section { name, origin, workload, sized, verify, ramp, group: 0 })
}

impl Section {
    /// Returns the parameters of the section's jobs, in a namespace of `namespace` bytes; `None`
    /// for configuration reads.
    pub fn fio(&self, namespace: u64) -> Option<Fio> {
        let mut fio = self.workload.fio()?;
        if !self.sized {
            let room = namespace.saturating_sub(fio.offset) / fio.numjobs as u64;
            fio.size = room / fio.bs as u64 * fio.bs as u64;
        }
        if self.verify == Verify::Only {
            fio.rw = workload::Rw::Read;
        }
        Some(fio)
    }

    /// Returns whether the section writes.
    pub fn writes(&self) -> bool {
        self.verify != Verify::Only && self.workload.fio().is_some_and(|fio| fio.rw.writes())
    }
}

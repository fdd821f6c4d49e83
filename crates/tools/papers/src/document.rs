//! The results of a publication as a document.

use crate::tsn_ports::Check;
use crate::{Changed, Lab, Row, Section, expether, nvme_tsn, tsn_ports, tsn_vm};
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Debug;

/// A part of a published experiment.
pub trait Part: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Results of the parts that ran.
    type Results: Default + Rows + Serialize;

    /// Name of the publication.
    const PUBLICATION: &'static str;
    /// All parts, each with its name and its contents.
    const PARTS: &'static [(Self, &'static str, &'static str)];
    /// Parts with published figures.
    const PUBLISHED: &'static [Self];

    /// Title and authors of the publication.
    fn citation() -> String;

    /// The section of the publication that has a figure.
    fn section(figure: &str) -> String;

    /// Simulates the part in a laboratory and adds its results. Returns the sections of the page.
    ///
    /// # Errors
    /// If a simulation does not run.
    fn simulate(self, results: &mut Self::Results, lab: Lab<'_>) -> Result<Vec<Section>, Failure>;

    /// Returns the part with this name.
    fn find(name: &str) -> Option<Self> {
        Self::PARTS.iter().find(|(_, own, _)| *own == name).map(|(part, ..)| *part)
    }
}

/// Figures and their expected values, of the parts that ran.
#[derive(Default, JsonSchema, Serialize)]
pub struct Checks {
    /// One element per figure, in the order of the cases.
    pub checks: Vec<Check>,
}

/// Results that contain a comparison with published figures.
pub trait Rows {
    /// A figure.
    type Row: Row + Clone + Serialize;

    /// Returns the rows of the parts that ran.
    fn rows(&self) -> &[Self::Row];
}

impl Rows for Checks {
    type Row = Check;

    fn rows(&self) -> &[Check] {
        &self.checks
    }
}

/// Version of the document.
const SCHEMA: u32 = 1;

/// A reproduced publication. Simulated figures are the same on any machine. Parts that `--only`
/// leaves out have no key.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Reproduction")]
pub struct Reproduction<R, T> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Title and authors of the publication.
    source: String,
    #[serde(flatten)]
    results: R,
    /// Only with `--set`: the settings, which differ from the publication's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Only with `--set`: the figures with the publication's settings, and with the settings `set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<Changed<T>>>,
}

impl<R, T> Reproduction<R, T> {
    /// A document. `set` and `changed` are the settings and their effects.
    pub fn new(
        source: String,
        results: R,
        set: Vec<String>,
        changed: Option<Vec<Changed<T>>>,
    ) -> Self {
        Self { schema: SCHEMA, source, results, set, changed }
    }

    /// Returns the results.
    pub fn into_results(self) -> R {
        self.results
    }
}

/// Simulates parts of a publication. Returns the document of `farlane reproduce --json`.
pub type Reproduce = Box<dyn FnOnce(Lab<'_>) -> Result<Value, Failure> + Send>;

/// Finds the named parts of a publication, all if none is named.
///
/// # Errors
/// An unknown name, with the known ones.
pub fn reproduce(publication: &str, only: &[String]) -> Result<Reproduce, Failure> {
    match publication {
        nvme_tsn::Part::PUBLICATION => parts::<nvme_tsn::Part>(only),
        expether::Part::PUBLICATION => parts::<expether::Part>(only),
        tsn_ports::Part::PUBLICATION => parts::<tsn_ports::Part>(only),
        tsn_vm::Part::PUBLICATION => parts::<tsn_vm::Part>(only),
        other => Err(Failure(format!(
            "unknown publication '{other}': expected nvme-tsn, expether, tsn-ports or tsn-vm"
        ))),
    }
}

fn parts<P: Part>(only: &[String]) -> Result<Reproduce, Failure> {
    let find = |name: &String| {
        P::find(name).ok_or_else(|| {
            let names: Vec<_> = P::PARTS.iter().map(|(_, name, _)| *name).collect();
            Failure(format!("unknown part '{name}': expected one of {}", names.join(", ")))
        })
    };
    let parts = match only {
        [] => P::PARTS.iter().map(|(part, ..)| *part).collect(),
        only => only.iter().map(find).collect::<Result<Vec<P>, _>>()?,
    };
    Ok(Box::new(move |lab| {
        let mut results = P::Results::default();
        for part in parts {
            part.simulate(&mut results, lab)?;
        }
        let changed: Option<Vec<Changed<<P::Results as Rows>::Row>>> = None;
        let document = Reproduction::new(P::citation(), results, Vec::new(), changed);
        serde_json::to_value(document).map_err(|error| Failure(error.to_string()))
    }))
}

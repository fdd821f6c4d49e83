//! `calibration`: the file with which `farlane calibrate` describes a machine. Its tables are
//! defaults of the plan's tables of the same names.

use super::section;
use super::tables::CALIBRATION;
use keys::{KeyError, Kind, Section, Value, allowed};

/// The key of a plan that names the file.
pub const KEY: &str = "calibration";
/// The table that describes the machine.
const MACHINE: &str = "calibrated";

/// The machine that was calibrated. Texts are as the machine reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Model of the processor (`model name` of /proc/cpuinfo).
    pub processor: String,
    /// Number of processors.
    pub processors: u64,
    /// Release of the kernel, as `uname -r`.
    pub kernel: String,
    /// How long nodes polled before they slept (`--spin`).
    pub spin: String,
    /// Date of the calibration, YYYY-MM-DD.
    pub date: String,
}

impl Machine {
    /// Returns the table of the file.
    pub fn toml(&self) -> String {
        let Self { processor, processors, kernel, spin, date } = self;
        let text = |text: &str| text.replace(['"', '\\'], "'");
        format!(
            "[{MACHINE}]\nprocessor = \"{}\"\nprocessors = {processors}\nkernel = \"{}\"\n\
             spin = \"{spin}\"\ndate = \"{date}\"\n",
            text(processor),
            text(kernel)
        )
    }

    /// Returns in what `other`, without its date, differs from this machine; `None` if in nothing.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let count = |machine: &Self| format!("{} processors", machine.processors);
        let kernel = |machine: &Self| format!("Linux {}", machine.kernel);
        let spin = |machine: &Self| format!("--spin {}", machine.spin);
        let pairs = [
            [&self.processor, &other.processor].map(Clone::clone),
            [count(self), count(other)],
            [kernel(self), kernel(other)],
            [spin(self), spin(other)],
        ];
        let differ = pairs.iter().filter(|[own, found]| own != found);
        let words: Vec<_> =
            differ.map(|[own, found]| format!("{own} there, {found} here")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn read(section: &Section) -> Self {
        let text = |key| section.text(key).unwrap_or_default().to_owned();
        Self {
            processor: text("processor"),
            processors: section.get("processors").unwrap_or_default(),
            kernel: text("kernel"),
            spin: text("spin"),
            date: text("date"),
        }
    }
}

/// Adds the values of the calibration that a plan names, where the plan has none. Returns the
/// machine of the calibration.
///
/// # Errors
/// If the file cannot be read, or its keys and values are not allowed there.
pub fn merge(plan: &mut Value) -> Result<Option<Machine>, KeyError> {
    let root = plan.clone();
    let root = section::root(&root);
    let Some(path) = root.path(KEY) else { return Ok(None) };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path);
    let text = text.or_else(|error| root.fail(KEY, format!("{KEY}: {name}: {error}")))?;
    let file = keys::parse(&name, &text)?;
    allowed::check(CALIBRATION, &file)?;
    let machine = Machine::read(&Section::root(CALIBRATION, &file).table(MACHINE));
    add_defaults(plan, file);
    Ok(Some(machine))
}

/// Adds the entries of `defaults` that `value` lacks, in both tables and in the tables below.
fn add_defaults(value: &mut Value, defaults: Value) {
    let (Kind::Table(own), Kind::Table(defaults)) = (&mut value.kind, defaults.kind) else {
        return;
    };
    for entry in defaults {
        match own.iter_mut().find(|own| own.key == entry.key) {
            Some(present) => add_defaults(&mut present.value, entry.value),
            None if entry.key != MACHINE => own.push(entry),
            None => {}
        }
    }
}

//! Queueing disciplines and filters, as `tc -j` prints them (iproute2, tc(8), tc-taprio(8),
//! tc-mqprio(8), tc-cbs(8), tc-flower(8), tc-gate(8), tc-police(8), tc-skbedit(8)).

use crate::json;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use tsn::{GateControlList, taprio};

/// A queueing discipline.
#[derive(Clone, Debug)]
pub struct Qdisc {
    /// Kind of the discipline, such as `taprio` or `noqueue`.
    pub kind: String,
    /// The interface; `None` if tc was called for one interface.
    pub device: Option<String>,
    /// Whether the discipline is the device's root, which every frame passes.
    pub is_root: bool,
    /// The number of the parent's queue, from 0.
    pub queue: Option<usize>,
    /// What is known of it.
    pub options: Options,
}

/// The options of a discipline.
#[derive(Clone, Debug)]
pub enum Options {
    /// taprio: traffic classes and gates.
    Taprio(Classes, Box<Gates>),
    /// mqprio: traffic classes.
    Mqprio(Classes),
    /// cbs: idleSlope of a class in kbit/s.
    Cbs(u64),
    /// Others.
    Other,
}

/// Traffic classes.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The class of each of the kernel's priorities 0 to 15.
    pub map: Vec<u8>,
    /// The queues of each class: first, and number.
    pub queues: Vec<(usize, usize)>,
    /// The longest payload of each class in bytes; 0: no limit.
    pub max_sdu: Vec<usize>,
    /// Whether each class is preemptable.
    pub preemptable: Vec<bool>,
}

/// The gates of a taprio.
#[derive(Clone, Debug)]
pub struct Gates {
    /// Clock of the gates, such as `TAI`; empty if there is none, as with an offload.
    pub clock: String,
    /// The list in force.
    pub in_force: Option<GateControlList>,
    /// The list that begins later: at its base time, or with the next cycle.
    pub pending: Option<GateControlList>,
}

/// Members without a meaning for plans.
const UNNEEDED: &[&str] = &[
    "handle",
    "refcnt",
    "tc",
    "flags",
    "index",
    "mode",
    "shaper",
    "sendslope",
    "hicredit",
    "locredit",
    "offload",
];

#[derive(Deserialize)]
struct QdiscText {
    kind: String,
    dev: Option<String>,
    #[serde(default)]
    root: bool,
    parent: Option<String>,
    #[serde(default)]
    options: Value,
}

#[derive(Deserialize)]
struct TaprioText {
    map: Vec<u8>,
    queues: Vec<Queues>,
    #[serde(default)]
    clockid: String,
    base_time: Option<u64>,
    cycle_time: Option<u64>,
    schedule: Option<Vec<EntryText>>,
    admin: Option<ListText>,
    #[serde(default, rename = "max-sdu")]
    max_sdu: Vec<usize>,
    #[serde(default)]
    fp: Vec<String>,
    #[serde(default)]
    cycle_time_extension: u64,
}

#[derive(Deserialize)]
struct MqprioText {
    map: Vec<u8>,
    queues: Vec<Queues>,
    #[serde(default)]
    fp: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Queues {
    Counted { offset: usize, count: usize },
    Between([usize; 2]),
}

#[derive(Deserialize)]
struct ListText {
    base_time: u64,
    cycle_time: u64,
    #[serde(default)]
    cycle_time_extension: u64,
    schedule: Vec<EntryText>,
}

#[derive(Deserialize)]
struct EntryText {
    cmd: String,
    gatemask: String,
    interval: u64,
}

#[derive(Deserialize)]
struct CbsText {
    idleslope: u64,
}

/// Parses the output of `tc -j qdisc show`, and adds members that are not read to `unread`.
///
/// # Errors
/// The path of the mistake, and the mistake.
pub fn qdiscs(json: &str, unread: &mut Vec<String>) -> Result<Vec<Qdisc>, String> {
    let each = json::elements(json)?.into_iter().enumerate();
    each.map(|(number, value)| qdisc(value, &format!("[{number}]"), unread)).collect()
}

fn qdisc(value: Value, path: &str, unread: &mut Vec<String>) -> Result<Qdisc, String> {
    let text: QdiscText = json::read(value, path, UNNEEDED, unread)?;
    let path = &format!("{path}.options");
    let options = match text.kind.as_str() {
        "taprio" => taprio(json::read(text.options, path, UNNEEDED, unread)?, path, unread)?,
        "mqprio" => {
            let MqprioText { map, queues, fp, .. } =
                json::read(text.options, path, UNNEEDED, unread)?;
            Options::Mqprio(classes(map, &queues, Vec::new(), &fp))
        }
        "cbs" => {
            Options::Cbs(json::read::<CbsText>(text.options, path, UNNEEDED, unread)?.idleslope)
        }
        _ => Options::Other,
    };
    // A queue's handle is MAJOR:MINOR in hexadecimal, from 1.
    let minor = text.parent.as_deref().and_then(|parent| parent.split_once(':')).map(|(_, at)| at);
    let queue = minor.and_then(|minor| usize::from_str_radix(minor, 16).ok()?.checked_sub(1));
    Ok(Qdisc { kind: text.kind, device: text.dev, is_root: text.root, queue, options })
}

fn classes(map: Vec<u8>, queues: &[Queues], max_sdu: Vec<usize>, fp: &[String]) -> Classes {
    let range = |queues: &Queues| match *queues {
        Queues::Counted { offset, count } => (offset, count),
        Queues::Between([first, last]) => (first, last.saturating_add(1).saturating_sub(first)),
    };
    let queues = queues.iter().map(range).collect();
    Classes { map, queues, max_sdu, preemptable: fp.iter().map(|letter| letter == "P").collect() }
}

fn taprio(text: TaprioText, path: &str, unread: &mut Vec<String>) -> Result<Options, String> {
    let TaprioText { map, queues, clockid, base_time, cycle_time, schedule, admin, .. } = text;
    let extension = admin.as_ref().map_or(text.cycle_time_extension, |it| it.cycle_time_extension);
    if extension > 0 {
        unread.push(format!("{path}.cycle_time_extension: not read"));
    }
    let listed = |base_time, cycle_time, schedule: &[EntryText], path: String| {
        let list = list(base_time, cycle_time, schedule);
        list.map_err(|message| format!("{path}: {message}"))
    };
    let in_force = match (base_time, cycle_time, schedule) {
        (Some(base), Some(cycle), Some(entries)) => {
            Some(listed(base, cycle, &entries, format!("{path}.schedule"))?)
        }
        _ => None,
    };
    let pending = admin.map(|ListText { base_time, cycle_time, schedule, .. }| {
        listed(base_time, cycle_time, &schedule, format!("{path}.admin.schedule"))
    });
    let gates = Gates { clock: clockid, in_force, pending: pending.transpose()? };
    Ok(Options::Taprio(classes(map, &queues, text.max_sdu, &text.fp), Box::new(gates)))
}

fn list(base: u64, cycle: u64, entries: &[EntryText]) -> Result<GateControlList, String> {
    let mut line = format!("base-time {base} cycle-time {cycle}");
    for EntryText { cmd, gatemask, interval, .. } in entries {
        write!(line, " sched-entry {cmd} {gatemask} {interval}").expect("a String takes all");
    }
    taprio::parse(&line).map_err(|error| error.message)
}

/// A flower filter.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The protocol, such as `802.1Q`.
    pub protocol: String,
    /// The values that frames must have, such as `vlan_id`, by the names of tc-flower(8).
    pub keys: serde_json::Map<String, Value>,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// An action of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// skbedit: the kernel's priority.
    Priority(u32),
    /// gate: a stream gate.
    Gate(StreamList),
    /// police. `tc -j` prints neither rate nor burst nor MTU (iproute2 6.15).
    Police,
    /// Others, by their kind.
    Other(String),
}

/// The list of a stream gate, with the kernel's names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamList {
    /// Base time in ns.
    pub base_time: u64,
    /// Cycle in ns.
    pub cycle_time: u64,
    /// The entries.
    pub schedule: Vec<StreamEntry>,
}

/// An entry of a stream gate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamEntry {
    /// `open` or `close`.
    pub gate_state: String,
    /// Length in ns.
    pub interval: u64,
    /// Internal priority; -1: none.
    pub ipv: i64,
    /// Octets that pass; -1: no limit.
    pub max_octets: i64,
}

impl Filter {
    /// Returns the number that frames must have for a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.keys.get(key)?.as_u64()
    }

    /// Returns the kernel's priority that matching frames receive.
    pub fn priority(&self) -> Option<u32> {
        self.actions.iter().find_map(|action| match action {
            Action::Priority(priority) => Some(*priority),
            _ => None,
        })
    }
}

#[derive(Deserialize)]
struct FilterText {
    protocol: String,
    kind: String,
    options: Option<FlowerText>,
}

#[derive(Deserialize)]
struct FlowerText {
    #[serde(default)]
    keys: serde_json::Map<String, Value>,
    #[serde(default)]
    actions: Vec<Value>,
}

/// Parses the output of `tc -j filter show dev DEVICE ingress`; filters of other kinds are added to
/// `unread`.
///
/// # Errors
/// The path of the mistake, and the mistake.
pub fn filters(json: &str, unread: &mut Vec<String>) -> Result<Vec<Filter>, String> {
    let mut all = Vec::new();
    for (number, value) in json::elements(json)?.into_iter().enumerate() {
        let path = format!("[{number}]");
        // Members of a filter and of actions besides these only describe its state.
        let text: FilterText = json::read(value, &path, &[], &mut Vec::new())?;
        let Some(FlowerText { keys, actions }) = text.options else { continue };
        if text.kind != "flower" {
            unread.push(format!("{path}: filter {} has no key", text.kind));
            continue;
        }
        let actions = actions
            .into_iter()
            .enumerate()
            .map(|(at, value)| action(value, &format!("{path}.options.actions[{at}]")));
        let actions = actions.collect::<Result<_, String>>()?;
        all.push(Filter { protocol: text.protocol, keys, actions });
    }
    Ok(all)
}

fn action(value: Value, path: &str) -> Result<Action, String> {
    // iproute2 6.15 prints no kind of a gate.
    if value.get("schedule").is_some() {
        return json::read(value, path, &[], &mut Vec::new()).map(Action::Gate);
    }
    let kind = value["kind"].as_str().unwrap_or_default();
    Ok(match (kind, value["priority"].as_str().and_then(class)) {
        ("skbedit", Some(priority)) => Action::Priority(priority),
        ("police", _) => Action::Police,
        _ => Action::Other(kind.to_owned()),
    })
}

/// Parses a class as printed by `print_tc_classid` of iproute2's tc/tc_util.c: MAJOR:MINOR in
/// hexadecimal, either left out if it is 0; `none` is 0.
fn class(text: &str) -> Option<u32> {
    let number = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text, 16).ok().map(u32::from),
    };
    match text.split_once(':') {
        Some((major, minor)) => Some(number(major)? << 16 | number(minor)?),
        None => (text == "none").then_some(0),
    }
}

#[cfg(test)]
mod tests;

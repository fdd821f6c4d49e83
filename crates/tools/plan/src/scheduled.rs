//! Plans with other gate control lists and starts of streams.

use super::{Plan, Planned, dump};
use keys::{Entry, KeyError, Kind, Origin, Value};
use sim::network::{CableEnd, NetworkConfig};
use wire::Duration;

/// When a stream of `[traffic]` is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// Name of the stream.
    pub stream: String,
    /// Its `start`.
    pub start: Duration,
    /// Its `priority`, also its `pcp` if the plan has one.
    pub priority: u8,
}

impl Plan {
    /// Returns the plan without parameters, patterns and further files, with the gates of `after`
    /// in place of those of `before`, and these starts of streams.
    ///
    /// # Errors
    /// A port that cannot have its gates, such as a copy of a node with other gates than the other
    /// copies; mistakes of the new plan.
    pub fn with_schedule(
        &self,
        before: &Planned,
        after: &Planned,
        starts: &[StreamStart],
    ) -> Result<(Self, Planned), KeyError> {
        let origin = Origin::Option("schedule".to_owned());
        let mut value = self.value.clone();
        let network = &after.config.network;
        let changed = changed(before, after);
        for place in &changed {
            let (path, name) = self.port_path(after, *place);
            let gates = network.port(*place).gates.as_ref();
            let schedule = gates.map_or("none", |_| name.as_str());
            let key: Vec<&str> = path.iter().map(String::as_str).chain(["schedule"]).collect();
            set(&mut value, &key, Kind::Text(schedule.to_owned()), &origin)?;
            let Some(gates) = gates else { continue };
            let entries = gates.list().entries().iter().map(|entry| {
                let (letter, states) = (entry.operation.letter(), entry.states.0);
                let kind = Kind::Text(format!("{letter} {states:02x} {}", entry.interval.exact()));
                Value { origin: origin.clone(), kind }
            });
            let entries = Value { origin: origin.clone(), kind: Kind::List(entries.collect()) };
            let entries =
                Entry { key: "entries".to_owned(), origin: origin.clone(), value: entries };
            set(&mut value, &["schedules", &name], Kind::Table(vec![entries]), &origin)?;
        }
        for StreamStart { stream, start, priority } in starts {
            let mut key =
                |key: &str, kind| set(&mut value, &["traffic", stream, key], kind, &origin);
            key("start", Kind::Text(start.exact()))?;
            let own = before.streams.iter().find(|(name, _)| name == stream);
            let own = own.map(|(_, id)| before.config.network.stream(*id));
            let code = Kind::Integer((*priority).into());
            if own.is_some_and(|own| own.priority != *priority) {
                key("priority", code.clone())?;
            }
            if own.is_some_and(|own| own.pcp.is_some_and(|pcp| pcp != *priority)) {
                key("pcp", code)?;
            }
        }
        let plan = Self::parse("the scheduled plan", &dump::toml(&value))?;
        let planned = plan.build()?;
        match self::changed(&planned, after).first() {
            Some(place) => Err(origin.fail(format!(
                "{} has no table of its own for its gates: it is a copy, or one of several cables \
                 between two nodes",
                after.port_name(*place)
            ))),
            None => Ok((plan, planned)),
        }
    }

    /// Returns the path of the table of a port, and a name for its list. Copies share a table.
    fn port_path(&self, planned: &Planned, place: CableEnd) -> (Vec<String>, String) {
        let network = &planned.config.network;
        let across = network.wiring().across(place);
        let (own, peer) =
            (planned.node_name(place), across.map_or("", |(_, end)| planned.node_name(end)));
        let original = own.rsplit_once('.').map_or(own, |(original, _)| original);
        let find = |kind: &str| {
            let mut names = [own, original].into_iter();
            names.find(|name| self.has_table(kind, name))
        };
        let mut path = match (place, find("hosts"), find("nodes")) {
            (CableEnd::Bridge(..), ..) => vec!["bridges", own],
            (_, Some(host), _) => vec!["hosts", host, "link"],
            (_, None, Some(node)) => vec!["nodes", node],
            _ if planned.hosts.iter().any(|host| host == own) => vec!["hosts", own, "link"],
            _ => vec!["nodes", own],
        };
        let has_one = match place {
            CableEnd::Bridge(..) => false,
            CableEnd::Station(station, _) => network.stations[station].ports.len() == 1,
        };
        if !has_one {
            path.extend(["ports", peer]);
        }
        (path.into_iter().map(str::to_owned).collect(), format!("{own} to {peer}"))
    }

    /// Whether the plan has the table `kind.name`.
    fn has_table(&self, kind: &str, name: &str) -> bool {
        let find = |value: &Value, key: &str| {
            let entries = value.entries().unwrap_or_default();
            entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
        };
        find(&self.value, kind).is_some_and(|table| find(&table, name).is_some())
    }
}

/// Returns the ports whose gates differ.
fn changed(before: &Planned, after: &Planned) -> Vec<CableEnd> {
    let [before, after] = [before, after].map(|planned| &planned.config.network);
    let ends = after.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let gates = |network: &NetworkConfig, end| format!("{:?}", network.port(end).gates);
    ends.filter(|end| gates(before, *end) != gates(after, *end)).collect()
}

/// Sets the value at a path. Adds tables that are missing.
fn set(plan: &mut Value, path: &[&str], kind: Kind, origin: &Origin) -> Result<(), KeyError> {
    let value = path.iter().try_fold(plan, |value, key| value.member(key, origin))?;
    *value = Value { kind, origin: origin.clone() };
    Ok(())
}

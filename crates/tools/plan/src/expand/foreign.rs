//! Networks of files in other formats, as tables of a plan.

use super::super::tables::ROOT;
use super::fitting;
use keys::allowed::{find, kind};
use keys::{Allowed, Entry, KeyError, Kind, Origin, Table, Value, all};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes and cables. Attributes that are not keys of their table have no effect.
#[derive(Default)]
pub struct Network {
    nodes: Vec<Node>,
    numbers: BTreeMap<String, usize>,
    cables: Vec<Cable>,
    /// By the direction that was not read: cables with only one direction.
    halves: BTreeMap<[usize; 2], Vec<usize>>,
}

struct Node {
    name: String,
    origin: Origin,
    /// `None`: a node with one cable is a station.
    is_bridge: Option<bool>,
    attributes: Vec<Entry>,
}

struct Cable {
    ends: [usize; 2],
    origin: Origin,
    attributes: Vec<Entry>,
}

impl Network {
    /// Returns the number of a node.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Returns the number of a node. An unknown node is added.
    pub fn node(&mut self, name: &str, origin: &Origin, is_bridge: Option<bool>) -> usize {
        self.number(name).unwrap_or_else(|| {
            let (name, origin) = (name.to_owned(), origin.clone());
            self.numbers.insert(name.clone(), self.nodes.len());
            self.nodes.push(Node { name, origin, is_bridge, attributes: Vec::new() });
            self.nodes.len() - 1
        })
    }

    /// Adds attributes of a node.
    ///
    /// # Errors
    /// Attributes that have another value already.
    pub fn add(&mut self, node: usize, attributes: Vec<Entry>) -> Result<(), KeyError> {
        agree(&mut self.nodes[node].attributes, attributes)
    }

    /// Adds a cable.
    pub fn cable(&mut self, ends: [usize; 2], origin: &Origin, attributes: Vec<Entry>) {
        self.cables.push(Cable { ends, origin: origin.clone(), attributes });
    }

    /// Adds one direction of a cable. Both directions together are one cable.
    ///
    /// # Errors
    /// Keys of a cable that differ in the two directions.
    pub fn direction(
        &mut self,
        [from, to]: [usize; 2],
        origin: &Origin,
        mut attributes: Vec<Entry>,
    ) -> Result<(), KeyError> {
        attributes.retain(|attribute| find(keys_of("cables"), &attribute.key).is_some());
        let halves = self.halves.entry([from, to]).or_default();
        if !halves.is_empty() {
            return agree(&mut self.cables[halves.remove(0)].attributes, attributes);
        }
        self.halves.entry([to, from]).or_default().push(self.cables.len());
        self.cable([from, to], origin, attributes);
        Ok(())
    }

    /// Returns the places of cables with only one direction.
    pub fn halves(&self) -> impl Iterator<Item = &Origin> {
        self.halves.values().flatten().map(|cable| &self.cables[*cable].origin)
    }

    /// Returns the tables of the network.
    ///
    /// # Errors
    /// Attributes with several values, and arrays that are not TOML.
    pub fn tables(self) -> Result<Vec<Entry>, KeyError> {
        let mut degrees = vec![0; self.nodes.len()];
        self.cables.iter().flat_map(|cable| cable.ends).for_each(|end| degrees[end] += 1);
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        let (mut stations, mut bridges) = (Vec::new(), Vec::new());
        for (node, degree) in self.nodes.into_iter().zip(degrees) {
            let (kind, tables) = match node.is_bridge.unwrap_or(degree > 1) {
                true => ("bridges", &mut bridges),
                false => ("nodes", &mut stations),
            };
            tables.push(table(kind, &node.name, &node.origin, node.attributes));
        }
        let mut used = BTreeSet::new();
        let cables = self.cables.into_iter().map(|cable| {
            let [a, b] = cable.ends.map(|end| names[end].as_str());
            let ends = [attribute("a", a, &cable.origin), attribute("b", b, &cable.origin)];
            let attributes = ends.into_iter().chain(cable.attributes).collect();
            table("cables", &free(&mut used, &format!("{a}-{b}")), &cable.origin, attributes)
        });
        let cables = cables.collect();
        let kinds = [("nodes", stations), ("bridges", bridges), ("cables", cables)];
        let kinds = all(kinds.into_iter().map(|(kind, tables)| Ok(named(kind, all(tables)?))))?;
        Ok(kinds.into_iter().flatten().collect())
    }
}

/// Returns the name, with a number if it is not free: cables may be parallel.
fn free(used: &mut BTreeSet<String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| used.insert(name.clone())).unwrap_or_default()
}

/// Returns an attribute of a node or cable; its value is not yet a plan's.
pub fn attribute(key: &str, text: &str, origin: &Origin) -> Entry {
    let value = Value { origin: origin.clone(), kind: Kind::Text(text.to_owned()) };
    Entry { key: key.to_owned(), origin: origin.clone(), value }
}

/// Adds attributes. An attribute may be given twice with the same value.
///
/// # Errors
/// Each attribute with another value than before.
fn agree(into: &mut Vec<Entry>, attributes: Vec<Entry>) -> Result<(), KeyError> {
    all(attributes.into_iter().map(|own| match into.iter().find(|known| known.key == own.key) {
        None => {
            into.push(own);
            Ok(())
        }
        Some(known) if known.value.kind == own.value.kind => Ok(()),
        Some(known) => {
            let message =
                format!("{}: expected the same value as at {}", own.key, known.value.origin);
            Err(own.value.origin.fail(message))
        }
    }))
    .map(drop)
}

/// Returns the keys of tables whose names the plan chooses.
fn keys_of(kind: &str) -> Table {
    match find(ROOT, kind).map(|key| key.allowed) {
        Some(Allowed::Named(keys)) => keys,
        _ => &[],
    }
}

/// Returns the table `kind.name`. Attributes become its keys.
///
/// # Errors
/// Attributes with several values, and arrays that are not TOML.
pub fn table(
    kind: &str,
    name: &str,
    origin: &Origin,
    attributes: Vec<Entry>,
) -> Result<Entry, KeyError> {
    let mut known = Vec::new();
    agree(&mut known, attributes)?;
    let entries = all(known.into_iter().map(|attribute| value(keys_of(kind), attribute)))?;
    let value = Value {
        origin: origin.clone(),
        kind: Kind::Table(entries.into_iter().flatten().collect()),
    };
    Ok(Entry { key: escaped(name), origin: origin.clone(), value })
}

/// Returns an attribute as a key of a plan; `None` if the table has no such key.
fn value(keys: Table, attribute: Entry) -> Result<Option<Entry>, KeyError> {
    let allowed = match find(keys, &attribute.key).map(|key| key.allowed) {
        None | Some(Allowed::Table(_) | Allowed::Named(_)) => return Ok(None),
        allowed => allowed,
    };
    let Entry { key, origin, value } = attribute;
    let kind = match value.kind {
        Kind::Text(text) => fitting(kind(&escaped(&text), &value.origin)?, allowed),
        other => other,
    };
    Ok(Some(Entry { key, origin, value: Value { kind, ..value } }))
}

/// Returns a text without expressions.
fn escaped(text: &str) -> String {
    text.replace('{', "{{")
}

/// Returns a table of tables with the place of its first table; `None` if there is none.
pub fn named(key: &str, tables: Vec<Entry>) -> Option<Entry> {
    let origin = tables.first()?.origin.clone();
    let value = Value { origin: origin.clone(), kind: Kind::Table(tables) };
    Some(Entry { key: key.to_owned(), origin, value })
}

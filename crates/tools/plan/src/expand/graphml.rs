//! Networks in GraphML.

use super::foreign::{Network, attribute};
use super::template::words;
use keys::{Entry, KeyError, Origin, Source, all, unknown};
use roxmltree::{Document, Node};

/// Words for stations, then for bridges.
const KINDS: [&str; 5] = ["station", "host", "end", "bridge", "switch"];
/// Number of words for stations.
const STATIONS: usize = 3;

/// Returns the tables of a network.
///
/// # Errors
/// XML that is not well-formed, hyperedges, edges of unknown nodes, nodes of an unknown kind, and
/// values of which no key can be made.
pub fn read(file: &str, text: &str) -> Result<Vec<Entry>, KeyError> {
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = (error.pos().row as usize, error.pos().col as usize);
        Origin::File { file: file.into(), line, column }.fail(error.to_string())
    })?;
    let graph = Graph::new(&document, Source::new(file, text));
    let mut network = Network::default();
    all(graph.elements("hyperedge").map(|edge| {
        Err::<(), _>(graph.place(edge).fail("hyperedges are not supported: expected edges"))
    }))?;
    all(graph.elements("node").map(|node| graph.node(node, &mut network)))?;
    all(graph.elements("edge").map(|edge| graph.edge(edge, &mut network)))?;
    network.tables()
}

/// A declared attribute.
struct Key<'a> {
    id: &'a str,
    name: &'a str,
    /// The elements with this attribute: `node`, `edge` or `all`.
    elements: &'a str,
    default: Option<Node<'a, 'a>>,
}

struct Graph<'a> {
    document: &'a Document<'a>,
    source: Source<'a>,
    keys: Vec<Key<'a>>,
}

impl<'a> Graph<'a> {
    fn new(document: &'a Document<'a>, source: Source<'a>) -> Self {
        let mut graph = Self { document, source, keys: Vec::new() };
        let key = |key: Node<'a, 'a>| {
            let id = key.attribute("id")?;
            let name = key.attribute("attr.name").unwrap_or(id);
            let elements = key.attribute("for").unwrap_or("all");
            let default = key.children().find(|child| child.has_tag_name("default"));
            Some(Key { id, name, elements, default })
        };
        graph.keys = graph.elements("key").filter_map(key).collect();
        graph
    }

    fn elements(&self, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> + use<'a> {
        self.document.descendants().filter(move |node| node.has_tag_name(name))
    }

    fn place(&self, node: Node) -> Origin {
        self.source.at(node.range().start)
    }

    /// Returns an attribute of the element itself.
    fn own(&self, element: Node<'a, 'a>, name: &str) -> Result<&'a str, KeyError> {
        let fail = || self.place(element).fail(format!("the attribute '{name}' is missing"));
        element.attribute(name).ok_or_else(fail)
    }

    /// Returns the attributes of a node or edge that are not empty, also by default.
    fn data(&self, element: Node<'a, 'a>) -> impl Iterator<Item = Entry> {
        let tag = element.tag_name().name();
        let keys = self.keys.iter().filter(move |key| [tag, "all"].contains(&key.elements));
        keys.filter_map(move |key| {
            let is_own =
                |child: &Node| child.has_tag_name("data") && child.attribute("key") == Some(key.id);
            let data = element.children().find(is_own).or(key.default)?;
            let text = data.text().map(str::trim).filter(|text| !text.is_empty())?;
            Some(attribute(key.name, text, &self.place(data)))
        })
    }

    fn node(&self, node: Node<'a, 'a>, network: &mut Network) -> Result<(), KeyError> {
        let (name, origin) = (self.own(node, "id")?, self.place(node));
        if network.number(name).is_some() {
            return Err(origin.fail(format!("two nodes have the id '{name}'")));
        }
        let (kinds, attributes): (Vec<_>, Vec<_>) =
            self.data(node).partition(|data| ["type", "kind"].contains(&&*data.key));
        let kind = kinds.first().map(is_bridge).transpose()?;
        let node = network.node(name, &origin, kind);
        network.add(node, attributes)
    }

    fn edge(&self, edge: Node<'a, 'a>, network: &mut Network) -> Result<(), KeyError> {
        let origin = self.place(edge);
        let end = |name| {
            let id = self.own(edge, name)?;
            network.number(id).ok_or_else(|| origin.fail(format!("unknown node '{id}'")))
        };
        let ends = [end("source")?, end("target")?];
        let attributes = self.data(edge).map(|data| Entry { key: key(data.key), ..data }).collect();
        let graph = edge.parent().and_then(|graph| graph.attribute("edgedefault"));
        let is_directed = edge.attribute("directed").map(|directed| directed == "true");
        if is_directed.unwrap_or(graph == Some("directed")) {
            return network.direction(ends, &origin, attributes);
        }
        network.cable(ends, &origin, attributes);
        Ok(())
    }
}

/// Returns the key of a cable that an attribute sets.
fn key(attribute: String) -> String {
    match attribute.as_str() {
        "bandwidth" => "rate".to_owned(),
        "delay" => "propagation".to_owned(),
        _ => attribute,
    }
}

fn is_bridge(kind: &Entry) -> Result<bool, KeyError> {
    let word = words(kind.value.kind.clone()).to_lowercase();
    let at = KINDS.iter().position(|known| *known == word);
    let message = || unknown(&format!("{} of a node", kind.key), &word, &KINDS);
    at.map(|at| at >= STATIONS).ok_or_else(|| kind.value.origin.fail(message()))
}

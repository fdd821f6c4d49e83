//! A PCIe hierarchy as a text tree similar to `lspci -tv`, and as JSON.

use pcie::enumerate::{Bar, Device, Hierarchy, Kind, Node, Port};
use schemars::JsonSchema;
use serde::Serialize;

/// A memory BAR.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "Bar")]
pub struct BarEntry {
    /// Index of the BAR, 0 to 5.
    pub index: u8,
    /// Bus address of the BAR; below 4 GiB.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// A function of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "Function")]
pub struct Entry {
    /// BDF of the function.
    pub bdf: String,
    /// BDF of the bridge above the function; null for the root port.
    pub parent: Option<String>,
    /// `root port`, `upstream port`, `downstream port`, `bridge` or `endpoint`.
    pub kind: &'static str,
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Base class, subclass and programming interface: six hexadecimal digits.
    pub class: String,
    /// Name of the class.
    pub class_name: &'static str,
    /// Configured Max_Payload_Size in bytes.
    pub max_payload: usize,
    /// Physical slot number of a downstream port; null for others.
    pub slot: Option<u16>,
    /// Whether the link of a downstream switch port is up; null for others.
    pub link_up: Option<bool>,
    /// First and last bus below a bridge; null for others.
    pub buses: Option<(u8, u8)>,
    /// Start and end (exclusive) of the memory window of a bridge; null if it has none.
    pub window: Option<(u64, u64)>,
    /// Memory BARs of an endpoint, by index; empty for bridges.
    pub bars: Vec<BarEntry>,
    /// MSI-X vectors of an endpoint; null for others.
    pub msix_vectors: Option<u16>,
    /// Device serial number, 16 hexadecimal digits; null if there is none.
    pub serial: Option<String>,
}

/// Returns every function, depth first.
pub fn entries(hierarchy: &Hierarchy) -> Vec<Entry> {
    fn walk(node: &Node, parent: Option<&Node>, out: &mut Vec<Entry>) {
        out.push(entry(node, parent));
        node.children().iter().for_each(|child| walk(child, Some(node), out));
    }
    let mut out = Vec::new();
    walk(&hierarchy.root, None, &mut out);
    out
}

fn entry(node: &Node, parent: Option<&Node>) -> Entry {
    let (port, device) = (node.port(), node.device());
    let bar = |bar: &Bar| BarEntry { index: bar.index, address: bar.address, size: bar.size };
    let [base, sub, interface] = node.class;
    Entry {
        bdf: node.bdf.to_string(),
        parent: parent.map(|parent| parent.bdf.to_string()),
        kind: kind_name(node),
        vendor: node.id.0,
        device: node.id.1,
        class: format!("{base:02x}{sub:02x}{interface:02x}"),
        class_name: class_name(node.class),
        max_payload: node.max_payload,
        slot: port.and_then(|port| port.slot),
        link_up: port.filter(|port| is_downstream(port)).map(|port| port.link_up),
        buses: port.map(|port| (port.secondary, port.subordinate)),
        window: port.map(|p| (p.window.start, p.window.end)).filter(|(start, end)| start < end),
        bars: device.map(|device| device.bars.iter().map(bar).collect()).unwrap_or_default(),
        msix_vectors: device.and_then(|device| device.msix).map(|msix| msix.vectors),
        serial: device.and_then(|device| device.serial).map(|serial| format!("{serial:016x}")),
    }
}

/// Returns whether the port is a downstream switch port: device/port type 6.
fn is_downstream(port: &Port) -> bool {
    port.port_type == 6
}

fn kind_name(node: &Node) -> &'static str {
    match node.port().map(|port| port.port_type) {
        None => "endpoint",
        Some(4) => "root port",
        Some(5) => "upstream port",
        Some(6) => "downstream port",
        Some(_) => "bridge",
    }
}

/// Returns the name of a class (PCI Code and ID Assignment 1.11); only of classes that occur in
/// farlane.
fn class_name(class: [u8; 3]) -> &'static str {
    match class {
        [1, 8, 2] => "NVM Express controller",
        [1, 8, _] => "non-volatile memory controller",
        [1, ..] => "mass storage controller",
        [2, 0, _] => "Ethernet controller",
        [2, ..] => "network controller",
        [3, ..] => "display controller",
        [5, ..] => "memory controller",
        [6, 4, _] => "PCI bridge",
        [6, ..] => "bridge",
        [0x08, ..] => "system peripheral",
        [0x0c, 3, _] => "USB controller",
        [0x0c, ..] => "serial bus controller",
        [0x12, ..] => "processing accelerator",
        _ => "device",
    }
}

/// Formats the hierarchy as an indented tree, one or two lines per function.
pub fn tree(hierarchy: &Hierarchy) -> String {
    let mut out = String::new();
    branch(&hierarchy.root, "", "", &mut out);
    out
}

fn branch(node: &Node, first: &str, rest: &str, out: &mut String) {
    *out += &format!("{first}{}\n", title(node));
    if let Kind::Endpoint(device) = &node.kind {
        for line in details(device) {
            *out += &format!("{rest}         {line}\n");
        }
    }
    let children = node.children();
    for (i, child) in children.iter().enumerate() {
        let last = i + 1 == children.len();
        let (first, more) = if last { (r"\-", "  ") } else { ("+-", "| ") };
        branch(child, &format!("{rest} {first}"), &format!("{rest} {more}"), out);
    }
}

fn title(node: &Node) -> String {
    let (vendor, device) = node.id;
    let id = format!("[{vendor:04x}:{device:04x}]");
    let Some(port) = node.port() else {
        let payload = node.max_payload;
        return format!("{}  {} {id}  MPS {payload}", node.bdf, class_name(node.class));
    };
    let buses = match (port.secondary, port.subordinate) {
        (first, last) if first == last => format!("[{first:02x}]"),
        (first, last) => format!("[{first:02x}-{last:02x}]"),
    };
    let mut title = format!("{}-{buses}  {} {id}", node.bdf, kind_name(node));
    if let Some(slot) = port.slot {
        title += &format!("  slot {slot}");
    }
    if is_downstream(port) {
        title += if port.link_up { "  link up" } else { "  link down" };
    }
    title
}

fn details(device: &Device) -> Vec<String> {
    let bar = |bar: &Bar| {
        let width = if bar.is_64bit { "64-bit" } else { "32-bit" };
        format!("BAR {} at {:#x}, {}, {width}", bar.index, bar.address, size(bar.size))
    };
    let mut lines: Vec<String> = device.bars.iter().map(bar).collect();
    let vectors = device.msix.map(|msix| format!("MSI-X {} vectors", msix.vectors));
    let serial = device.serial.map(|serial| format!("serial number {serial:016x}"));
    let more: Vec<String> = vectors.into_iter().chain(serial).collect();
    if !more.is_empty() {
        lines.push(more.join(", "));
    }
    lines
}

/// Formats a power of two in its largest unit.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x400 => format!("{bytes} B"),
        0x400..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcie::enumerate::Msix;
    use wire::Bdf;

    fn node(bdf: (u8, u8), class: [u8; 3], kind: Kind) -> Node {
        Node {
            bdf: Bdf::new(bdf.0, bdf.1, 0),
            id: (0x1b36, 0x0010),
            class,
            capabilities: Vec::new(),
            pcie: Some(0x80),
            max_payload_supported: 4096,
            max_payload: 256,
            kind,
        }
    }

    fn port(
        bdf: (u8, u8),
        port_type: u8,
        slot: Option<u16>,
        buses: (u8, u8),
        children: Vec<Node>,
    ) -> Node {
        let link_up = !children.is_empty();
        let window = if link_up { 0xe000_0000..0xe010_0000 } else { 0..0 };
        let (secondary, subordinate) = buses;
        let port = Port { port_type, slot, link_up, secondary, subordinate, window, children };
        node(bdf, [6, 4, 0], Kind::Bridge(port))
    }

    fn hierarchy() -> Hierarchy {
        let bars = vec![Bar {
            index: 0,
            size: 0x4000,
            is_64bit: true,
            prefetchable: false,
            address: 0xe000_0000,
        }];
        let msix = Some(Msix { capability: 0x50, vectors: 65, table: (0, 0), pending: (0, 0) });
        let device = Device { bars, msix, serial: Some(0x1234), contents: None };
        let drive = |bus| node((bus, 0), [1, 8, 2], Kind::Endpoint(device.clone()));
        let ports = vec![
            port((2, 0), 6, Some(1), (3, 3), vec![drive(3)]),
            port((2, 1), 6, Some(2), (4, 7), vec![]),
            port((2, 2), 6, Some(3), (8, 8), vec![drive(8)]),
        ];
        let upstream = port((1, 0), 5, None, (2, 8), ports);
        Hierarchy { root: port((0, 1), 4, None, (1, 8), vec![upstream]) }
    }

    #[test]
    fn a_switch_with_an_empty_slot() {
        let text = tree(&hierarchy());
        assert!(text.lines().all(|line| line.len() <= 100));
        assert_eq!(
            text,
            r"00:01.0-[01-08]  root port [1b36:0010]
 \-01:00.0-[02-08]  upstream port [1b36:0010]
    +-02:00.0-[03]  downstream port [1b36:0010]  slot 1  link up
    |  \-03:00.0  NVM Express controller [1b36:0010]  MPS 256
    |             BAR 0 at 0xe0000000, 16 KiB, 64-bit
    |             MSI-X 65 vectors, serial number 0000000000001234
    +-02:01.0-[04-07]  downstream port [1b36:0010]  slot 2  link down
    \-02:02.0-[08]  downstream port [1b36:0010]  slot 3  link up
       \-08:00.0  NVM Express controller [1b36:0010]  MPS 256
                  BAR 0 at 0xe0000000, 16 KiB, 64-bit
                  MSI-X 65 vectors, serial number 0000000000001234
"
        );
    }

    #[test]
    fn json_is_a_flat_list() {
        let entries = entries(&hierarchy());
        assert_eq!(entries.len(), 7);
        let json = serde_json::to_value(&entries[3]).unwrap();
        assert_eq!(json["bdf"], "03:00.0");
        assert_eq!(json["parent"], "02:00.0");
        assert_eq!(json["class"], "010802");
        assert_eq!(json["bars"][0]["size"], 0x4000);
        assert_eq!(json["link_up"], serde_json::Value::Null);
        assert_eq!(entries[4].link_up, Some(false));
        assert_eq!(entries[4].window, None);
    }
}

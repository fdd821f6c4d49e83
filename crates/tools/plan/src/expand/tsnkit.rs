//! Instances of tsnkit 0.3.0: CSV files of a topology and of streams.

use super::csv_rows::csv_rows;
use super::foreign::{Network, attribute, named, table};
use super::template::words;
use keys::{Entry, KeyError, Kind, Origin, Value, all};

const EXPECTED: &str = "include: expected a CSV file of tsnkit with rows and the columns \
    link,q_num,rate,t_proc,t_prop or stream,src,dst,size,period,deadline,jitter";

/// Returns the tables of a topology or of streams.
///
/// # Errors
/// Other columns, links with only one direction, and values that a plan cannot have.
pub fn read(file: &str, text: &str) -> Result<Vec<Entry>, KeyError> {
    let rows = csv_rows(file, text)?;
    let rows = all(rows.iter().map(Value::entries))?;
    let columns: Vec<&str> =
        rows.first().into_iter().copied().flatten().map(|cell| &*cell.key).collect();
    match columns[..] {
        ["link", "q_num", "rate", "t_proc", "t_prop"] => topology(&rows),
        ["stream" | "id", "src", "dst", "size", "period", "deadline", "jitter"] => {
            let streams = all(rows.iter().map(|row| stream(row)))?;
            Ok(named("traffic", streams).into_iter().collect())
        }
        _ => Err(Origin::File { file: file.into(), line: 1, column: 1 }.fail(EXPECTED)),
    }
}

/// A row is one direction of a link. `q_num` and `t_proc` belong to the sending node, which waits
/// for `t_proc` before it forwards a frame; talkers and listeners have no such delay.
fn topology(rows: &[&[Entry]]) -> Result<Vec<Entry>, KeyError> {
    let mut network = Network::default();
    let links = all(rows.iter().map(|row| ends(&row[0].value)))?;
    all(rows.iter().zip(&links).map(|(row, [source, _])| {
        let origin = &row[0].value.origin;
        let node = network.node(source, origin, None);
        let zero = ["tx_delay", "rx_delay"].map(|key| attribute(key, "0ns", origin));
        let own = [cell("queues", &row[1], ""), cell("delay", &row[3], "ns")];
        network.add(node, zero.into_iter().chain(own).collect())
    }))?;
    let one_way = |origin: &Origin| origin.fail("link: the opposite direction has no row");
    all(rows.iter().zip(&links).map(|(row, [source, target])| {
        let origin = &row[0].value.origin;
        let ends = network.number(source).zip(network.number(target));
        let (source, target) = ends.ok_or_else(|| one_way(origin))?;
        let attributes = vec![cell("rate", &row[2], "G"), cell("propagation", &row[4], "ns")];
        network.direction([source, target], origin, attributes)
    }))?;
    all(network.halves().map(|origin| Err::<(), _>(one_way(origin))))?;
    network.tables()
}

/// Returns the names of a link's nodes.
fn ends(link: &Value) -> Result<[String; 2], KeyError> {
    let text = words(link.kind.clone());
    let pair = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')?.split_once(','));
    let pair =
        pair.map(|(a, b)| [a, b].map(|end| end.trim().parse().map(|end: u32| end.to_string())));
    match pair {
        Some([Ok(source), Ok(target)]) => Ok([source, target]),
        _ => Err(link
            .origin
            .fail(format!("link: expected two nodes such as (0, 1); found '{text}'"))),
    }
}

/// Returns a cell as an attribute with a unit.
fn cell(key: &str, cell: &Entry, unit: &str) -> Entry {
    attribute(key, &(words(cell.value.kind.clone()) + unit), &cell.value.origin)
}

/// tsnkit sends `size` bytes without overhead, which is a frame's length from header to FCS. Its
/// `jitter` is a requirement that plans do not have.
fn stream(row: &[Entry]) -> Result<Entry, KeyError> {
    let [name, from, to, size, period, deadline, _] = row else { unreachable!() };
    let origin = &name.value.origin;
    let mut length = size.clone();
    if let Kind::Integer(bytes @ 0..64) = &mut length.value.kind {
        *bytes = 64;
    }
    let mut to = Entry { key: "to".into(), ..to.clone() };
    let Kind::List(listeners) = &mut to.value.kind else {
        return Err(to.value.origin.fail("dst: expected a list such as [3]"));
    };
    for listener in listeners {
        listener.kind = Kind::Text(words(listener.kind.clone()));
    }
    let attributes = vec![
        cell("from", from, ""),
        to,
        cell("length", &length, "B"),
        cell("interval", period, "ns"),
        cell("deadline", deadline, "ns"),
        attribute("paths", "[\"shortest\"]", origin),
    ];
    table("traffic", &words(name.value.kind.clone()), origin, attributes)
}

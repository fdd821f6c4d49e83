//! Gate control lists of placed streams.

use super::search::Found;
use crate::schedule::Lists;
use tsn::{Entry, GateControlList, GateStates};
use wire::{Duration, Instant};

/// A part of a cycle with the same open gates.
#[derive(Clone, Copy, Debug)]
struct Part {
    begin: u64,
    end: u64,
    gates: u8,
    /// Whether it is a window of streams.
    is_window: bool,
    /// Whether a frame of a stream waits for a later window.
    waits: bool,
}

/// Begin, end and class of a window.
type Window = (u64, u64, usize);

/// In place of a class: all gates are closed.
const CLOSED: usize = 8;
/// In place of a class: a frame waits.
const WAITS: usize = 9;

/// The lists of all ports on paths of streams. A list has at most `most` entries, and no more than
/// the hardware of its port can run.
///
/// A frame has a window in its class, alone on the line with the other windows. A window begins with
/// the frame if the frame waits for it, else by margin and gap before. All other classes are closed
/// from the gap before the frame to the end of the window; a frame of these that does not fit until
/// then waits (IEEE 802.1Q-2022, 8.6.8.4).
///
/// # Errors
/// A port whose list is too long.
pub fn lists(found: &Found<'_>, cycles: &[u64], most: usize) -> Result<Lists, String> {
    let problem = found.board.problem;
    let mut lists = Lists::new();
    for (number, port) in problem.ports.iter().enumerate() {
        let parts = parts(&windows(found, number, cycles[number]), cycles[number]);
        let (mut list, most) = (Vec::new(), most.min(port.entries));
        parts.iter().for_each(|part| join(&mut list, *part));
        let parts = if list.len() > most { shortened(&parts, most) } else { list };
        if parts.len() > most {
            return Err(format!(
                "{}: the list has {} entries, more than {most}",
                port.name,
                parts.len()
            ));
        }
        let entry = |part: &Part| {
            Entry::set(GateStates(part.gates), Duration::from_ps(part.end - part.begin))
        };
        let entries: Vec<Entry> = parts.iter().map(entry).collect();
        let list = GateControlList::of_entries(Instant::ZERO, &entries);
        lists.insert(port.place, list.map_err(|error| format!("{}: {error}", port.name))?);
    }
    Ok(lists)
}

/// The windows of a port in a cycle.
fn windows(found: &Found<'_>, port: usize, cycle: u64) -> Vec<Window> {
    let mut windows = Vec::new();
    for number in found.board.at(port) {
        let stream = &found.board.problem.streams[number];
        let Some(placed) = found.placed(number) else { continue };
        let own = stream.hops.iter().zip(&placed.starts).find(|(hop, _)| hop.port == port);
        let Some((hop, start)) = own else { continue };
        let arrival = hop.before.map_or(placed.release, |at| placed.starts[at]) + hop.after;
        let waits = *start > arrival;
        let [arrival, length] = found.board.queue(hop, arrival, *start, stream.period);
        let end = arrival + length;
        let [closed, _] = found.board.queue(hop, *start, *start, stream.period);
        let begin = if waits { start + stream.period } else { closed };
        let until = if waits { begin } else { arrival };
        let class = found.board.problem.ports[port].classes[usize::from(placed.priority)];
        let own = (begin, end, usize::from(class));
        for (begin, end, class) in [(closed, begin, CLOSED), (arrival, until, WAITS), own] {
            let length = (end - begin).min(cycle);
            for frame in 0..if length > 0 { cycle / stream.period } else { 0 } {
                let begin = (begin + frame * stream.period) % cycle;
                let end = begin + length;
                windows.push((begin, end.min(cycle), class));
                if end > cycle {
                    windows.push((0, end - cycle, class));
                }
            }
        }
    }
    windows
}

/// The parts of a cycle with the same open gates, in order.
fn parts(windows: &[Window], cycle: u64) -> Vec<Part> {
    let mut events: Vec<(u64, usize, bool)> = Vec::with_capacity(2 * windows.len());
    for (begin, end, class) in windows {
        events.extend([(*begin, *class, true), (*end, *class, false)]);
    }
    events.sort_unstable();
    let own = windows.iter().filter(|(.., class)| *class < CLOSED);
    let own = own.fold(0, |mask, (.., class)| mask | 1u8 << class);
    let (mut open, mut parts) = ([0u32; WAITS + 1], Vec::new());
    let mut begin = 0;
    for (at, class, opens) in events.into_iter().chain([(cycle, 0, false)]) {
        if at > begin {
            let classes = (0..CLOSED).filter(|class| open[*class] > 0);
            let gates = classes.fold(0, |mask, class| mask | 1u8 << class);
            let is_window = open[..=CLOSED].iter().any(|count| *count > 0);
            let gates = if is_window { gates } else { !own };
            parts.push(Part { begin, end: at, gates, is_window, waits: open[WAITS] > 0 });
            begin = at;
        }
        let count = &mut open[class];
        *count = if opens { *count + 1 } else { count.saturating_sub(1) };
    }
    parts
}

/// Adds a part, or extends the last one.
fn join(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.gates == part.gates => last.end = part.end,
        _ => parts.push(part),
    }
}

/// The list with all classes of streams in one window, without the shortest pauses between windows
/// that make it too long. Changes nothing while a frame waits.
fn shortened(parts: &[Part], most: usize) -> Vec<Part> {
    let own = parts.iter().filter(|part| part.is_window);
    let own = own.fold(0, |mask, part| mask | part.gates);
    let without = |shortest: u64| {
        let mut joined = Vec::new();
        for part in parts {
            let joins = part.is_window || part.end - part.begin < shortest;
            let gates = if joins && !part.waits { own } else { part.gates };
            join(&mut joined, Part { gates, ..*part });
        }
        joined
    };
    let pauses = parts.iter().filter(|part| !part.is_window && !part.waits);
    let mut lengths: Vec<u64> = pauses.map(|part| part.end - part.begin + 1).collect();
    lengths.push(0);
    lengths.sort_unstable();
    let enough = lengths.partition_point(|shortest| without(*shortest).len() > most);
    without(lengths.get(enough).copied().unwrap_or(u64::MAX))
}

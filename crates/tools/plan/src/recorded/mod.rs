//! Recorded traffic: the times and lengths of frames in a file, read anew for each run.

mod capture;
mod table;
#[cfg(test)]
mod tests;

use super::tables::{FRAME_LENGTHS, NOT_REPLAYED};
use keys::{KeyError, Section};
use sim::Config;
use sim::ethernet::recorded::{Frames, Recorded, Recording};
use sim::ethernet::traffic::Pattern;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use wire::Duration;

/// A frame as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    /// Where it is in the file, such as `packet 5`.
    place: String,
    /// Time in picoseconds since any time.
    at: u128,
    /// Bytes from header to FCS, without tag.
    length: u64,
}

type Packets = Box<dyn Iterator<Item = Result<Packet, String>>>;

/// A file of frames.
#[derive(Debug)]
struct RecordedFile {
    path: PathBuf,
    /// The first error after the check.
    failure: Arc<OnceLock<String>>,
}

impl Recorded for RecordedFile {
    fn open(&self) -> Frames {
        let failure = self.failure.clone();
        let note = move |frame: Result<_, String>| match frame {
            Ok(frame) => Some(frame),
            Err(why) => {
                failure.get_or_init(|| why);
                None
            }
        };
        Box::new(frames(&self.path).map_while(note))
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}

/// Returns the error of a recording that ended a stream of a simulation too early.
pub fn failure(config: &Config) -> Option<String> {
    let mut traffic = config.network.stations.iter().flat_map(|station| &station.traffic);
    traffic.find_map(|stream| match &stream.pattern {
        Pattern::Recorded(recording) => recording.frames.failure(),
        _ => None,
    })
}

/// A checked recording.
#[derive(Clone, Debug)]
pub struct Checked {
    recording: Recording,
    /// Bytes of the longest frame, header to FCS, without tag.
    longest: usize,
}

/// A cache of checked recordings, by file.
pub type Known = Arc<Mutex<BTreeMap<PathBuf, Checked>>>;

/// Reads `replay`. Returns the pattern and the bytes of the longest frame; `None` without the key.
pub fn read(section: &Section, known: &Known) -> Result<Option<(Pattern, usize)>, KeyError> {
    let Some(path) = section.path("replay") else {
        return match section.find("repeat") {
            Some(_) => section.fail("repeat", "'repeat' requires 'replay'"),
            None => Ok(None),
        };
    };
    if let Some(key) = NOT_REPLAYED.iter().find(|key| section.find(key).is_some()) {
        return section.fail(key, format!("'{key}' and 'replay' exclude each other"));
    }
    let mut known = known.lock().expect("nobody panics with it");
    if !known.contains_key(&path) {
        let checked = check(&path);
        let checked = checked.or_else(|why| section.fail("replay", format!("replay: {why}")))?;
        known.insert(path.clone(), checked);
    }
    let Checked { recording, longest } = known[&path].clone();
    let repeats = section.text("repeat") == Some("on");
    Ok(Some((Pattern::Recorded(Recording { repeats, ..recording }), longest)))
}

/// Reads a file once.
fn check(path: &Path) -> Result<Checked, String> {
    let (mut count, mut last, mut longest, mut bytes) = (0_u64, Duration::ZERO, 0, 0);
    for frame in frames(path) {
        let (at, length) = frame?;
        (count, last, bytes) = (count + 1, at, bytes + length as u64);
        longest = longest.max(length);
    }
    let interval = last.as_ps().checked_div(count.saturating_sub(1));
    let Some(interval) = interval.filter(|ps| *ps > 0) else {
        return Err(format!("{}: expected frames at two times or more", path.display()));
    };
    let file = RecordedFile { path: path.to_owned(), failure: Arc::default() };
    let recording = Recording {
        frames: Arc::new(file),
        interval: Duration::from_ps(interval),
        length: (bytes / count) as usize,
        repeats: false,
    };
    Ok(Checked { recording, longest })
}

/// The frames of a file, and last its first error, which names file and place.
fn frames(path: &Path) -> impl Iterator<Item = Result<(Duration, usize), String>> + use<> {
    let name = path.display().to_string();
    let (packets, error) = match packets(path) {
        Ok(packets) => (Some(packets), None),
        Err(why) => (None, Some(Err(why))),
    };
    let (mut first, mut before) = (None, 0);
    let mut timed = move |packet: Packet| {
        let Packet { place, at, length } = packet;
        if at < before {
            return Err(format!("{place}: earlier than the frame before"));
        }
        before = at;
        let since = at - *first.get_or_insert(at);
        let since = since.try_into().map_err(|_| format!("{place}: 213 days after the first"))?;
        // Senders pad short frames after the point of capture.
        let length = length.max(*FRAME_LENGTHS.start());
        if !FRAME_LENGTHS.contains(&length) {
            let most = FRAME_LENGTHS.end();
            return Err(format!("{place}: a frame of {length}B: expected {most}B at most"));
        }
        Ok((Duration::from_ps(since), length as usize))
    };
    let frames = packets.into_iter().flatten().map(move |packet| timed(packet?));
    frames.chain(error).map(move |frame| frame.map_err(|why| format!("{name}: {why}")))
}

fn packets(path: &Path) -> Result<Packets, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let mut magic = Vec::new();
    let read = file.by_ref().take(4).read_to_end(&mut magic).and_then(|_| file.rewind());
    read.map_err(|error| error.to_string())?;
    match capture::is_capture(&magic) {
        true => Ok(Box::new(capture::packets(file)?)),
        false => table::packets(file),
    }
}

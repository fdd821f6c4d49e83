//! The file `session` of a drive: what a device node remembers when its process ends and another one
//! goes on. `docs/drive.md` specifies the format.
//!
//! The file is mapped, so a killed process loses nothing that it has stored. It is not made durable:
//! after a loss of power, which the identity of the boot shows, it counts for nothing.

use crate::about;
use crate::record::boot_id;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::DerefMut;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name of the file of the first controller.
const NAME: &str = "session";
/// The first bytes of the file, with its version.
const MAGIC: &[u8; 16] = b"farlane session\x02";
/// Number of bytes of the magic in front of the version.
const UNVERSIONED: usize = 15;
/// Bytes in front of the states: magic and identity of the boot.
const HEAD: usize = 4096;
/// Size of each of the two states in bytes, header included. A state is largest while the function
/// accepts no packets: it then has a window of 1 MiB of posted requests, as many bytes of
/// completions, and headers.
const STATE: usize = 4 << 20;
/// Bytes of a state's header: number, length and CRC-32 of both and of the state.
const HEADER: usize = 16;
/// Size of the area for payloads of frames in bytes. A link keeps up to 4 MiB and one frame. Until
/// the next state is stored, the payloads of the former state stay too.
const PAYLOADS: usize = 16 << 20;

/// Where a payload is stored: offset and number of bytes.
pub type Place = (u64, u32);

/// The memory of a file.
type Memory = Box<dyn DerefMut<Target = [u8]> + Send>;

/// The state of a session, stored again and again.
pub struct Session {
    memory: Memory,
    /// Number of the last stored state.
    number: u64,
    /// Whether the last stored state is empty.
    is_empty: bool,
    /// The payloads that a state may name, by their numbers.
    kept: VecDeque<(u64, Place)>,
    /// Offset of the next payload.
    next: usize,
}

/// Name of the file of a controller.
fn name(controller: u16) -> String {
    match controller {
        1 => NAME.into(),
        _ => format!("{NAME}-{controller}"),
    }
}

impl Session {
    /// Opens the file of a controller in the locked folder of a drive, or creates it: `session` for
    /// the first, `session-N` for others. Also returns the last state; `None` if there is none, or
    /// another boot has stored it.
    ///
    /// # Errors
    /// A sentence with the path: a full disk, or a file of a later version.
    pub fn open(folder: &Path, controller: u16) -> io::Result<(Self, Option<Bytes>)> {
        let path = folder.join(name(controller));
        let open = || {
            let mut options = OpenOptions::new();
            // The name of the session is a secret.
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(&path)?;
            reserve(&file)?;
            Self::over(Box::new(linux::map(&file)?), &boot_id())
        };
        open().map_err(|error| about(path.display(), error))
    }

    /// Removes the files of controllers above `last`: the drive goes on without them.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn remove_above(folder: &Path, last: u16) -> io::Result<()> {
        let fail = |path: &Path, why| about(path.display(), why);
        for entry in fs::read_dir(folder).map_err(|why| fail(folder, why))? {
            let entry = entry.map_err(|why| fail(folder, why))?;
            let file = entry.file_name();
            let number = file.to_str().and_then(|file| file.strip_prefix(NAME)?.strip_prefix('-'));
            if number.and_then(|number| number.parse::<u16>().ok()).is_some_and(|own| own > last) {
                fs::remove_file(entry.path()).map_err(|why| fail(&entry.path(), why))?;
            }
        }
        Ok(())
    }

    fn over(mut memory: Memory, boot: &str) -> io::Result<(Self, Option<Bytes>)> {
        if memory[..UNVERSIONED] == MAGIC[..UNVERSIONED] {
            match memory[UNVERSIONED] {
                version if version > MAGIC[UNVERSIONED] => {
                    let why = format!("written by a later farlane (version {version})");
                    return Err(io::Error::other(why));
                }
                // Its states are read, but a farlane that writes such states does not go on.
                1 => memory[UNVERSIONED] = MAGIC[UNVERSIONED],
                _ => {}
            }
        }
        let head = [&MAGIC[..], boot.as_bytes()].concat();
        let last = match memory[..head.len()] == head[..] && memory[head.len()] == 0 {
            true => (0..2).filter_map(|at| state(&memory, at)).max_by_key(|(number, _)| *number),
            false => None,
        };
        if last.is_none() {
            memory[..HEAD + 2 * STATE].fill(0);
            memory[..head.len()].copy_from_slice(&head);
        }
        let (number, bytes) = last.unwrap_or_default();
        let is_empty = bytes.is_empty();
        let session = Self { memory, number, is_empty, kept: VecDeque::new(), next: 0 };
        Ok((session, Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    /// Stores a payload, unless it is stored. Numbers do not decrease, and not all are used.
    pub fn place(&mut self, number: u64, payload: &[u8]) -> Place {
        let of_it = self.kept.binary_search_by_key(&number, |(number, _)| *number);
        if let Ok(at) = of_it {
            return self.kept[at].1;
        }
        if self.next + payload.len() > PAYLOADS {
            self.next = 0;
        }
        let place = (self.next as u64, payload.len() as u32);
        let at = HEAD + 2 * STATE + self.next;
        self.memory[at..at + payload.len()].copy_from_slice(payload);
        self.next += payload.len();
        self.kept.push_back((number, place));
        place
    }

    /// Forgets the payloads with numbers below `number`.
    pub fn forget(&mut self, number: u64) {
        let count = self.kept.partition_point(|(kept, _)| *kept < number);
        self.kept.drain(..count);
    }

    /// A payload of the last state.
    pub fn payload(&self, (offset, length): Place) -> Option<Bytes> {
        let payloads = &self.memory[HEAD + 2 * STATE..];
        let bytes = payloads.get(usize::try_from(offset).ok()?..)?.get(..length as usize)?;
        Some(Bytes::copy_from_slice(bytes))
    }

    /// Replaces the state by what `write` writes into the file; it returns the number of bytes, or
    /// `None` if there are too many. A process that is killed meanwhile leaves the former state.
    ///
    /// # Errors
    /// If the state has more bytes than the file has room for.
    pub fn store(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> io::Result<()> {
        let number = self.number + 1;
        let at = HEAD + (number % 2) as usize * STATE;
        let (place, bytes) = self.memory[at..][..STATE].split_at_mut(HEADER);
        let length = write(bytes)
            .ok_or_else(|| io::Error::other(format!("the state has more than {STATE} bytes")))?;
        place.copy_from_slice(&header(number, &bytes[..length]));
        (self.number, self.is_empty) = (number, length == 0);
        Ok(())
    }

    /// Records that there is no session, unless this is already recorded.
    pub fn clear(&mut self) {
        if !self.is_empty {
            self.kept.clear();
            self.store(|_| Some(0)).expect("there is room for nothing");
        }
    }
}

fn header(number: u64, bytes: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&number.to_le_bytes());
    header[8..12].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..12]);
    crc.update(bytes);
    header[12..].copy_from_slice(&crc.finalize().to_le_bytes());
    header
}

/// Number and bytes of one of the two states, if it is whole.
fn state(memory: &[u8], at: usize) -> Option<(u64, Bytes)> {
    let state = &memory[HEAD + at * STATE..][..STATE];
    let number = u64::from_le_bytes(state[..8].try_into().ok()?);
    let length = u32::from_le_bytes(state[8..12].try_into().ok()?) as usize;
    let bytes = state[HEADER..].get(..length)?;
    (state[..HEADER] == header(number, bytes)).then(|| (number, Bytes::copy_from_slice(bytes)))
}

/// Gives the file its size, and all of its space: a store into a mapped hole of a full disk would end
/// the process.
fn reserve(file: &File) -> io::Result<()> {
    let size = (HEAD + 2 * STATE + PAYLOADS) as u64;
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(file, flags, 0, size) {
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(size),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(memory: Vec<u8>, boot: &str) -> (Session, Option<Bytes>) {
        Session::over(Box::new(memory), boot).unwrap()
    }

    fn written(to: &mut [u8], bytes: &[u8]) -> Option<usize> {
        to[..bytes.len()].copy_from_slice(bytes);
        Some(bytes.len())
    }

    fn fresh() -> Vec<u8> {
        vec![0; HEAD + 2 * STATE + PAYLOADS]
    }

    #[test]
    fn the_last_whole_state_counts() {
        let (mut session, none) = opened(fresh(), "boot");
        assert_eq!(none, None);
        let first = session.place(7, b"payload");
        session.store(|to| written(to, b"one")).unwrap();
        let one = session.memory.to_vec();
        assert_eq!(session.place(7, b"payload"), first);
        session.store(|to| written(to, b"two")).unwrap();
        let two = session.memory.to_vec();
        // A process that is killed at any byte of the second store.
        let changed: Vec<usize> = (0..one.len()).filter(|at| one[*at] != two[*at]).collect();
        let body = changed.iter().position(|at| at % STATE >= HEAD + HEADER).unwrap();
        let order = changed[body..].iter().chain(&changed[..body]);
        let mut memory = one;
        for at in order {
            let (session, state) = opened(memory.clone(), "boot");
            assert_eq!(state.unwrap(), "one", "before byte {at}");
            assert_eq!(session.payload(first).unwrap(), "payload");
            memory[*at] = two[*at];
        }
        let (mut session, state) = opened(memory, "boot");
        assert_eq!(state.unwrap(), "two");
        session.clear();
        let memory = session.memory.to_vec();
        assert_eq!(opened(memory.clone(), "boot").1, None, "cleared");
        assert_eq!(opened(two, "another boot").1, None);
    }

    #[test]
    fn payloads_of_two_states_stay() {
        let (mut session, _) = opened(fresh(), "boot");
        let payload = |number: u64| vec![number as u8; 32 << 10];
        let mut states = VecDeque::new();
        for number in 0..2_000 {
            session.forget(number - number.min(128));
            let place = session.place(number, &payload(number));
            states.push_back((number, place));
            if states.len() > 256 {
                states.pop_front();
            }
            let (oldest, place) = states[0];
            assert_eq!(session.payload(place).unwrap(), payload(oldest));
        }
    }

    #[test]
    fn the_version_before_is_read_once() {
        let (mut session, _) = opened(fresh(), "boot");
        session.store(|to| written(to, b"one")).unwrap();
        let mut memory = session.memory.to_vec();
        memory[UNVERSIONED] = 1;
        let (session, state) = opened(memory, "boot");
        assert_eq!((state.unwrap(), session.memory[UNVERSIONED]), (b"one"[..].into(), 2));
    }

    #[test]
    fn a_later_version_is_refused() {
        let mut memory = fresh();
        memory[..16].copy_from_slice(b"farlane session\x03");
        let error = Session::over(Box::new(memory), "boot").err().unwrap();
        assert_eq!(error.to_string(), "written by a later farlane (version 3)");
    }
}

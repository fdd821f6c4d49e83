//! Checks that TLPs cross a link once and in PCIe order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Bdf;
use wire::tlp::{Packet, Tlp};

/// A posted TLP: address, first bytes and number of bytes.
type Posted = (u64, u64, usize);

/// A TLP that may not pass posted requests: its kind and tag.
type Behind = (bool, u16);

/// TLPs of one source on their way.
#[derive(Debug, Default)]
struct Flow {
    posted: VecDeque<Posted>,
    /// Number of posted requests that have left the source, and that have arrived or were lost.
    sent: u64,
    arrived: u64,
    /// For each TLP that may not pass them: number of posted requests that it must follow.
    behind: BTreeMap<Behind, u64>,
}

/// TLPs between drives and hosts.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Upwards, by host and function.
    up: BTreeMap<(u16, Bdf), Flow>,
    /// Downwards, by host and page of the address.
    down: BTreeMap<(u16, u64), Flow>,
    /// Outstanding reads by host and function.
    reads: BTreeMap<(u16, Bdf), BTreeSet<u16>>,
    /// Hosts whose posted requests may be lost now, because a link went down or was reset.
    pub lossy: BTreeSet<u16>,
}

fn posted(tlp: &Tlp) -> Option<(Bdf, Posted)> {
    let Packet::MemoryWrite(request) = tlp.packet else { return None };
    let mut first = [0; 8];
    let length = tlp.data.len().min(8);
    first[..length].copy_from_slice(&tlp.data[..length]);
    Some((request.requester, (request.address, u64::from_le_bytes(first), tlp.data.len())))
}

/// The source and identity of a TLP that may not pass posted requests.
fn behind(tlp: &Tlp) -> Option<(Bdf, Behind)> {
    match tlp.packet {
        Packet::MemoryRead(request) => Some((request.requester, (true, request.tag.get()))),
        Packet::Completion(done) => Some((done.completer, (false, done.tag.get()))),
        _ => None,
    }
}

impl Flow {
    fn send(&mut self, posted: Posted) {
        self.posted.push_back(posted);
        self.sent += 1;
    }

    fn arrive(&mut self, posted: &Posted, is_lossy: bool) -> Result<(), String> {
        let at = self.posted.iter().position(|one| one == posted);
        let Some(at) = at.filter(|at| *at == 0 || is_lossy) else {
            let what = if at.is_some() { "passed or followed a lost one" } else { "arrived again" };
            return Err(format!("a memory write to {:#x} {what}", posted.0));
        };
        self.posted.drain(..=at);
        self.arrived += at as u64 + 1;
        Ok(())
    }
}

impl Order {
    /// A TLP of a drive enters its link (`near`), or leaves the root port towards the host.
    pub fn up(&mut self, host: u16, near: bool, tlp: &Tlp) -> Result<(), String> {
        let is_lossy = self.lossy.contains(&host);
        if let Some((source, posted)) = posted(tlp) {
            let flow = self.up.entry((host, source)).or_default();
            match near {
                true => flow.send(posted),
                false => flow.arrive(&posted, is_lossy)?,
            }
        }
        let Some((source, behind)) = behind(tlp) else { return Ok(()) };
        let flow = self.up.entry((host, source)).or_default();
        if near {
            flow.behind.insert(behind, flow.sent);
            let (is_read, tag) = behind;
            let is_new = !is_read || self.reads.entry((host, source)).or_default().insert(tag);
            return match is_new || is_lossy {
                true => Ok(()),
                false => Err(format!("a drive uses tag {tag} of an outstanding read again")),
            };
        }
        match flow.behind.get(&behind).is_none_or(|must| flow.arrived >= *must) || is_lossy {
            true => Ok(()),
            false => Err(format!("tag {} passed a memory write", behind.1)),
        }
    }

    /// A TLP of the host leaves the root port (`near`), or reaches a drive.
    pub fn down(&mut self, host: u16, near: bool, tlp: &Tlp) -> Result<(), String> {
        if let (false, Packet::Completion(done)) = (near, &tlp.packet)
            && done.ends(tlp.data.len())
            && let Some(reads) = self.reads.get_mut(&(host, done.requester))
        {
            reads.remove(&done.tag.get());
        }
        let Some((_, posted)) = posted(tlp) else { return Ok(()) };
        let flow = self.down.entry((host, posted.0 >> 12)).or_default();
        match near {
            true => flow.send(posted),
            false => flow.arrive(&posted, self.lossy.contains(&host))?,
        }
        Ok(())
    }
}

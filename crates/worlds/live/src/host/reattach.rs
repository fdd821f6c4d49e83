//! Reattaches a function that returns, or that a client resets: identifies it, and restores the
//! client's settings.

use pcie::enumerate::{self, Comparison, ContentsChange, Identity, Node, Settings};
use pcie::software::Bus;
use std::fmt;

/// A change of an endpoint, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointChange {
    /// It is attached again, with the data that it had.
    Reattached,
    /// It is attached again with other data.
    ReattachedWithNewContents(ContentsChange),
    /// It has other data, and stays detached until its client resets it.
    NewContents(ContentsChange),
    /// Another device is there, or none: the endpoint stays detached.
    Changed(String),
}

impl fmt::Display for EndpointChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reattached => f.write_str("attached again"),
            Self::ReattachedWithNewContents(loss) => {
                write!(f, "attached again with new contents: {loss}")
            }
            Self::NewContents(loss) => write!(
                f,
                "new contents: {loss}; it stays detached until its guest resets it: restart the \
                 guest, or in it write 1 to reset and then remove in \
                 /sys/bus/pci/devices/ADDRESS, and to /sys/bus/pci/rescan"
            ),
            Self::Changed(why) => write!(
                f,
                "has changed and stays detached: {why}; bring the one before back, or start the \
                 host again to use this one"
            ),
        }
    }
}

/// Whether an endpoint's function can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The client uses it.
    Attached,
    /// Its link is down.
    LinkDown,
    /// This function is there, but the client may use it only after a reset that it requests.
    AwaitsReset(Box<Node>),
    /// Another device is there, or none, with the cause that was reported.
    Detached(String),
}

/// The client's settings before a reset that it did not request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientSettings {
    /// It uses MSI-X.
    pub msix: bool,
    /// The bytes of the Command register that it wrote.
    pub command: [Option<u8>; 2],
}

/// Restores the client's settings in a function that was enumerated again. Bus mastering comes
/// last: the function sends nothing before all else is set.
pub async fn restore(bus: &Bus, node: &Node, owner: u32, client_settings: ClientSettings) {
    let contents = node.device().and_then(|device| device.contents);
    enumerate::write_owner(bus, node.bdf, contents, owner).await;
    if client_settings.msix {
        set_msix(bus, node, true).await;
    }
    // The lower byte holds Bus Master Enable (PCIe Base 4.0, section 7.5.1.1.3).
    for (index, byte) in client_settings.command.into_iter().enumerate().rev() {
        if let Some(byte) = byte {
            let at = pcie::config::register::COMMAND + index as u16;
            bus.config_write(node.bdf, at, 1, byte.into()).await;
        }
    }
}

/// A device's identity, and how it relates to the one before.
pub type Identified = (Identity, Comparison);

/// Identifies the device in the place of `node`, where `before` was attached last. If it is the
/// same device with the shape of `node`, resets the function, whether or not its contents are
/// the same. `None` if no device answers. A device behind a switch node can be replaced while
/// no link of this host goes down.
pub async fn identify_and_reset(
    bus: &Bus,
    before: Identity,
    node: &Node,
    settings: &Settings,
    owner: u32,
) -> Option<Identified> {
    let identity = enumerate::identify(bus, node.bdf).await?;
    let mut returned = before.compare(&identity, owner);
    if !matches!(returned, Comparison::Another(_)) {
        let shape = enumerate::layout(bus, node.bdf).await;
        returned = returned.with_layout(&node.layout(), &shape);
    }
    if !matches!(returned, Comparison::Another(_)) {
        enumerate::reset_function(bus, node, settings).await;
        enumerate::write_owner(bus, node.bdf, identity.contents, owner).await;
    }
    Some((identity, returned))
}

/// Each vector's data is its own number; the VMM masks on its side.
pub async fn set_msix(bus: &Bus, node: &Node, enable: bool) {
    let vectors = node.device().and_then(|device| device.msix).map_or(0, |msix| msix.vectors);
    if enable {
        for vector in 0..vectors {
            enumerate::write_msix_entry(bus, node, vector, u32::from(vector), false);
        }
    }
    enumerate::set_msix(bus, node, enable).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::node as fixture;
    use pcie::enumerate::{Bar, Contents, Device, Kind, Msix};
    use pcie::software::{Request, Task};
    use wire::{Bdf, Instant};

    const SERIAL: u64 = 5;

    fn node() -> Node {
        let bar =
            Bar { index: 0, size: 0x4000, is_64bit: true, prefetchable: false, address: 0x8000 };
        let (table, pending) = ((0, 0x2000), (0, 0x3000));
        let msix = Msix { capability: 0x48, vectors: 2, table, pending };
        let contents = Contents { capability: 0x10c, incarnation: 7, owner: 0 };
        let (serial, contents) = (Some(SERIAL), Some(contents));
        fixture(
            Bdf::new(3, 0, 0),
            Kind::Endpoint(Device { bars: vec![bar], msix: Some(msix), serial, contents }),
        )
    }

    /// Runs `software`; returns its result and its writes: (offset in configuration space or
    /// address, value). `answers` are the double words of configuration space.
    fn writes<T>(
        software: impl AsyncFnOnce(Bus) -> T + 'static,
        answers: impl Fn(u16) -> u32,
    ) -> (T, Vec<(u64, u64)>) {
        let bus = Bus::new();
        let mut task = Task::new(&bus, {
            let bus = bus.clone();
            async move { software(bus).await }
        });
        let mut written = Vec::new();
        loop {
            if let Some(value) = task.poll(Instant::ZERO) {
                return (value, written);
            }
            while let Some((id, request)) = bus.next_request() {
                match request {
                    Request::ConfigRead { offset, .. } => bus.answer(id, answers(offset).into()),
                    Request::ConfigWrite { offset, value, .. } => {
                        written.push((offset.into(), value.into()));
                        bus.answer(id, 0);
                    }
                    Request::MemoryWrite { address, value, .. } => written.push((address, value)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn bus_mastering_is_given_back_last() {
        let client_settings = ClientSettings { msix: true, command: [Some(0x06), Some(0x04)] };
        let (_, written) =
            writes(async move |bus| restore(&bus, &node(), 9, client_settings).await, |_| 0);
        assert_eq!(written[0], (0x11c, 9), "the host's mark");
        let table = written.iter().filter(|(at, _)| (0xa000..0xa020).contains(at));
        assert_eq!(table.count(), 8, "two entries of the MSI-X table");
        assert_eq!(written[9..], [(0x4a, 0x8000), (0x05, 0x04), (0x04, 0x06)]);
        let (_, written) = writes(
            async move |bus| restore(&bus, &node(), 9, ClientSettings::default()).await,
            |_| 0,
        );
        assert_eq!(written, [(0x11c, 9)], "a client that set nothing");
    }

    /// A device that answers with that serial number and incarnation.
    fn device(serial: u64, incarnation: u32) -> impl Fn(u16) -> u32 {
        move |offset| match offset {
            0x00 => 0x0001_fa12,
            0x100 => 0x10c1_0003,
            0x104 => serial as u32,
            0x10c => 0x0001_000b,
            0x110 => 0x0141_0001,
            0x114 => incarnation,
            // A BAR of 16 KiB and two vectors.
            0x10 => 0xffff_c004,
            0x14 => u32::MAX,
            0x34 => 0x48,
            0x48 => 0x11,
            0x4a => 1,
            0x4c => 0x2000,
            0x50 => 0x3000,
            _ => 0,
        }
    }

    #[test]
    fn who_is_there_is_looked_at_before_a_reset() {
        let look = |answers: &dyn Fn(u16) -> u32| {
            let before = node().identity().unwrap();
            let software = async move |bus: Bus| {
                identify_and_reset(&bus, before, &node(), &Settings::default(), 9).await
            };
            let (identified, written) = writes(software, answers);
            (identified.map(|identified| identified.1), written)
        };
        let flr = (0x68, 1 << 15);
        for (incarnation, expected) in
            [(7, Comparison::Same), (8, Comparison::NewContents(ContentsChange::Incarnation))]
        {
            let (returned, written) = look(&device(SERIAL, incarnation));
            assert_eq!(returned, Some(expected));
            let begin = written.iter().position(|write| *write == flr).expect("a reset");
            let written = &written[begin..];
            assert_eq!(written.last(), Some(&(0x11c, 9)));
            assert!(written.contains(&(0x10, 0x8000)), "its BAR again: {written:?}");
            let command = written.iter().filter(|(at, _)| *at == 4);
            assert!(command.clone().all(|(_, value)| value & 4 == 0), "no bus mastering");
            assert_eq!(command.count(), 1);
        }
        let (returned, written) = look(&device(SERIAL + 1, 7));
        assert!(matches!(returned, Some(Comparison::Another(_))) && written.is_empty());
        let strange = [(0x10, 0xffff_8004), (0x4a, 3), (0x50, 0x3800)];
        for (at, value) in strange {
            let same = device(SERIAL, 7);
            let (returned, written) =
                look(&|offset| if offset == at { value } else { same(offset) });
            let another = Comparison::Another("other BARs or interrupts".to_owned());
            assert_eq!(returned, Some(another), "{at:#x}");
            assert!(!written.iter().any(|write| *write == flr || write.0 == 0x11c), "{written:?}");
            assert!(!written.contains(&(0x10, 0x8000)), "the BAR of the one before");
        }
        let (returned, written) = look(&|_| u32::MAX);
        assert!(returned.is_none() && written.is_empty(), "nobody");
    }
}

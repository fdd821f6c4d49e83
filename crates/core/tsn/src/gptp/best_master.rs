//! The selection of the grandmaster: the identities in announcements, and their order (IEEE
//! 802.1AS-2020, 10.3.2 to 10.3.5).

/// A clock's identity (8.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockIdentity(pub u64);

/// A port's identity (8.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIdentity {
    /// The clock.
    pub clock: ClockIdentity,
    /// Port number, from 1.
    pub port: u16,
}

impl PortIdentity {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.clock.0.to_be_bytes());
        out.extend(self.port.to_be_bytes());
    }

    pub(super) fn decode(bytes: [u8; 10]) -> Self {
        let [clock @ .., a, b] = bytes;
        Self { clock: ClockIdentity(u64::from_be_bytes(clock)), port: u16::from_be_bytes([a, b]) }
    }
}

/// The quality of a clock as grandmaster; smaller is better (10.3.2). The fields are in the order
/// of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemIdentity {
    /// priority1; with 255 the system cannot be grandmaster (8.6.2.1).
    pub priority1: u8,
    /// clockClass.
    pub class: u8,
    /// clockAccuracy.
    pub accuracy: u8,
    /// offsetScaledLogVariance.
    pub variance: u16,
    /// priority2.
    pub priority2: u8,
    /// clockIdentity.
    pub clock: ClockIdentity,
}

impl SystemIdentity {
    /// A clock with the default quality (8.6.2: class 248, accuracy 0xFE, variance 0x436A,
    /// priority2 248).
    pub const fn new(priority1: u8, clock: ClockIdentity) -> Self {
        Self { priority1, class: 248, accuracy: 0xfe, variance: 0x436a, priority2: 248, clock }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.priority1, self.class, self.accuracy]);
        out.extend(self.variance.to_be_bytes());
        out.push(self.priority2);
        out.extend(self.clock.0.to_be_bytes());
    }

    pub(super) fn decode(bytes: &[u8; 14]) -> Self {
        let [priority1, class, accuracy, a, b, priority2, clock @ ..] = *bytes;
        let variance = u16::from_be_bytes([a, b]);
        let clock = ClockIdentity(u64::from_be_bytes(clock));
        Self { priority1, class, accuracy, variance, priority2, clock }
    }
}

/// An announcement received by a port; smaller is better (10.3.4, 10.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriorityVector {
    /// The grandmaster.
    pub root: SystemIdentity,
    /// Number of links to the grandmaster.
    pub steps: u16,
    /// The sender.
    pub source: PortIdentity,
}

/// The role of a port (10.3.12, with the names of IEEE 1588).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The neighbour does not answer, or the link delay is above the threshold (asCapable is
    /// false).
    #[default]
    Disabled,
    /// The port sends time.
    Master,
    /// The port receives time.
    Slave,
    /// The port neither sends nor receives time, because another path to the grandmaster is better
    /// or because there is no grandmaster.
    Passive,
}

/// The grandmaster and the roles of all ports. `heard` has the announcement that each port
/// received, if any. `able` has asCapable of each port. The grandmaster is the best of `own` and
/// the announcements of capable ports; `None` if there is no such announcement and `own` cannot be
/// grandmaster.
pub fn roles(
    own: SystemIdentity,
    heard: &[Option<PriorityVector>],
    able: &[bool],
) -> (Option<PriorityVector>, Vec<Role>) {
    let itself =
        PriorityVector { root: own, steps: 0, source: PortIdentity { clock: own.clock, port: 0 } };
    let heard_by = |port: usize| heard[port].filter(|_| able[port]);
    // One step more than in the announcement (gmPathPriorityVector).
    let path = |port: usize| {
        let vector = heard_by(port)?;
        Some((PriorityVector { steps: vector.steps + 1, ..vector }, port))
    };
    let best = (0..heard.len()).filter_map(path).min();
    let capable = own.priority1 < u8::MAX;
    let (master, slave) = match best {
        Some((vector, port)) if !capable || vector < itself => (Some(vector), Some(port)),
        _ => (capable.then_some(itself), None),
    };
    let role = |port: usize| match master {
        _ if !able[port] => Role::Disabled,
        Some(_) if slave == Some(port) => Role::Slave,
        Some(PriorityVector { root, steps, .. }) => {
            let source = PortIdentity { clock: own.clock, port: port as u16 + 1 };
            let ours = PriorityVector { root, steps, source };
            match heard_by(port).is_some_and(|theirs| theirs < ours) {
                true => Role::Passive,
                false => Role::Master,
            }
        }
        None => Role::Passive,
    };
    (master, (0..heard.len()).map(role).collect())
}

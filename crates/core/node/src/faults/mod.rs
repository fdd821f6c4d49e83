//! Faults at planned times: their text form, and which fault acts on which request, memory write
//! or node.
//!
//! Plans and the option `--fault` of live nodes have the same text form ([`Fault`]). The owner of a
//! node gives the faults of the drive to [`DriveNode::set_faults`](crate::DriveNode::set_faults)
//! and asks [`Faults::condition`] for the faults of the node itself.

use nvme::block::Error;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use wire::{Duration, Instant};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Accesses to the media begin this much later.
    Late(Duration),
    /// Accesses to the media fail.
    Error(Error),
    /// The memory write of a completion entry of an I/O queue is not sent.
    LostCompletion,
    /// A memory write of data is poisoned (EP set; PCIe Base 4.0, section 2.7.2).
    Poison,
    /// Connections of the link are closed and refused.
    LinkDown,
    /// The node does nothing.
    Stop,
}

impl FaultKind {
    /// Whether the drive has the fault, not the node.
    pub const fn is_of_drive(self) -> bool {
        !matches!(self, Self::LinkDown | Self::Stop)
    }

    const fn is_of_media(self) -> bool {
        matches!(self, Self::Late(_) | Self::Error(_))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Late(_) => "late",
            Self::Error(_) => "error",
            Self::LostCompletion => "lost-completion",
            Self::Poison => "poison",
            Self::LinkDown => "link-down",
            Self::Stop => "stop",
        }
    }
}

/// A fault, and when it acts. The text form is `KIND[,at=TIME][,for=TIME][,nsid=N]
/// [,lba=FIRST+COUNT][,count=N]`, such as `late=5ms,at=2s,for=100ms,lba=100+8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// The begin, from the start of the live node or of the simulation.
    pub at: Duration,
    /// The longest time for which the fault acts; `None`: without end.
    pub length: Option<Duration>,
    /// The only namespace whose media accesses the fault affects.
    pub nsid: Option<u32>,
    /// First block and number of blocks: the fault affects only media accesses that overlap them.
    pub lba: Option<(u64, u64)>,
    /// Number of media accesses or memory writes that the fault affects. `None`: one for lost
    /// completions and poisoned writes, all others without limit.
    pub count: Option<u64>,
}

/// The statuses of [`FaultKind::Error`].
const STATUSES: [(&str, Error); 5] = [
    ("media", Error::Media),
    ("read-only", Error::ReadOnly),
    ("no-space", Error::NoSpace),
    ("not-ready", Error::NotReady),
    ("internal", Error::Internal),
];

/// The longest time in a fault.
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// A text that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidFault {
    /// A word that is not in [`Fault::WORDS`].
    Word(String),
    /// An error that is not in [`Fault::STATUSES`].
    Status(String),
    /// Another mistake, in one sentence.
    Other(String),
}

impl fmt::Display for InvalidFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_of = |words: &[&str]| words.join(", ");
        match self {
            Self::Word(word) => write!(f, "unknown word '{word}': {}", one_of(&Fault::WORDS)),
            Self::Status(word) => write!(f, "unknown error '{word}': {}", one_of(&Fault::STATUSES)),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for InvalidFault {}

impl Fault {
    /// The words of the text form, kinds first.
    pub const WORDS: [&str; 11] = [
        "late",
        "error",
        "lost-completion",
        "poison",
        "link-down",
        "stop",
        "at",
        "for",
        "nsid",
        "lba",
        "count",
    ];
    /// The values of `error`.
    pub const STATUSES: [&str; 5] =
        [STATUSES[0].0, STATUSES[1].0, STATUSES[2].0, STATUSES[3].0, STATUSES[4].0];

    /// A fault that acts from the start, without a limit of time.
    pub const fn new(kind: FaultKind) -> Self {
        Self { kind, at: Duration::ZERO, length: None, nsid: None, lba: None, count: None }
    }

    /// The fault from `begin` to `end`; `None`: without end.
    #[must_use]
    pub fn within(self, begin: Instant, end: Option<Instant>) -> Self {
        Self { at: begin - Instant::ZERO, length: end.map(|end| end - begin), ..self }
    }

    fn begin(&self) -> Instant {
        Instant::ZERO + self.at
    }

    fn end(&self) -> Option<Instant> {
        Some(self.begin() + self.length?)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.begin() <= now && self.end().is_none_or(|end| now < end)
    }

    /// Whether the fault affects an access to these blocks of a namespace.
    fn affects(&self, nsid: u32, first: u64, blocks: u64) -> bool {
        let overlaps = |(start, count): (u64, u64)| {
            first < start.saturating_add(count) && start < first.saturating_add(blocks)
        };
        self.nsid.is_none_or(|only| only == nsid) && self.lba.is_none_or(overlaps)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.kind {
            FaultKind::Late(time) => write!(f, "={}", time.exact())?,
            FaultKind::Error(error) => {
                let named = STATUSES.iter().find(|(_, status)| *status == error);
                write!(f, "={}", named.expect("every error has a name").0)?;
            }
            _ => {}
        }
        if self.at != Duration::ZERO {
            write!(f, ",at={}", self.at.exact())?;
        }
        self.length.map_or(Ok(()), |length| write!(f, ",for={}", length.exact()))?;
        self.nsid.map_or(Ok(()), |nsid| write!(f, ",nsid={nsid}"))?;
        self.lba.map_or(Ok(()), |(first, count)| write!(f, ",lba={first}+{count}"))?;
        self.count.map_or(Ok(()), |count| write!(f, ",count={count}"))
    }
}

impl FromStr for Fault {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let mut fault = Self::new(FaultKind::Stop);
        let mut seen: Vec<&str> = Vec::new();
        let mut kinds = Vec::new();
        for part in text.split(',') {
            let (word, value) = part.split_once('=').unwrap_or((part, ""));
            if !Self::WORDS.contains(&word) {
                return Err(InvalidFault::Word(word.to_owned()));
            }
            if seen.contains(&word) {
                return Err(other(format!("'{word}' is given twice")));
            }
            seen.push(word);
            match word {
                "late" => kinds.push(FaultKind::Late(span(word, value)?)),
                "error" => kinds.push(FaultKind::Error(status(value)?)),
                "at" => fault.at = time(word, value, Duration::ZERO)?,
                "for" => fault.length = Some(span(word, value)?),
                "nsid" => fault.nsid = Some(number(word, value)?),
                "count" => fault.count = Some(number(word, value)?),
                "lba" => fault.lba = Some(blocks(value)?),
                _ if part.contains('=') => {
                    return Err(other(format!("'{word}' takes no value; found '{value}'")));
                }
                "lost-completion" => kinds.push(FaultKind::LostCompletion),
                "poison" => kinds.push(FaultKind::Poison),
                "link-down" => kinds.push(FaultKind::LinkDown),
                _ => kinds.push(FaultKind::Stop),
            }
        }
        let [kind] = kinds[..] else {
            let kinds = Self::WORDS[..6].join(", ");
            return Err(other(format!("expected exactly one of {kinds}")));
        };
        let only_media = seen.iter().find(|word| ["nsid", "lba"].contains(word));
        if let Some(word) = only_media.filter(|_| !kind.is_of_media()) {
            return Err(other(format!("'{word}' applies only to late and error")));
        }
        if fault.count.is_some() && !kind.is_of_drive() {
            return Err(other(format!("'count' does not apply to {}", kind.name())));
        }
        Ok(Self { kind, ..fault })
    }
}

fn other(message: String) -> InvalidFault {
    InvalidFault::Other(message)
}

fn span(word: &str, value: &str) -> Result<Duration, InvalidFault> {
    time(word, value, Duration::from_ps(1))
}

fn time(word: &str, value: &str, least: Duration) -> Result<Duration, InvalidFault> {
    let time = value.parse().ok().filter(|time| (least..=LONGEST).contains(time));
    let expected = || format!("{word}={value}: expected a time such as 5ms, up to 1000000s");
    time.ok_or_else(|| other(expected()))
}

fn status(value: &str) -> Result<Error, InvalidFault> {
    let found = STATUSES.iter().find(|(name, _)| *name == value);
    found.map(|(_, error)| *error).ok_or_else(|| InvalidFault::Status(value.to_owned()))
}

fn number<T: FromStr + Default + PartialEq>(word: &str, value: &str) -> Result<T, InvalidFault> {
    let number = value.parse().ok().filter(|number| *number != T::default());
    number.ok_or_else(|| other(format!("{word}={value}: expected a whole number above 0")))
}

fn blocks(value: &str) -> Result<(u64, u64), InvalidFault> {
    let ends = value.split_once('+');
    let parsed = ends.and_then(|(first, count)| {
        let (first, count) = (first.parse().ok()?, count.parse().ok()?);
        (count > 0).then_some((first, count))
    });
    parsed.ok_or_else(|| other(format!("lba={value}: expected FIRST+COUNT, such as lba=100+8")))
}

/// A fault, and what is left of it.
#[derive(Clone, Debug)]
struct Planned {
    fault: Fault,
    /// How many times the fault still acts; `None`: without limit.
    left: Option<u64>,
    begun: bool,
}

/// What the faults of a node leave of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// The node works.
    #[default]
    Working,
    /// The node closes and refuses the connections of its link.
    LinkDown,
    /// The node does nothing.
    Stopped,
}

/// The faults of a drive or a node, and what is left of each.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    planned: Vec<Planned>,
    begun: VecDeque<(Instant, Fault)>,
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        let planned = faults.into_iter().map(|fault| {
            let once = matches!(fault.kind, FaultKind::LostCompletion | FaultKind::Poison);
            let left = fault.count.or(once.then_some(1));
            Planned { fault, left, begun: false }
        });
        Self { planned: planned.collect(), begun: VecDeque::new() }
    }
}

impl Faults {
    /// Whether no fault is planned.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// The next fault that began to act, and when. Each is returned once.
    pub fn poll_begun(&mut self) -> Option<(Instant, Fault)> {
        self.begun.pop_front()
    }

    /// The kind of the first fault that acts now and that `selects` selects; uses the fault once.
    fn act(&mut self, now: Instant, selects: impl Fn(&Fault) -> bool) -> Option<FaultKind> {
        let acts = |one: &&mut Planned| {
            one.left != Some(0) && one.fault.is_due(now) && selects(&one.fault)
        };
        let planned = self.planned.iter_mut().find(acts)?;
        planned.left = planned.left.map(|left| left - 1);
        if !std::mem::replace(&mut planned.begun, true) {
            self.begun.push_back((now, planned.fault.clone()));
        }
        Some(planned.fault.kind)
    }

    /// The delay and the error of an access to blocks of a namespace: the first one and their
    /// number.
    pub fn of_access(
        &mut self,
        now: Instant,
        nsid: u32,
        (first, blocks): (u64, u64),
    ) -> (Option<Duration>, Option<Error>) {
        let (mut late, mut error) = (None, None);
        let affects = |fault: &Fault| fault.affects(nsid, first, blocks);
        let is_late = |fault: &Fault| matches!(fault.kind, FaultKind::Late(_));
        if let Some(FaultKind::Late(time)) = self.act(now, |one| is_late(one) && affects(one)) {
            late = Some(time);
        }
        let fails = |fault: &Fault| matches!(fault.kind, FaultKind::Error(_));
        if let Some(FaultKind::Error(why)) = self.act(now, |one| fails(one) && affects(one)) {
            error = Some(why);
        }
        (late, error)
    }

    /// Whether a fault may act on memory writes now.
    pub fn act_on_writes(&self, now: Instant) -> bool {
        self.planned.iter().any(|Planned { fault, left, .. }| {
            let of_writes = matches!(fault.kind, FaultKind::LostCompletion | FaultKind::Poison);
            of_writes && *left != Some(0) && fault.is_due(now)
        })
    }

    /// Whether to drop the memory write of a completion entry.
    pub fn lose_completion(&mut self, now: Instant) -> bool {
        self.act(now, |fault| fault.kind == FaultKind::LostCompletion).is_some()
    }

    /// Whether to poison a memory write of data.
    pub fn poison(&mut self, now: Instant) -> bool {
        self.act(now, |fault| fault.kind == FaultKind::Poison).is_some()
    }

    /// The condition of the node, and when it may change.
    pub fn condition(&mut self, now: Instant) -> (Condition, Option<Instant>) {
        let down = self.act(now, |fault| fault.kind == FaultKind::LinkDown);
        let stopped = self.act(now, |fault| fault.kind == FaultKind::Stop);
        let condition = match (stopped, down) {
            (Some(_), _) => Condition::Stopped,
            (None, Some(_)) => Condition::LinkDown,
            (None, None) => Condition::Working,
        };
        let of_node = self.planned.iter().filter(|one| !one.fault.kind.is_of_drive());
        let changes = of_node.flat_map(|one| [Some(one.fault.begin()), one.fault.end()]);
        (condition, changes.flatten().filter(|at| *at > now).min())
    }
}

#[cfg(test)]
mod tests;

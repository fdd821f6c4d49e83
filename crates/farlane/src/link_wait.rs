//! Waits for the links of a switch to come up.

use crate::output::note;
use crate::signals::Stop;
use live::DeviceNode;
use live::attached::Switch;
use live::links::LinkEvent;
use report::Failure;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant};

/// How long nodes wait for the peers of the command line.
pub const TIMEOUT: Duration = Duration::from_ms(10_000);

/// Checks the links of a switch until all are up.
pub struct LinkWait {
    until: Instant,
    /// Why attempts failed last, by link.
    last: BTreeMap<usize, String>,
    /// Links that turned out not to come up soon, if the others are enough.
    absent: Option<BTreeSet<usize>>,
}

impl LinkWait {
    /// Waits for `timeout` from `now` on.
    pub fn new(now: Instant, timeout: Duration) -> Self {
        Self { until: now + timeout, last: BTreeMap::new(), absent: None }
    }

    /// The same, content with fewer: nodes that turn this one away are not
    /// waited for, nor are others after the patience is over.
    #[must_use]
    pub fn allow_missing(self) -> Self {
        Self { absent: Some(BTreeSet::new()), ..self }
    }

    /// Whether every link is up. Fails when it is clear that one will not come up, or the patience
    /// is over: one line that names each far side that is missing, and the cause.
    pub fn look(&mut self, now: Instant, switch: &mut Switch) -> Result<bool, Failure> {
        while let Some(event) = switch.links_mut().event() {
            match event {
                LinkEvent::Failed { link, why, permanent: true, .. } => match &mut self.absent {
                    Some(absent) => {
                        if absent.insert(link) {
                            note(format_args!("no link yet to {why}"));
                        }
                    }
                    None => return Err(Failure(format!("no link to {why}"))),
                },
                LinkEvent::Failed { link, why, .. } => {
                    self.last.insert(link, why);
                }
                LinkEvent::Down { link, cause, .. } => {
                    let peer = switch.links_mut().peer(link);
                    self.last.insert(link, format!("{peer}: {cause}"));
                }
                LinkEvent::Up(..) | LinkEvent::Echo(..) => {}
            }
        }
        let upstream = switch.upstream();
        let absent = |link| self.absent.as_ref().is_some_and(|absent| absent.contains(&link));
        if (0..upstream.links()).all(|link| upstream.tunnel(link).is_up() || absent(link)) {
            return Ok(true);
        }
        if now >= self.until && self.absent.is_some() {
            return Ok(true);
        }
        if now >= self.until {
            let down = (0..upstream.links()).filter(|link| !upstream.tunnel(*link).is_up());
            let down: Vec<usize> = down.collect();
            let why = down.into_iter().map(|link| self.why(link, switch)).collect::<Vec<_>>();
            return Err(Failure(format!("no link to {}", why.join(", nor to "))));
        }
        Ok(false)
    }

    /// The far side of a link that is not up, and why it is not.
    fn why(&self, link: usize, switch: &mut Switch) -> String {
        let silent = || format!("{}: no answer", switch.links_mut().peer(link));
        self.last.get(&link).cloned().unwrap_or_else(silent)
    }
}

/// Waits until every link of a switch node is up.
/// Fails as [`LinkWait::look`], and when it is time to stop.
pub fn wait_for_links(node: &mut DeviceNode<Switch>, stop: &Stop) -> Result<(), Failure> {
    let mut links = LinkWait::new(node.clock().now(), TIMEOUT);
    loop {
        if stop.is_set() {
            return Err(Failure("interrupted".into()));
        }
        let now = node.clock().now();
        if links.look(now, node.attached_mut())? {
            return Ok(());
        }
        node.prepare()?;
    }
}

//! What a device node tells of those who come: not more lines than somebody
//! can read, however many there are, and the number of the rest.

use super::DeviceEvent;
use crate::limiter::Lines;
use switch::upstream::next_timer;
use wire::Instant;

/// Lines about peers that were turned away, or asked to move the device,
/// before they are only counted.
const AWAY: u32 = 5;
/// The same for hosts, and links of a switch, that come and go.
const CHANGES: u32 = 20;

/// See the module.
#[derive(Debug)]
pub(super) struct News {
    away: Lines<DeviceEvent>,
    moves: Lines<DeviceEvent>,
    changes: Lines<DeviceEvent>,
    /// Who was turned away last, and why.
    latest: Option<String>,
    /// How many were turned away.
    turned_away: u64,
}

impl Default for News {
    fn default() -> Self {
        let [away, moves, changes] = [AWAY, AWAY, CHANGES].map(Lines::new);
        Self { away, moves, changes, latest: None, turned_away: 0 }
    }
}

impl News {
    /// Tells an event, or counts it.
    pub fn pass(&mut self, now: Instant, event: DeviceEvent, tell: &mut impl FnMut(DeviceEvent)) {
        let told = match &event {
            DeviceEvent::TurnedAway(peer, cause) => {
                self.turned_away += 1;
                // Who waits for the device tries five times a second.
                let latest = Some(format!("{} {cause}", peer.machine()));
                if self.latest == latest {
                    return self.away.withhold(now, event);
                }
                self.latest = latest;
                self.away.pass(now, event)
            }
            DeviceEvent::Moved { .. } => self.moves.pass(now, event),
            DeviceEvent::HostUp(_) | DeviceEvent::HostDown(..) => {
                self.latest = None;
                self.changes.pass(now, event)
            }
            DeviceEvent::Attached(_) => self.changes.pass(now, event),
            DeviceEvent::More(_) | DeviceEvent::Report(_) => Some(event),
        };
        told.into_iter().for_each(tell);
    }

    /// Tells how many were not told of, when it is time.
    pub fn tell_rest(&mut self, now: Instant, tell: &mut impl FnMut(DeviceEvent)) {
        for lines in [&mut self.away, &mut self.moves, &mut self.changes] {
            lines.rest(now).map(DeviceEvent::More).into_iter().for_each(&mut *tell);
        }
    }

    /// When [`tell_rest`](Self::tell_rest) has something to do.
    pub fn timer(&self) -> Option<Instant> {
        next_timer([&self.away, &self.moves, &self.changes].map(Lines::timer))
    }

    /// How many were turned away since the start.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Address;
    use switch::tunnel::Cause;
    use wire::Duration;
    use wire::frame::Reject;

    fn away(host: u8, cause: Cause) -> DeviceEvent {
        let address = std::net::SocketAddr::from(([192, 0, 2, host], 5000));
        DeviceEvent::TurnedAway(Address::from(address), cause)
    }

    /// What is told of events that happen `every` that long.
    fn told(
        every: Duration,
        events: impl Iterator<Item = DeviceEvent>,
    ) -> (Vec<DeviceEvent>, News) {
        let (mut news, mut told, mut now) = (News::default(), Vec::new(), Instant::ZERO);
        for event in events {
            now += every;
            news.tell_rest(now, &mut |event| told.push(event));
            news.pass(now, event, &mut |event| told.push(event));
        }
        (told, news)
    }

    fn counted(told: &[DeviceEvent]) -> u64 {
        let count = |event: &DeviceEvent| match event {
            DeviceEvent::More(rest) => rest.count,
            _ => 1,
        };
        told.iter().map(count).sum()
    }

    #[test]
    fn a_host_that_waits_is_told_of_once_and_then_counted() {
        let busy = || away(1, Cause::Rejected(Reject::Busy));
        // A minute, and a bit to hear of the rest.
        let (told, news) = told(Duration::from_ms(200), (0..320).map(|_| busy()));
        assert!(matches!(told[0], DeviceEvent::TurnedAway(..)));
        assert!(told[1..].iter().all(|event| matches!(event, DeviceEvent::More(_))));
        assert_eq!(told.len(), 7, "{told:?}");
        assert_eq!(news.turned_away(), 320);
        assert!(counted(&told) >= 310);
    }

    #[test]
    fn many_who_alternate_make_few_lines() {
        let events = (0..10_000u32).map(|n| {
            let cause = if n % 2 == 0 { Cause::Lost } else { Cause::Rejected(Reject::Group) };
            away((n % 200) as u8, cause)
        });
        let (told, news) = told(Duration::from_ms(1), events);
        assert!(told.len() <= 5 + 4, "{} lines", told.len());
        assert_eq!(news.turned_away(), 10_000);
        let Some(DeviceEvent::More(rest)) = told.last() else { panic!("{told:?}") };
        assert!(matches!(*rest.last, DeviceEvent::TurnedAway(..)));
    }

    #[test]
    fn hosts_that_come_and_go_make_few_lines_too() {
        let peer = Address::from(std::net::SocketAddr::from(([192, 0, 2, 1], 5000)));
        let events = (0..10_000).map(|n| match n % 2 {
            0 => DeviceEvent::HostUp(peer.clone()),
            _ => DeviceEvent::HostDown(peer.clone(), Cause::Goodbye),
        });
        let (told, _) = told(Duration::from_ms(1), events);
        assert!((21..=24).contains(&told.len()), "{} lines", told.len());
    }
}

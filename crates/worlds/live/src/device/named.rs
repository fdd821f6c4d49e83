//! The events of a device node with the names of the peers.

use super::{DeviceEvent, DeviceNode};
use crate::attached::Attached;
use node::device::Event;
use switch::tunnel::Cause;
use wire::trace::Tap;

impl<A: Attached> DeviceNode<A> {
    /// The event with the peer's address.
    pub(super) fn named(&mut self, event: Event) -> DeviceEvent {
        let path = match event {
            Event::HostUp(path)
            | Event::HostInterrupted(path, _)
            | Event::HostResumed(path)
            | Event::HostPathLost(path, _)
            | Event::HostPathUp(path)
            | Event::HostFailedOver(path)
            | Event::Rejected(path, _)
            | Event::Moved { by: path, .. } => Some(path),
            Event::HostDown(path, _) => path,
        };
        let Some(index) = path.map(|path| self.index(path)) else {
            let Event::HostDown(_, cause) = event else { unreachable!("it has a path") };
            self.tracer.lost(Tap::UPLINK, &cause, false);
            return DeviceEvent::HostDown(self.last_host.clone(), cause);
        };
        let carrier = &mut self.paths[index].carrier;
        let (peer, failure) = (carrier.remote(), carrier.take_failure());
        let why = |cause| failure.map_or(cause, Cause::Refused);
        match event {
            Event::HostUp(_) => {
                self.last_host = Some(peer.clone());
                DeviceEvent::HostUp(peer)
            }
            Event::HostInterrupted(_, cause) => {
                self.tracer.lost(Tap::UPLINK, &cause, true);
                DeviceEvent::HostInterrupted(peer, cause)
            }
            Event::HostResumed(_) => {
                self.last_host = Some(peer.clone());
                DeviceEvent::HostResumed(peer)
            }
            Event::HostPathLost(_, cause) => DeviceEvent::HostPathLost(peer, cause),
            Event::HostPathUp(_) => DeviceEvent::HostPathUp(peer),
            Event::HostFailedOver(_) => DeviceEvent::HostFailedOver(peer),
            Event::HostDown(_, cause) => {
                let cause = why(cause);
                self.tracer.lost(Tap::UPLINK, &cause, false);
                DeviceEvent::HostDown(Some(peer), cause)
            }
            Event::Rejected(_, cause) => DeviceEvent::TurnedAway(peer, why(cause)),
            Event::Moved { group, answer, .. } => DeviceEvent::Moved { by: peer, group, answer },
        }
    }
}

//! Links of several connections. The node of the first connection listens. It passes further
//! connections to their nodes, each in a thread of its own. When a connection's session ends, the
//! sessions of the link's other connections end too.

use super::{DeviceNode, Path};
use crate::attached::Attached;
use crate::clock::Clock;
use crate::net::Carrier;
use crate::poller::Poller;
use bytes::Bytes;
use node::PathId;
use node::path::Input;
use std::io;
use storage::completions::{Completions, Finished, completions};
use switch::tunnel::Settings;
use wire::Instant;

/// A message of another node of the link.
pub(super) enum Message {
    /// A connection, with the bytes received over it.
    Connection(Box<Carrier>, Bytes),
    /// The session of another connection of this link has ended.
    Ended(u128),
}

/// The other nodes of a link's connections.
#[derive(Default)]
pub(super) enum Connections {
    /// The link has one connection.
    #[default]
    One,
    /// Of the first connection: the nodes of the further ones, and the links whose further sessions
    /// have ended.
    First { further: Vec<Finished<Message>>, ended: Completions<u128> },
    /// Of a further connection.
    Further { inbox: Completions<Message>, ended: Finished<u128> },
}

/// The way to the node of the first connection, for the node of a further one.
pub struct FurtherConnection {
    inbox: Completions<Message>,
    ended: Finished<u128>,
}

impl<A: Attached> DeviceNode<A> {
    /// Serves links of several connections: returns what the nodes of `count` further ones need.
    ///
    /// # Errors
    /// As `eventfd(2)` and `epoll_ctl(2)`.
    pub fn with_connections(mut self, count: u16) -> io::Result<(Self, Vec<FurtherConnection>)> {
        let (sender, ended) = completions()?;
        let pairs = (0..count).map(|_| completions()).collect::<io::Result<Vec<_>>>()?;
        let (further, inboxes): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        self.poller.add_without_spin(ended.signal())?;
        self.connections = Connections::First { further, ended };
        let way = |inbox| FurtherConnection { inbox, ended: sender.clone() };
        Ok((self, inboxes.into_iter().map(way).collect()))
    }

    /// The node of a further connection.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn further(
        clock: Clock,
        poller: Poller,
        FurtherConnection { inbox, ended }: FurtherConnection,
        settings: Settings,
        attached: A,
    ) -> io::Result<Self> {
        poller.add_without_spin(inbox.signal())?;
        let connections = Connections::Further { inbox, ended };
        Ok(Self { connections, ..Self::over(clock, poller, Vec::new(), settings, attached)? })
    }

    /// Handles messages of the other nodes; returns whether there was any.
    pub(super) fn handle_messages(&mut self, now: Instant) -> io::Result<bool> {
        let messages: Vec<Message> = match &self.connections {
            Connections::First { ended, .. } if self.poller.take_ready(ended.signal()) => {
                ended.clear_signal();
                std::iter::from_fn(|| ended.poll()).map(Message::Ended).collect()
            }
            Connections::Further { inbox, .. } if self.poller.take_ready(inbox.signal()) => {
                inbox.clear_signal();
                std::iter::from_fn(|| inbox.poll()).collect()
            }
            _ => return Ok(false),
        };
        for message in messages {
            match message {
                Message::Connection(carrier, greeting) => {
                    self.take_over(now, *carrier, greeting)?;
                }
                Message::Ended(link) => self.node.end_session(link),
            }
        }
        Ok(true)
    }

    /// Passes a path to the node of connection `number`.
    pub(super) fn hand_over(&mut self, path: PathId, number: u16, greeting: Bytes) {
        let Path { carrier, .. } = self.paths.swap_remove(self.index(path));
        self.poller.remove(&carrier);
        let Connections::First { further, .. } = &self.connections else {
            unreachable!("the settings of the node have further connections")
        };
        further[usize::from(number) - 1].send([Message::Connection(carrier.into(), greeting)]);
    }

    /// Takes a connection that the node of the first one has accepted.
    fn take_over(&mut self, now: Instant, carrier: Carrier, greeting: Bytes) -> io::Result<()> {
        self.poller.add(&carrier, false)?;
        let id = self.add_path(now, carrier);
        self.node.handle(now, id, Input::Received(greeting));
        Ok(())
    }

    /// Notes that a session on this link has begun.
    pub(super) fn session_begun(&mut self) {
        self.link = self.node.link_name();
        let several = self.link.is_some();
        self.node.function_mut().inner.bind_link(several);
    }

    /// Lets the other sessions of the link end, because the session of this node has ended.
    pub(super) fn session_ended(&mut self) {
        let Some(link) = self.link.take() else { return };
        match &self.connections {
            Connections::One => {}
            Connections::First { further, .. } => {
                further.iter().for_each(|one| one.send([Message::Ended(link)]));
            }
            Connections::Further { ended, .. } => ended.send([link]),
        }
    }
}

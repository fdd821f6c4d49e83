//! Tests with a client for tests that is connected to a server over a real socket.

mod config;
mod dma;
mod files;
mod irqs;
mod lifecycle;
mod messages;
mod regions;
mod shared;
mod testbed;

use crate::connection::{Closed, MAX_PAYLOAD};
use crate::dma::{DMA_DEADLINE, MAX_DMA};
use crate::guest::{ClientFile, Workers};
use crate::mapping::{Mapping, Shared};
use crate::{Access, Action, BindError, DmaError, DmaId, EndpointInfo, Presence, Server, Token};
use bytes::Bytes;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use testbed::Testbed;
use testkit::Folder;
use testkit::vfio_user::{
    Client, Reply, access, bench_capabilities, encoded, eventfd, greeting, is_readable, message,
    plain_function, rung,
};
use wire::Instant;
use wire::vfio_user::*;

const CONFIG: u32 = region_index::CONFIG;
const MSIX: u32 = irq_index::MSIX;
const EINVAL: u32 = 22;

const TRIGGER: (IrqData, IrqAction) = (IrqData::Eventfd, IrqAction::Trigger);
const FIRE: (IrqData, IrqAction) = (IrqData::None, IrqAction::Trigger);

/// The endpoint of `testkit`, with doorbells by message.
pub fn plain_endpoint() -> EndpointInfo {
    let (config, bars) = plain_function();
    EndpointInfo { config, bars, doorbells: false }
}

/// As [`plain_endpoint`], but with doorbells in a shared page.
pub fn shared_endpoint() -> EndpointInfo {
    EndpointInfo { doorbells: true, ..plain_endpoint() }
}

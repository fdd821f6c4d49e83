//! A client written for these tests, against a server over a real socket; and random messages
//! against a session.

pub(crate) mod client;
mod config;
mod dma;
mod files;
mod irqs;
mod lifecycle;
mod messages;
mod random;
mod regions;
mod shared;

use crate::folder::Folder;
use crate::guest::{ClientFile, Workers};
use crate::mapping::{Mapping, Shared};
use crate::vfio_user::connection::{Closed, MAX_PAYLOAD};
use crate::vfio_user::dma::{DMA_DEADLINE, MAX_DMA};
use crate::vfio_user::{
    Access, Action, BindError, DmaError, DmaId, EndpointInfo, Presence, Server, Token, testing,
};
use bytes::Bytes;
use client::{
    Client, Testbed, access, bench_capabilities, encoded, eventfd, is_readable, message, rung,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::Instant;
use wire::vfio_user::*;

const CONFIG: u32 = region_index::CONFIG;
const MSIX: u32 = irq_index::MSIX;
const EINVAL: u32 = 22;

const TRIGGER: (IrqData, IrqAction) = (IrqData::Eventfd, IrqAction::Trigger);
const FIRE: (IrqData, IrqAction) = (IrqData::None, IrqAction::Trigger);

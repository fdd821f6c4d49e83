//! Media in plain memory.

use ::nvme::Config;
use ::nvme::block::{Completion, Error, Operation, Request};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The bytes of all namespaces, and a log of requests.
#[derive(Debug)]
pub struct Media {
    /// Bytes of each namespace, by NSID.
    pub namespaces: BTreeMap<u32, Vec<u8>>,
    /// Error of every request; `None` if requests succeed.
    pub failure: Option<Error>,
    /// Executed operations, oldest first: NSID and name.
    pub log: Vec<(u32, &'static str)>,
}

impl Media {
    /// Creates media of zeroes, with the sizes in `config`.
    pub fn new(config: &Config) -> Self {
        let bytes = |ns: &::nvme::NamespaceConfig| vec![0; (ns.blocks << ns.block_shift) as usize];
        let namespaces = (1..).zip(config.namespaces.iter().map(bytes)).collect();
        Self { namespaces, failure: None, log: Vec::new() }
    }

    /// Executes a request.
    ///
    /// # Panics
    /// If the request is outside of its namespace.
    pub fn execute(&mut self, request: Request) -> Completion {
        let bytes = self.namespaces.get_mut(&request.nsid).expect("a namespace");
        let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
        let (name, result) = match request.operation {
            Operation::Read { offset, length } => {
                ("read", Bytes::copy_from_slice(&bytes[range(offset, length as u64)]))
            }
            Operation::Write { offset, data } => {
                if self.failure.is_none() {
                    bytes[range(offset, data.len() as u64)].copy_from_slice(&data);
                }
                ("write", Bytes::new())
            }
            Operation::Flush => ("flush", Bytes::new()),
            Operation::WriteZeroes { offset, length } => {
                bytes[range(offset, length)].fill(0);
                ("write zeroes", Bytes::new())
            }
            Operation::Discard { offset, length } => {
                bytes[range(offset, length)].fill(0);
                ("discard", Bytes::new())
            }
        };
        self.log.push((request.nsid, name));
        self.failure.map_or(Ok(result), Err)
    }
}

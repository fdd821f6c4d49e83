//! Namespace management (NVMe 1.4, sections 5.19 and 5.20), for the owner of a subsystem.

use super::Subsystem;
use super::store::Change;
use crate::state::{self, RecordError};

/// Why namespaces cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// The drive keeps no records.
    #[error("the drive keeps no records")]
    NoRecords,
    /// Another change of namespaces is not stored yet.
    #[error("another change of namespaces is not stored yet")]
    Busy,
    /// There is not so much capacity left.
    #[error("the namespace needs {needed} bytes, and {left} are left")]
    Capacity {
        /// Bytes of the namespace.
        needed: u64,
        /// Bytes that no namespace has.
        left: u64,
    },
    /// Every NSID is in use.
    #[error("the drive has {0} namespaces, and no more than these")]
    Full(u32),
    /// A value out of its range, or a name that another namespace has.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is no such namespace.
    #[error("there is no namespace {0}")]
    NoNamespace(u32),
    /// There is no such controller.
    #[error("there is no controller {0}")]
    NoController(u16),
    /// It is attached already.
    #[error("namespace {0} is attached to controller {1} already")]
    Attached(u32, u16),
    /// It is not attached.
    #[error("namespace {0} is not attached to controller {1}")]
    NotAttached(u32, u16),
}

/// Each change is there when the next commit ([`Subsystem::poll_store`]) is stored.
impl Subsystem {
    /// Creates a namespace, attached to no controller; returns its NSID, the lowest that is free.
    /// Whoever calls gives it NGUID, EUI-64, UUID and contents that no namespace ever had: an NSID
    /// is used again.
    ///
    /// # Errors
    /// If there are no records, no capacity or no NSID left, if a value is out of its range, if a
    /// namespace has one of the names, or if another change is not stored yet.
    pub fn create_namespace(&mut self, namespace: state::Namespace) -> Result<u32, NamespaceError> {
        let mut state = self.check_change()?;
        let max = state.drive.max_namespaces;
        let free = |nsid: &u32| !state.namespaces.contains_key(nsid);
        let nsid = (1..=max).find(free).ok_or(NamespaceError::Full(max))?;
        namespace.checked(nsid)?;
        let (needed, left) = (namespace.bytes(), state.drive.capacity - state.allocated());
        if needed > left {
            return Err(NamespaceError::Capacity { needed, left });
        }
        state.namespaces.insert(nsid, namespace.clone());
        state.check()?;
        self.store(Change::Create(nsid, namespace));
        Ok(nsid)
    }

    /// Deletes a namespace, attached or not. Its contents are the caller's to delete, once that is
    /// stored.
    ///
    /// # Errors
    /// If there are no records or no such namespace, or if another change is not stored yet.
    pub fn delete_namespace(&mut self, nsid: u32) -> Result<(), NamespaceError> {
        let state = self.check_change()?;
        if !state.namespaces.contains_key(&nsid) {
            return Err(NamespaceError::NoNamespace(nsid));
        }
        self.store(Change::Delete(nsid));
        Ok(())
    }

    /// Attaches a namespace to a controller.
    ///
    /// # Errors
    /// If there are no records, no such namespace or no such controller, if it is attached, or if
    /// another change is not stored yet.
    pub fn attach(&mut self, nsid: u32, controller: u16) -> Result<(), NamespaceError> {
        self.set_attached(nsid, controller, true)
    }

    /// Detaches a namespace from a controller.
    ///
    /// # Errors
    /// As [`attach`](Self::attach), if it is not attached.
    pub fn detach(&mut self, nsid: u32, controller: u16) -> Result<(), NamespaceError> {
        self.set_attached(nsid, controller, false)
    }

    fn set_attached(
        &mut self,
        nsid: u32,
        controller: u16,
        attach: bool,
    ) -> Result<(), NamespaceError> {
        self.check_change()?;
        let namespace = self.shared.namespaces.get(&nsid);
        let namespace = namespace.ok_or(NamespaceError::NoNamespace(nsid))?;
        if !(1..=self.shared.controllers).contains(&controller) {
            return Err(NamespaceError::NoController(controller));
        }
        match (namespace.attached.contains(&controller), attach) {
            (true, true) => return Err(NamespaceError::Attached(nsid, controller)),
            (false, false) => return Err(NamespaceError::NotAttached(nsid, controller)),
            _ => {}
        }
        self.store(Change::Attach { nsid, controller, attach });
        Ok(())
    }

    /// What the drive keeps, if its namespaces can be changed now.
    fn check_change(&self) -> Result<state::State, NamespaceError> {
        let store = self.shared.store.as_ref().ok_or(NamespaceError::NoRecords)?;
        if store.waiting().any(Change::is_of_namespaces) {
            return Err(NamespaceError::Busy);
        }
        Ok(self.state())
    }

    fn store(&mut self, change: Change) {
        self.shared.store.as_mut().expect("it was checked").push(change);
    }
}

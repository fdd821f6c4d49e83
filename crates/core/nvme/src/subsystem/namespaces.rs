//! Changes of namespaces (NVMe 1.4, section 8.12), by commands or by the owner of the subsystem.

use super::store::{Change, NamespaceChange};
use super::{Shared, Subsystem};
use crate::identity::numbered_uuid;
use crate::slots::Key;
use crate::state::{self, Format, RecordError};

/// Why namespaces cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// The drive has no records.
    #[error("the drive has no folder, so its namespaces cannot be changed")]
    NoRecords,
    /// An earlier change of namespaces is not yet stored, or a sanitize operation is under way.
    #[error("the drive still stores an earlier change of namespaces, or is being sanitized")]
    Busy,
    /// The unallocated capacity is too small.
    #[error("the namespace needs {needed} bytes, but only {left} are unallocated")]
    Capacity {
        /// Size of the namespace in bytes.
        needed: u64,
        /// Unallocated bytes.
        left: u64,
    },
    /// Every NSID is in use.
    #[error("the drive already has {0} namespaces, its maximum")]
    Full(u32),
    /// A value outside of its range, or a name that another namespace has.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The namespace does not exist.
    #[error("the drive has no namespace {0}")]
    NoNamespace(u32),
    /// The controller does not exist.
    #[error("the drive has no controller {0}")]
    NoController(u16),
    /// A private namespace is attached to another controller, or would be attached to several.
    #[error("namespace {0} is private: it can be attached to only one controller")]
    Private(u32),
    /// The namespace is already attached.
    #[error("namespace {0} is already attached to controller {1}")]
    Attached(u32, u16),
    /// The namespace is not attached.
    #[error("namespace {0} is not attached to controller {1}")]
    NotAttached(u32, u16),
}

/// Each change takes effect when the next commit ([`Subsystem::poll_store`]) is stored.
impl Subsystem {
    /// Creates a namespace that is attached to no controller; returns the NSID, the lowest free
    /// NSID. NGUID, EUI-64, UUID and contents must be new to the drive, because NSIDs are reused.
    ///
    /// # Errors
    /// If the drive has no records, if no capacity or no NSID is left, if a value is out of its
    /// range, if another namespace has one of the names, or if another change is not stored yet.
    pub fn create_namespace(&mut self, namespace: state::Namespace) -> Result<u32, NamespaceError> {
        self.shared.create_namespace(None, namespace)
    }

    /// Deletes a namespace and its contents, even if it is attached.
    ///
    /// # Errors
    /// If the drive has no records, if the namespace does not exist, or if another change is not
    /// stored yet.
    pub fn delete_namespace(&mut self, nsid: u32) -> Result<(), NamespaceError> {
        self.shared.delete_namespaces(None, vec![nsid])
    }

    /// Attaches a namespace to a controller.
    ///
    /// # Errors
    /// If the drive has no records, if the namespace or controller does not exist, if the namespace
    /// is already attached, if it is private and attached to another controller, or if another
    /// change is not stored yet.
    pub fn attach(&mut self, nsid: u32, controller: u16) -> Result<(), NamespaceError> {
        self.shared.set_attached(None, nsid, vec![controller], true)
    }

    /// Detaches a namespace from a controller.
    ///
    /// # Errors
    /// If the drive has no records, if the namespace or controller does not exist, if the namespace
    /// is not attached, or if another change is not stored yet.
    pub fn detach(&mut self, nsid: u32, controller: u16) -> Result<(), NamespaceError> {
        self.shared.set_attached(None, nsid, vec![controller], false)
    }
}

/// The CNTLID and the command that waits for a change, if any.
type Waiting = Option<(u16, Key)>;

impl Shared {
    pub(crate) fn create_namespace(
        &mut self,
        command: Waiting,
        namespace: state::Namespace,
    ) -> Result<u32, NamespaceError> {
        self.check_change()?;
        let mut state = self.state();
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
        self.push(command, NamespaceChange::Create(nsid, namespace));
        Ok(nsid)
    }

    /// A namespace of this size with unique names, derived from the drive's random UUID and the
    /// number of namespaces ever created.
    pub(crate) fn unique_namespace(
        &self,
        blocks: u64,
        format: Format,
        private: bool,
    ) -> state::Namespace {
        let uuid = numbered_uuid(self.drive.uuid, self.created);
        let contents = format!("{:032x}", u128::from_be_bytes(uuid));
        let Format { block_shift, metadata, extended, protection } = format;
        state::Namespace {
            blocks,
            block_shift,
            nguid: uuid,
            uuid,
            contents,
            private,
            metadata,
            extended,
            protection,
            ..state::Namespace::default()
        }
    }

    pub(crate) fn delete_namespaces(
        &mut self,
        command: Waiting,
        nsids: Vec<u32>,
    ) -> Result<(), NamespaceError> {
        self.check_change()?;
        if let Some(absent) = nsids.iter().find(|nsid| !self.namespaces.contains_key(nsid)) {
            return Err(NamespaceError::NoNamespace(*absent));
        }
        self.push(command, NamespaceChange::Delete(nsids));
        Ok(())
    }

    /// Attaches a namespace to all these controllers, or detaches it from all of them. An error
    /// changes nothing.
    pub(crate) fn set_attached(
        &mut self,
        command: Waiting,
        nsid: u32,
        controllers: Vec<u16>,
        attach: bool,
    ) -> Result<(), NamespaceError> {
        self.check_change()?;
        let namespace = self.namespaces.get(&nsid);
        let namespace = namespace.ok_or(NamespaceError::NoNamespace(nsid))?;
        for controller in &controllers {
            if !(1..=self.controllers).contains(controller) {
                return Err(NamespaceError::NoController(*controller));
            }
            match (namespace.attached.contains(controller), attach) {
                (true, true) => return Err(NamespaceError::Attached(nsid, *controller)),
                (false, false) => return Err(NamespaceError::NotAttached(nsid, *controller)),
                _ => {}
            }
        }
        let attached = namespace.attached.len() + controllers.len();
        if attach && namespace.record.private && attached > 1 {
            return Err(NamespaceError::Private(nsid));
        }
        self.push(command, NamespaceChange::Attach { nsid, controllers, attach });
        Ok(())
    }

    /// Changes namespaces for a command of a controller, after all other checks.
    pub(crate) fn change_namespaces(
        &mut self,
        command: (u16, Key),
        change: NamespaceChange,
    ) -> Result<(), NamespaceError> {
        self.check_change()?;
        self.push(Some(command), change);
        Ok(())
    }

    /// Fails if namespaces cannot be changed now.
    fn check_change(&self) -> Result<(), NamespaceError> {
        let store = self.store.as_ref().ok_or(NamespaceError::NoRecords)?;
        let changes = store.waiting().any(|change| matches!(change, Change::Namespaces { .. }));
        if changes || self.erase.is_some() || self.stores_sanitize() {
            return Err(NamespaceError::Busy);
        }
        Ok(())
    }

    fn push(&mut self, command: Waiting, change: NamespaceChange) {
        let store = self.store.as_mut().expect("it was checked");
        store.push(Change::Namespaces { command, change });
    }
}

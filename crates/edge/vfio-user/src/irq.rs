//! Interrupts to the guest by eventfd, and masks of the interrupts (vfio-user specification,
//! VFIO_USER_DEVICE_SET_IRQS; for the meaning of the actions see Linux
//! `drivers/vfio/pci/vfio_pci_intrs.c`).

use crate::guest::ClientFile;
use crate::signals::Signals;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags};
use wire::vfio_user::{
    IRQ_INFO_AUTOMASKED, IRQ_INFO_EVENTFD, IRQ_INFO_MASKABLE, IrqAction, IrqData, IrqInfo, IrqSet,
    irq_index,
};

/// One interrupt of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// INTx.
    Intx,
    /// The MSI-X vector with this number.
    Msix(u16),
}

#[derive(Debug, Default)]
struct Vector {
    fd: Option<OwnedFd>,
    /// Whether the client has masked the interrupt with SET_IRQS.
    masked: bool,
    /// Whether the client has masked the interrupt in the MSI-X table.
    table_masked: bool,
    pending: bool,
}

/// The interrupts of one endpoint. All descriptors are eventfds.
#[derive(Debug)]
pub(super) struct Interrupts {
    signals: Signals,
    intx: Option<OwnedFd>,
    intx_masked: bool,
    level: bool,
    /// The eventfd that the client writes to unmask INTx, instead of an UNMASK message (KVM's
    /// resample descriptor).
    unmask: Option<OwnedFd>,
    /// A number that changes each time that `unmask` changes.
    unmask_generation: u64,
    vectors: Vec<Vector>,
    function_masked: bool,
    request: Option<OwnedFd>,
}

impl Interrupts {
    pub(super) fn new(vectors: u16, signals: Signals) -> Self {
        Self {
            signals,
            intx: None,
            intx_masked: false,
            level: false,
            unmask: None,
            unmask_generation: 0,
            vectors: (0..vectors).map(|_| Vector::default()).collect(),
            function_masked: false,
            request: None,
        }
    }

    /// Drops the client's descriptors, masks and pending bits. The level of INTx stays, because it
    /// is a state of the device. `signals` is for the next client.
    pub(super) fn disconnect(&mut self, signals: Signals) {
        let (level, generation) = (self.level, self.unmask_generation + 1);
        let fresh = Self::new(self.count(), signals);
        *self = Self { level, unmask_generation: generation, ..fresh };
    }

    /// Handles a reset of the function: clears the pending bits, the masks of the table and the
    /// function mask. Descriptors and masks of SET_IRQS stay.
    pub(super) fn reset(&mut self) {
        self.function_masked = false;
        for vector in &mut self.vectors {
            vector.pending = false;
            vector.table_masked = false;
        }
    }

    pub(super) fn count(&self) -> u16 {
        self.vectors.len() as u16
    }

    /// Flags and count of the interrupt type `index`; `None` for an interrupt type that does not
    /// exist. There is no error interrupt, because QEMU stops the guest when it is signalled.
    pub(super) fn info(&self, index: u32) -> Option<IrqInfo> {
        let (flags, count) = match index {
            irq_index::INTX => (IRQ_INFO_EVENTFD | IRQ_INFO_MASKABLE | IRQ_INFO_AUTOMASKED, 1),
            irq_index::MSI => (IRQ_INFO_EVENTFD, 0),
            irq_index::MSIX => (IRQ_INFO_EVENTFD | IRQ_INFO_MASKABLE, self.vectors.len() as u32),
            irq_index::REQ => (IRQ_INFO_EVENTFD, 1),
            _ => return None,
        };
        Some(IrqInfo { argsz: IrqInfo::LENGTH as u32, flags, index, count })
    }

    /// Whether at least one MSI-X vector has a descriptor.
    pub(super) fn msix_assigned(&self) -> bool {
        self.vectors.iter().any(|vector| vector.fd.is_some())
    }

    /// Executes SET_IRQS. Error: `EINVAL` for an unknown interrupt, a wrong number of descriptors,
    /// or a descriptor that is not an eventfd; `ENOTSUP` for an unsupported action.
    pub(super) fn set(&mut self, set: &IrqSet, fds: Vec<ClientFile>) -> Result<(), Errno> {
        let info = self.info(set.index).ok_or(Errno::INVAL)?;
        let eventfd = matches!(set.data, IrqData::Eventfd);
        if !fds.is_empty() && (!eventfd || fds.len() != set.count as usize) {
            return Err(Errno::INVAL);
        }
        let disable = matches!(set.data, IrqData::None) && set.action == IrqAction::Trigger;
        if set.count == 0 {
            if !disable || set.start != 0 {
                return Err(Errno::INVAL);
            }
            self.disable(set.index);
            return Ok(());
        }
        let end = set.start.checked_add(set.count).ok_or(Errno::INVAL)?;
        if end > info.count {
            return Err(Errno::INVAL);
        }
        if !fds.iter().all(|fd| self.signals.takes(fd.as_fd())) {
            return Err(Errno::INVAL);
        }
        let mut fds = fds.into_iter().map(ClientFile::into_inner);
        for (i, number) in (set.start..end).enumerate() {
            match &set.data {
                IrqData::Eventfd => self.assign(set.index, number, set.action, fds.next())?,
                IrqData::Bool(which) if which.get(i).is_none_or(|on| *on == 0) => {}
                _ => self.act(set.index, number, set.action)?,
            }
        }
        Ok(())
    }

    fn disable(&mut self, index: u32) {
        match index {
            irq_index::INTX => {
                self.intx = None;
                self.intx_masked = false;
                self.unmask = None;
                self.unmask_generation += 1;
            }
            irq_index::MSIX => self.vectors.iter_mut().for_each(|v| *v = Vector::default()),
            irq_index::REQ => self.request = None,
            _ => {}
        }
    }

    fn assign(
        &mut self,
        index: u32,
        number: u32,
        action: IrqAction,
        fd: Option<OwnedFd>,
    ) -> Result<(), Errno> {
        match (index, action) {
            (irq_index::INTX, IrqAction::Trigger) => {
                self.intx = fd;
                self.intx_masked = false;
                self.deliver_intx();
            }
            (irq_index::INTX, IrqAction::Unmask) => {
                self.unmask = fd;
                self.unmask_generation += 1;
            }
            (irq_index::MSIX, IrqAction::Trigger) => {
                self.vectors[number as usize].fd = fd;
                self.deliver(number as u16);
            }
            (irq_index::REQ, IrqAction::Trigger) => self.request = fd,
            _ => return Err(Errno::NOTSUP),
        }
        Ok(())
    }

    fn act(&mut self, index: u32, number: u32, action: IrqAction) -> Result<(), Errno> {
        match (index, action) {
            (irq_index::INTX, IrqAction::Mask) => self.intx_masked = true,
            (irq_index::INTX, IrqAction::Unmask) => self.unmask_intx(),
            (irq_index::INTX, IrqAction::Trigger) => {
                self.signal_fd(self.intx.as_ref());
                self.intx_masked = true;
            }
            (irq_index::MSIX, IrqAction::Trigger) => self.signal(number as u16),
            (irq_index::MSIX, mask) => {
                self.vectors[number as usize].masked = mask == IrqAction::Mask;
                self.deliver(number as u16);
            }
            (irq_index::REQ, IrqAction::Trigger) => {
                self.signal_fd(self.request.as_ref());
            }
            _ => return Err(Errno::NOTSUP),
        }
        Ok(())
    }

    /// Signals a vector. A vector that is masked or has no descriptor stays pending (QEMU removes
    /// all descriptors for a short time when it adds one). A vector that the function does not have
    /// is ignored.
    pub(super) fn signal(&mut self, vector: u16) {
        if let Some(entry) = self.vectors.get_mut(usize::from(vector)) {
            entry.pending = true;
            self.deliver(vector);
        }
    }

    fn deliver(&mut self, vector: u16) {
        let entry = &self.vectors[usize::from(vector)];
        if entry.pending && !entry.masked && !entry.table_masked && !self.function_masked {
            let rung = self.signal_fd(entry.fd.as_ref());
            self.vectors[usize::from(vector)].pending = !rung;
        }
    }

    /// Handles a write of a vector's mask bit in the MSI-X table.
    pub(super) fn mask_by_table(&mut self, vector: u16, masked: bool) {
        if let Some(entry) = self.vectors.get_mut(usize::from(vector)) {
            entry.table_masked = masked;
            self.deliver(vector);
        }
    }

    /// Handles a write of the bit Function Mask. A pending vector that is no longer masked is
    /// signalled.
    pub(super) fn mask_function(&mut self, masked: bool) {
        if std::mem::replace(&mut self.function_masked, masked) && !masked {
            (0..self.count()).for_each(|vector| self.deliver(vector));
        }
    }

    /// Byte `at` of the pending bit array (PBA).
    pub(super) fn pending_byte(&self, at: usize) -> u8 {
        let bits = self.vectors.iter().skip(at * 8).take(8).enumerate();
        bits.fold(0, |byte, (bit, vector)| byte | (u8::from(vector.pending) << bit))
    }

    /// Sets the level of INTx. INTx is signalled when the level becomes high, and again if it is
    /// unmasked while the level is high.
    pub(super) fn set_intx(&mut self, level: bool) {
        self.level = level;
        self.deliver_intx();
    }

    fn deliver_intx(&mut self) {
        if self.level && !self.intx_masked && self.signal_fd(self.intx.as_ref()) {
            self.intx_masked = true;
        }
    }

    fn unmask_intx(&mut self) {
        self.intx_masked = false;
        self.deliver_intx();
    }

    /// The descriptor that unmasks INTx, and a number that changes each time that the descriptor
    /// changes.
    pub(super) fn unmask_fd(&self) -> (Option<BorrowedFd<'_>>, u64) {
        (self.unmask.as_ref().map(AsFd::as_fd), self.unmask_generation)
    }

    /// Handles the unmask descriptor after it was reported as readable. Another process may have
    /// read it already. Then a plain read could block, because the client controls the blocking
    /// mode. A descriptor that fails is dropped, because it would be reported again and again.
    pub(super) fn unmask_ready(&mut self) {
        let Some(fd) = &self.unmask else { return };
        let mut count = [0; 8];
        let into = &mut [IoSliceMut::new(&mut count)];
        // This offset means the current position (preadv2(2)), because an eventfd has no offsets.
        match rustix::io::preadv2(fd, into, u64::MAX, ReadWriteFlags::NOWAIT) {
            Ok(8) => self.unmask_intx(),
            Err(Errno::AGAIN | Errno::INTR) => {}
            _ => {
                self.unmask = None;
                self.unmask_generation += 1;
            }
        }
    }

    /// Signals an eventfd; returns whether it succeeded. Returns false if there is no eventfd.
    fn signal_fd(&self, fd: Option<&OwnedFd>) -> bool {
        fd.is_some_and(|fd| self.signals.signal(fd))
    }
}

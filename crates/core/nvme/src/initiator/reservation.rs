//! The registration of a host, and its reservation (NVMe 1.4, sections 6.10 and 6.11).

use super::{Driver, Error, Registration};
use wire::nvme::opcode::nvm;
use wire::nvme::{
    AcquireAction, Command, RegisterAction, ReservationKeys, ReservationType, StatusCode,
};

impl Driver {
    /// Registers the host with I/O queue 0, and acquires the reservation unless another host holds
    /// one. Both have no effect if they are repeated.
    pub(super) async fn register(&mut self, registration: Registration) -> Result<(), Error> {
        let Registration { nsid, key, kind } = registration;
        let register = Command {
            opcode: nvm::RESERVATION_REGISTER,
            nsid,
            cdw10: RegisterAction::Register as u32,
            ..Command::default()
        };
        let new = ReservationKeys { current: 0, other: key };
        self.run_io("Reservation Register", register, new).await?;
        let Some(kind) = kind else { return Ok(()) };
        let acquired = self.acquire(nsid, key, kind).await;
        match acquired {
            Err(Error::Command(_, status)) if status.code == StatusCode::RESERVATION_CONFLICT => {
                Ok(())
            }
            acquired => acquired,
        }
    }

    async fn acquire(&mut self, nsid: u32, key: u64, kind: ReservationType) -> Result<(), Error> {
        let acquire = Command {
            opcode: nvm::RESERVATION_ACQUIRE,
            nsid,
            cdw10: AcquireAction::Acquire as u32 | u32::from(kind as u8) << 8,
            ..Command::default()
        };
        let keys = ReservationKeys { current: key, other: 0 };
        self.run_io("Reservation Acquire", acquire, keys).await
    }

    async fn run_io(
        &mut self,
        name: &'static str,
        command: Command,
        keys: ReservationKeys,
    ) -> Result<(), Error> {
        let queue = &mut self.queues[0].pair;
        self.admin.run_io(queue, (name, command), &keys.encode()).await.map(drop)
    }
}

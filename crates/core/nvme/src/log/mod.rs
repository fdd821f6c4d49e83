//! Log pages (NVMe 1.4, section 5.14.1).

mod error;
mod health;
mod persistent;
mod reservation;
mod telemetry;

pub(crate) use error::ErrorLog;
pub(crate) use health::{CRITICAL_TEMPERATURE, Health, WARNING_TEMPERATURE};
pub(crate) use persistent::persistent_page;
pub(crate) use reservation::ReservationLog;
pub(crate) use telemetry::{controller_telemetry, host_telemetry};

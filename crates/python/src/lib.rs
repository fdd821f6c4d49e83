//! The native module of the Python package `farlane`, which wraps it: `python/farlane`.
//!
//! Simulations run without the GIL. Documents pass as JSON text, tables by the Arrow PyCapsule
//! interface.
//!
//! # Modules
//!
//! - `plan_object`: plans and their runs
//! - `points`: points of a sweep's folder, for workers
//! - `table`: tables as Arrow record batches
//! - `reading`: traces, samples, reproduced publications
//! - `watch`: work in another thread, with progress and signals
//! - `errors`: exceptions

mod errors;
mod plan_object;
mod points;
mod reading;
mod table;
mod watch;

use pyo3::pymodule;

/// The native part of farlane.
#[pymodule]
mod _farlane {
    #[pymodule_export]
    use crate::plan_object::Plan;
    #[pymodule_export]
    use crate::points::{fail, missing, work};
    #[pymodule_export]
    use crate::reading::{read_samples, read_trace, reproduce};
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

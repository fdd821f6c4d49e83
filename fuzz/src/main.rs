//! libFuzzer on the targets of `crates/fuzz`: one binary, so that there is one
//! thing to link; the environment variable `FARLANE_FUZZ` names the target.

#![no_main]

use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("FARLANE_FUZZ").unwrap_or_default();
        let target = targets::target(&name).unwrap_or_else(|| {
            eprintln!("FARLANE_FUZZ={name:?} is none of {:?}", targets::names());
            std::process::exit(2);
        });
        TARGET.get_or_init(|| target);
    },
    |data: &[u8]| TARGET.get().expect("set at the start")(data)
);

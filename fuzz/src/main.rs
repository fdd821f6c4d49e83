//! One binary for all targets, so that there is one thing to link: the
//! environment variable `FARLANE_FUZZ` names the target.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod harness {
    use std::sync::OnceLock;

    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

    libfuzzer_sys::fuzz_target!(
        init: {
            let name = std::env::var("FARLANE_FUZZ").unwrap_or_default();
            let target = farlane_fuzz::target(&name).unwrap_or_else(|| {
                eprintln!("FARLANE_FUZZ={name:?} is none of {:?}", farlane_fuzz::names());
                std::process::exit(2);
            });
            TARGET.get_or_init(|| target);
        },
        |data: &[u8]| TARGET.get().expect("set at the start")(data)
    );
}

/// Without the fuzzing flags: writes the seeds, or runs files.
#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        None => farlane_fuzz::names().iter().for_each(|name| println!("{name}")),
        Some((verb, [folder])) if verb == "seeds" => farlane_fuzz::seeds::write(folder.as_ref())?,
        Some((name, files)) => {
            let target = farlane_fuzz::target(name).expect("no such target");
            for file in files {
                target(&std::fs::read(file)?);
            }
        }
    }
    Ok(())
}

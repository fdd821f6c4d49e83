//! Names the targets, writes their seeds, or runs a target on files:
//! `farlane-fuzz`, `farlane-fuzz seeds FOLDER`, `farlane-fuzz TARGET FILE…`.

#![allow(clippy::disallowed_methods, reason = "a program reads and writes files")]

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        None => targets::names().iter().for_each(|name| println!("{name}")),
        Some((verb, [folder])) if verb == "seeds" => write_seeds(folder.as_ref())?,
        Some((name, files)) => {
            let target = targets::target(name).expect("no such target");
            for file in files {
                target(&fs::read(file)?);
            }
        }
    }
    Ok(())
}

/// Writes every seed below `folder`, one folder a target.
fn write_seeds(folder: &Path) -> io::Result<()> {
    for (target, seeds) in targets::seeds::all() {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}

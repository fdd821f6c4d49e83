//! Names the targets, or runs one on files: `farlane-fuzz`,
//! `farlane-fuzz TARGET FILE…`.

#![allow(clippy::disallowed_methods, reason = "a program reads files")]

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, files)) = arguments.split_first() else {
        targets::names().iter().for_each(|name| println!("{name}"));
        return Ok(());
    };
    let target = targets::target(name).expect("no such target");
    files.iter().try_for_each(|file| std::fs::read(file).map(|bytes| target(&bytes)))
}

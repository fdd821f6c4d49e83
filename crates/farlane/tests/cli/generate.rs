//! Files for packages: `farlane generate`.

use crate::support::program::{fails, prints, scratch, text};

#[test]
fn manual_pages_and_completions_are_written() {
    let folder = scratch("generate");
    let named = text(&folder);
    assert_eq!(prints(&["generate", "man", &named]), "");
    assert_eq!(prints(&["generate", "completions", &named]), "");
    for (file, part) in [
        ("farlane.1", "farlane\\-device(1)"),
        ("farlane-device.1", "\\-\\-rate\\-limit"),
        ("farlane-drive-create.1", "\\-\\-capacity"),
        ("farlane.bash", "--rate-limit"),
        ("_farlane", "--rate-limit"),
        ("farlane.fish", "rate-limit"),
    ] {
        let contents = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(contents.contains(part), "{file}: no {part}");
    }
    let none = text(&folder.join("none"));
    fails(&["generate", "man", &none], &[&none, "No such file"]);
}

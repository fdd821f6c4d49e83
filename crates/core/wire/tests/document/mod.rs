//! Examples in documents, for tests that compare a document with its codec.

use std::collections::BTreeMap;

/// The fenced blocks "```KIND NAME" of a document, as bytes without comments.
pub fn examples(document: &str, kind: &str) -> BTreeMap<String, Vec<u8>> {
    let fence = format!("```{kind} ");
    let mut found = BTreeMap::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix(&fence) else { continue };
        let text: String = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .flat_map(|line| line.split(';').next())
            .flat_map(str::split_whitespace)
            .collect();
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
        let bytes = (0..text.len()).step_by(2).map(byte).collect();
        assert!(found.insert(name.to_owned(), bytes).is_none(), "two examples {name}");
    }
    found
}

/// Fails unless each example equals the codec's result.
pub fn assert_same(written: &BTreeMap<String, Vec<u8>>, meant: &BTreeMap<String, Vec<u8>>) {
    let names = |map: &BTreeMap<String, Vec<u8>>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(written), names(meant));
    for (name, bytes) in meant {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
        assert_eq!(&written[name], bytes, "example {name}: the codec makes {hex}");
    }
}

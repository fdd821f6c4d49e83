//! Random lists of operations for the controller, through the entry point of the fuzz target.

use proptest::prelude::*;
use testkit::nvme::run_operations;

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_host_that_keeps_the_rules_gets_one_completion_a_command(
        records in 0..3u8, weighted: bool, buffers: bool, bound: bool, choice: u8,
        bytes in proptest::collection::vec(any::<u8>(), 0..6000),
    ) {
        // Without records, with records, and with records and metadata.
        let records = [0, 1 << 2, 1 << 2 | 1 << 4][usize::from(records)];
        let mode = records | u8::from(weighted) << 3 | u8::from(buffers) << 5 | u8::from(bound) << 6;
        let list: Vec<u8> = [mode, choice].into_iter().chain(bytes).collect();
        run_operations(&list);
    }

    #[test]
    fn a_host_that_keeps_the_rules_without_msix(
        buffers: bool, choice: u8, bytes in proptest::collection::vec(any::<u8>(), 0..1000),
    ) {
        let list: Vec<u8> = [2 | u8::from(buffers) << 4, choice].into_iter().chain(bytes).collect();
        run_operations(&list);
    }

    #[test]
    fn a_host_that_writes_anything_anywhere_breaks_nothing(
        intx: bool, drive in 0..8u8, choice: u8,
        bytes in proptest::collection::vec(any::<u8>(), 0..6000),
    ) {
        let mode = 1 | u8::from(intx) << 1 | drive << 2;
        let list: Vec<u8> = [mode, choice].into_iter().chain(bytes).collect();
        run_operations(&list);
    }
}

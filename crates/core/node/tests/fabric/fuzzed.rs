//! The operation lists that fuzzing uses, from random bytes.

use crate::fabric::world::operations::run_operations;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_host_request_is_answered_for_random_operations(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        run_operations(&bytes);
    }
}

//! The tests that prove what is supported, by code.

/// Codes with the names of tests.
pub type Proofs = &'static [(u8, &'static [&'static str])];

/// By opcode.
pub const ADMIN: Proofs = &[
    (0x00, &["queues_are_created_used_and_deleted", "a_deleted_queue_aborts_what_was_not_begun"]),
    (0x01, &["queues_are_created_used_and_deleted", "bad_fields_of_the_create_commands"]),
    (0x02, &["offsets_and_lengths"]),
    (0x04, &["queues_are_created_used_and_deleted"]),
    (0x05, &["queues_are_created_used_and_deleted", "bad_fields_of_the_create_commands"]),
    (0x06, &["the_controller", "namespaces", "lists"]),
    (0x08, &["abort_ends_what_waits_and_nothing_else", "requests_are_limited_and_can_be_aborted"]),
    (0x09, &["what_is_set_can_be_read_and_a_reset_brings_the_default_back"]),
    (0x0a, &["every_feature_has_a_default_and_capabilities"]),
    (0x0c, &["events_wait_for_a_request", "requests_are_limited_and_can_be_aborted"]),
    (
        0x0d,
        &[
            "a_namespace_is_created_attached_used_detached_and_deleted",
            "fields_of_a_namespace_to_create_are_checked",
            "capacity_and_nsids_run_out",
            "all_namespaces_can_be_deleted_at_once",
        ],
    ),
    (
        0x15,
        &[
            "a_namespace_is_created_attached_used_detached_and_deleted",
            "attachments_that_cannot_be_are_refused",
            "a_private_namespace_has_one_controller",
        ],
    ),
    (
        0x84,
        &[
            "a_block_erase_leaves_zeroes",
            "an_overwrite_leaves_its_last_pattern_unless_it_deallocates",
            "it_goes_on_after_resets_and_power",
            "a_failure_without_restriction_can_be_left",
        ],
    ),
];

/// By opcode.
pub const IO: Proofs = &[
    (0x00, &["flush_takes_one_namespace_or_all"]),
    (0x01, &["what_is_written_is_read", "ranges_and_sizes_are_checked"]),
    (0x02, &["what_is_written_is_read", "ranges_and_sizes_are_checked"]),
    (0x08, &["write_zeroes_has_no_transfer_limit"]),
    (0x09, &["deallocate_discards_every_range_or_none"]),
];

/// By feature identifier.
pub const FEATURES: Proofs = &[
    (0x01, &["what_is_set_can_be_read_and_a_reset_brings_the_default_back"]),
    (0x02, &["what_is_set_can_be_read_and_a_reset_brings_the_default_back"]),
    (0x04, &["temperatures_cross_thresholds"]),
    (0x05, &["error_recovery_belongs_to_a_namespace"]),
    (0x06, &["forced_unit_access_and_a_disabled_cache_flush"]),
    (0x07, &["the_number_of_queues_binds"]),
    (0x08, &["coalescing_ends_by_time_or_by_count"]),
    (0x09, &["coalescing_ends_by_time_or_by_count"]),
    (0x0a, &["what_is_set_can_be_read_and_a_reset_brings_the_default_back"]),
    (0x0b, &["temperatures_cross_thresholds", "a_host_is_told_which_namespaces_have_changed"]),
    (0x84, &["a_namespace_is_write_protected_until_the_host_says_otherwise"]),
];

/// By log page identifier.
pub const LOG_PAGES: Proofs = &[
    (0x01, &["errors_are_logged_newest_first"]),
    (0x02, &["smart_counts"]),
    (0x03, &["firmware_and_effects"]),
    (0x04, &["a_host_is_told_which_namespaces_have_changed"]),
    (0x05, &["firmware_and_effects", "the_effects_log_has_what_makes_a_host_look_for_namespaces"]),
    (
        0x81,
        &[
            "progress_and_completion_are_told",
            "an_overwrite_leaves_its_last_pattern_unless_it_deallocates",
        ],
    ),
];

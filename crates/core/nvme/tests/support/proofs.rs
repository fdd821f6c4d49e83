//! The tests that prove what is supported, by code.

/// Codes with the names of tests.
pub type Proofs = &'static [(u8, &'static [&'static str])];

/// Tests by opcode.
pub const ADMIN: Proofs = &[
    (0x00, &["queues_are_created_used_and_deleted", "deleted_queue_aborts_commands_not_begun"]),
    (0x01, &["queues_are_created_used_and_deleted", "bad_fields_of_the_create_commands"]),
    (0x02, &["offsets_and_lengths"]),
    (0x04, &["queues_are_created_used_and_deleted"]),
    (0x05, &["queues_are_created_used_and_deleted", "bad_fields_of_the_create_commands"]),
    (0x06, &["the_controller", "namespaces", "lists"]),
    (
        0x08,
        &[
            "abort_ends_waiting_commands_at_once_and_others_later",
            "last_media_operation_is_not_aborted",
            "data_that_wait_for_the_link_are_not_sent_after_an_abort",
            "requests_are_limited_and_can_be_aborted",
        ],
    ),
    (0x09, &["set_features_are_read_back_until_reset"]),
    (0x0a, &["every_feature_has_a_default_and_capabilities"]),
    (0x0c, &["events_wait_for_a_request", "requests_are_limited_and_can_be_aborted"]),
    (
        0x0d,
        &[
            "a_namespace_is_created_attached_used_detached_and_deleted",
            "fields_of_a_namespace_to_create_are_checked",
            "capacity_and_nsids_run_out",
            "all_namespaces_can_be_deleted_at_once",
            "identify_reports_protection_capabilities_and_settings",
        ],
    ),
    (
        0x10,
        &[
            "images_go_into_slots_and_become_active_as_asked",
            "invalid_firmware_image_or_slot_is_refused",
            "an_activation_without_reset_is_announced_to_those_who_ask",
        ],
    ),
    (
        0x11,
        &[
            "images_go_into_slots_and_become_active_as_asked",
            "invalid_firmware_image_or_slot_is_refused",
        ],
    ),
    (
        0x14,
        &[
            "a_test_takes_its_time_and_leaves_a_result",
            "commands_abort_tests_and_resets_short_ones",
            "invalid_self_test_codes_are_refused",
            "results_and_an_extended_test_outlive_power",
            "format_delete_and_sanitize_end_a_self_test",
        ],
    ),
    (
        0x15,
        &[
            "a_namespace_is_created_attached_used_detached_and_deleted",
            "invalid_attachments_are_refused",
            "a_private_namespace_has_one_controller",
        ],
    ),
    (0x18, &["a_keep_alive_timer_expires_only_where_the_drive_is_run_so"]),
    (
        0x7c,
        &[
            "doorbell_buffer_config_is_supported_if_configured",
            "registers_are_written_only_to_wake_the_controller",
            "doorbell_rung_while_controller_stops_polling_is_seen",
            "register_write_that_overtakes_shadow_read_is_seen",
            "a_reset_forgets_the_buffers_also_while_they_are_read",
        ],
    ),
    (
        0x80,
        &[
            "blocks_get_another_size_and_read_as_zeroes",
            "all_namespaces_at_once",
            "unsupported_formats_are_refused",
            "format_runs_only_without_other_commands",
            "reset_or_failure_ends_format",
            "contents_keep_their_size_and_the_number_of_blocks_follows",
        ],
    ),
    (0x81, &["other_protocols_and_lengths_are_refused"]),
    (
        0x82,
        &[
            "a_host_finds_that_there_is_one_protocol_and_no_certificate",
            "other_protocols_and_lengths_are_refused",
        ],
    ),
    (
        0x84,
        &[
            "a_block_erase_leaves_zeroes",
            "an_overwrite_leaves_its_last_pattern_unless_it_deallocates",
            "sanitize_continues_after_resets_and_power_cycle",
            "a_failure_without_restriction_can_be_left",
        ],
    ),
];

/// Tests by opcode.
pub const IO: Proofs = &[
    (0x00, &["flush_takes_one_namespace_or_all"]),
    (
        0x01,
        &[
            "read_returns_written_data",
            "ranges_and_sizes_are_checked",
            "the_controller_inserts_and_strips",
            "protection_information_from_host_is_checked_and_kept",
            "blocks_are_compared_and_written",
        ],
    ),
    (
        0x02,
        &[
            "read_returns_written_data",
            "ranges_and_sizes_are_checked",
            "the_controller_inserts_and_strips",
            "blocks_that_have_changed_on_the_media_are_noticed",
        ],
    ),
    (
        0x04,
        &[
            "marked_blocks_cannot_be_read",
            "every_command_that_writes_blocks_makes_them_readable",
            "the_data_come_first_then_the_record_then_the_completion",
            "formats_sanitize_operations_and_deletions_end_marks",
        ],
    ),
    (
        0x05,
        &[
            "compare_tells_equal_data_from_others",
            "compare_works_with_the_smallest_buffer",
            "compare_compares_metadata_too",
            "compare_checks_and_does_not_compare_the_information",
            "blocks_are_compared_and_written",
            "nothing_comes_between_the_comparison_and_the_write",
        ],
    ),
    (
        0x08,
        &[
            "write_zeroes_has_no_transfer_limit",
            "write_zeroes_may_deallocate",
            "write_zeroes_follows_pract",
        ],
    ),
    (0x09, &["deallocate_discards_every_range_or_none", "deallocated_blocks_pass_every_check"]),
    (
        0x0c,
        &["verify_reads_without_a_transfer", "blocks_that_have_changed_on_the_media_are_noticed"],
    ),
    (
        0x0d,
        &[
            "both_hosts_register_acquire_and_release",
            "keys_are_replaced_and_unregistered",
            "invalid_fields_of_reservation_commands",
            "only_persistent_reservations_outlive_power",
            "all_reservations_outlive_the_process",
            "stored_registration_is_not_repeated",
        ],
    ),
    (
        0x0e,
        &[
            "report_has_a_structure_for_each_controller",
            "extended_report_has_identifiers_of_128_bits",
            "registrants_without_controller_are_reported_after_power_on",
        ],
    ),
    (
        0x11,
        &[
            "both_hosts_register_acquire_and_release",
            "commands_conflict_as_in_the_table",
            "preempt_takes_the_reservation_of_the_holder",
            "preempt_removes_registrants_by_key",
            "preempt_and_abort_ends_commands_of_the_preempted_host_first",
            "waiting_commands_see_the_effects_of_earlier_ones",
        ],
    ),
    (0x15, &["both_hosts_register_acquire_and_release", "clear_removes_all_registrations"]),
    (
        0x19,
        &[
            "copy_puts_ranges_one_after_the_other",
            "copy_checks_everything_before_it_copies",
            "copy_says_which_range_failed",
            "copy_checks_strips_and_inserts",
        ],
    ),
];

/// Tests by feature identifier.
pub const FEATURES: Proofs = &[
    (0x01, &["set_features_are_read_back_until_reset", "weights_share_what_urgent_queues_leave"]),
    (0x02, &["set_features_are_read_back_until_reset"]),
    (0x04, &["temperatures_cross_thresholds"]),
    (0x05, &["error_recovery_belongs_to_a_namespace"]),
    (0x06, &["forced_unit_access_and_a_disabled_cache_flush"]),
    (0x07, &["the_number_of_queues_binds"]),
    (0x08, &["coalescing_ends_by_time_or_by_count"]),
    (0x09, &["coalescing_ends_by_time_or_by_count"]),
    (0x0a, &["set_features_are_read_back_until_reset"]),
    (
        0x0b,
        &[
            "temperatures_cross_thresholds",
            "a_host_is_told_which_namespaces_have_changed",
            "notices_of_access_are_masked_by_default",
        ],
    ),
    (0x0e, &["the_timestamp_counts_milliseconds_from_what_a_host_sets"]),
    (0x0f, &["a_keep_alive_timer_expires_only_where_the_drive_is_run_so"]),
    (0x16, &["host_behavior_has_one_bit"]),
    (
        0x81,
        &[
            "reservations_need_a_host_identifier",
            "registrations_stay_with_the_previous_identifier",
            "identifiers_of_64_and_128_bits_exclude_each_other",
            "bound_host_cannot_be_changed",
        ],
    ),
    (0x82, &["masked_notifications_do_not_occur"]),
    (0x83, &["feature_changes_persistence_of_namespaces"]),
    (0x84, &["a_namespace_is_write_protected_until_the_host_says_otherwise"]),
];

/// Tests by log page identifier.
pub const LOG_PAGES: Proofs = &[
    (0x01, &["errors_are_logged_newest_first"]),
    (0x02, &["smart_log_counts_commands_data_and_errors"]),
    (0x03, &["firmware_and_effects"]),
    (0x04, &["a_host_is_told_which_namespaces_have_changed"]),
    (0x05, &["firmware_and_effects", "the_effects_log_has_what_makes_a_host_look_for_namespaces"]),
    (
        0x06,
        &[
            "a_test_takes_its_time_and_leaves_a_result",
            "commands_abort_tests_and_resets_short_ones",
        ],
    ),
    (0x07, &["telemetry_is_a_snapshot_that_a_host_takes"]),
    (0x08, &["telemetry_is_a_snapshot_that_a_host_takes"]),
    (
        0x0c,
        &[
            "access_log_lists_attached_namespaces",
            "change_of_access_is_counted_and_announced",
            "notices_of_access_are_masked_by_default",
            "resets_and_saved_states_keep_access",
        ],
    ),
    (
        0x0d,
        &[
            "the_log_is_read_in_a_context",
            "power_resets_and_another_timestamp_are_events",
            "changes_of_namespaces_are_stored_with_their_events",
            "formats_begin_and_end",
            "sanitize_operations_begin_and_end",
            "firmware_commits_are_events_whether_they_succeed_or_not",
            "features_that_change_are_events",
            "temperatures_that_cross_thresholds_are_events",
            "events_outlive_power_and_the_oldest_go",
        ],
    ),
    (
        0x80,
        &[
            "each_change_notifies_the_other_host",
            "log_pages_are_counted_and_announced",
            "unread_log_pages_are_limited",
            "detached_namespace_causes_no_notification",
        ],
    ),
    (
        0x81,
        &[
            "sanitize_progress_and_completion_are_reported",
            "an_overwrite_leaves_its_last_pattern_unless_it_deallocates",
        ],
    ),
];

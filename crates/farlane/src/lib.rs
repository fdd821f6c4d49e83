//! The farlane program: commands, analyser, reports.

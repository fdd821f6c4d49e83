//! The vocabulary of farlane: units, TLPs, NVMe structures, tunnel frames, vfio-user messages. Views over bytes and validated values; no behaviour.

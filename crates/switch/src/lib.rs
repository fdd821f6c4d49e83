//! The distributed PCIe switch: upstream port, aggregation queue, tunnel, downstream port, in the order data flows.

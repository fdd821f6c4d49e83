//! PCI Express above the data link: configuration space, routing, splitting, tags, ordering, credits, the endpoint and the root complex. Knows no device type.

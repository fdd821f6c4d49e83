//! VFIO_USER_REGION_READ, _REGION_WRITE and _REGION_WRITE_MULTI
//! (specification, sections of those names).

use super::{Malformed, get64, put64};

layout! {
    payload
    /// The fixed part of a region read or write and of their replies; the data
    /// follows in a write and in the reply to a read.
    pub struct RegionAccess: 16, {
        /// Byte offset in the region.
        offset: u64 = 0,
        /// Region index.
        region: u32 = 8,
        /// Number of bytes.
        count: u32 = 12,
    }
}

layout! {
    payload
    /// One write of [`WriteMulti`].
    pub struct SingleWrite: 24, {
        /// Byte offset in the region.
        offset: u64 = 0,
        /// Region index.
        region: u32 = 8,
        /// Number of bytes of `data` that are written, at most 8.
        count: u32 = 12,
        /// The data, padded to 8 bytes.
        data: [u8; 8] = 16,
    }
}

/// The payload of VFIO_USER_REGION_WRITE_MULTI. The reply is the number of writes in 8 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteMulti {
    /// The writes, in order.
    pub writes: Vec<SingleWrite>,
}

impl WriteMulti {
    /// Reads the payload.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 8 bytes, [`Malformed::Count`] if the number of writes does not
    /// match the payload's length, or for a write of more than 8 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let count = get64(bytes, 0)?;
        if ((bytes.len() - 8) / SingleWrite::LENGTH) as u64 != count {
            return Err(Malformed::Count);
        }
        let writes = bytes[8..]
            .chunks_exact(SingleWrite::LENGTH)
            .map(|entry| {
                let write = SingleWrite::decode(entry)?;
                if write.count > 8 { Err(Malformed::Count) } else { Ok(write) }
            })
            .collect::<Result<_, Malformed>>()?;
        Ok(Self { writes })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put64(out, &[self.writes.len() as u64]);
        self.writes.iter().for_each(|write| write.encode(out));
    }
}

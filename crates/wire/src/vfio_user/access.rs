//! VFIO_USER_REGION_READ, _REGION_WRITE and _REGION_WRITE_MULTI
//! (specification, sections of those names).

use super::{Malformed, get32, get64, put32, put64};

/// The fixed part of a region read or write and of their replies; the data
/// follows in a write and in the reply to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionAccess {
    /// Byte offset in the region.
    pub offset: u64,
    /// Region index.
    pub region: u32,
    /// Bytes.
    pub count: u32,
}

impl RegionAccess {
    /// Bytes of the fixed part.
    pub const LENGTH: usize = 16;

    /// Reads the fixed part.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { offset: get64(bytes, 0)?, region: get32(bytes, 8)?, count: get32(bytes, 12)? })
    }

    /// Appends the fixed part.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put64(out, &[self.offset]);
        put32(out, &[self.region, self.count]);
    }
}

/// One write of [`WriteMulti`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleWrite {
    /// Byte offset in the region.
    pub offset: u64,
    /// Region index.
    pub region: u32,
    /// Bytes of `data` that count, at most 8.
    pub count: u32,
    /// The data, padded to 8 bytes.
    pub data: [u8; 8],
}

/// The payload of VFIO_USER_REGION_WRITE_MULTI. The reply is the number of
/// writes in 8 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteMulti {
    /// The writes, in order.
    pub writes: Vec<SingleWrite>,
}

impl WriteMulti {
    /// Bytes of one write.
    pub const ENTRY: usize = 24;

    /// Reads the payload.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 8 bytes, [`Malformed::Count`] for more
    /// writes than bytes or a write of more than 8 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let count = get64(bytes, 0)?;
        if ((bytes.len() - 8) / Self::ENTRY) as u64 != count {
            return Err(Malformed::Count);
        }
        let writes = bytes[8..]
            .chunks_exact(Self::ENTRY)
            .map(|entry| {
                let write = SingleWrite {
                    offset: get64(entry, 0)?,
                    region: get32(entry, 8)?,
                    count: get32(entry, 12)?,
                    data: super::array(entry, 16)?,
                };
                if write.count > 8 { Err(Malformed::Count) } else { Ok(write) }
            })
            .collect::<Result<_, Malformed>>()?;
        Ok(Self { writes })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put64(out, &[self.writes.len() as u64]);
        for write in &self.writes {
            put64(out, &[write.offset]);
            put32(out, &[write.region, write.count]);
            out.extend_from_slice(&write.data);
        }
    }
}

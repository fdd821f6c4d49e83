//! Memory for frames and blocks.

use bytes::BytesMut;

/// Bytes taken from the allocator at once.
const CHUNK: usize = 64 << 10;

/// Takes `length` zeroes off `memory`. A chunk without references is reused.
pub(crate) fn take_memory(memory: &mut BytesMut, length: usize) -> BytesMut {
    if memory.capacity() < length {
        memory.reserve(length.max(CHUNK));
    }
    memory.resize(length, 0);
    memory.split()
}

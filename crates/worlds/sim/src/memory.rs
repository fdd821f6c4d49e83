//! Memory for frames and blocks.

use bytes::BytesMut;

/// Minimum number of bytes to request from the allocator.
const CHUNK: usize = 64 << 10;

/// Splits `length` zero bytes off `memory`. Chunks that are no longer referenced are reused.
pub(crate) fn take_memory(memory: &mut BytesMut, length: usize) -> BytesMut {
    if memory.capacity() < length {
        memory.reserve(length.max(CHUNK));
    }
    memory.resize(length, 0);
    memory.split()
}

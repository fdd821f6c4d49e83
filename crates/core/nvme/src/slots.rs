//! Tables with keys that are never reused, so that a late answer matches no entry.

use slotmap::{Key as _, KeyData, SlotMap};

slotmap::new_key_type! {
    /// The key of a table entry.
    pub(crate) struct Key;
}

/// A table with keys that are never reused. The owner limits the number of entries.
pub(crate) type Slots<T> = SlotMap<Key, T>;

impl Key {
    /// The key as a number, for identifiers outside of the controller.
    pub(crate) fn as_u64(self) -> u64 {
        self.data().as_ffi()
    }

    /// The key with this number. An unknown number gives a key that matches no entry.
    pub(crate) fn from_u64(number: u64) -> Self {
        KeyData::from_ffi(number).into()
    }
}

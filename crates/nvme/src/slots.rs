//! Tables whose keys are never valid twice, so that an answer to something
//! forgotten finds nothing.

use slotmap::{Key as _, KeyData, SlotMap};

slotmap::new_key_type! {
    /// Names an entry of a table.
    pub(crate) struct Key;
}

/// See the module. The owner bounds how many entries there are.
pub(crate) type Slots<T> = SlotMap<Key, T>;

impl Key {
    /// As a number, for what leaves the controller.
    pub fn as_u64(self) -> u64 {
        self.data().as_ffi()
    }

    /// From a number that came back. A number never given out finds nothing.
    pub fn from_u64(number: u64) -> Self {
        KeyData::from_ffi(number).into()
    }
}

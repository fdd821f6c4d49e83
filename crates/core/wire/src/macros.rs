//! Macros for structures and enums that name the position of each field once and derive the codecs.

/// An enum with names of its variants, and with `ALL`, `name` and `Display`.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(= $number:literal)? $text:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant $(= $number)?,)* }

        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// The name of the variant.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// An enum with a number for each variant, and with `ALL` and `from_number`. A text after each
/// number adds `name` and `Display`. With a last variant after `else`, which holds all other
/// numbers, the enum has only `from_bits` and `bits`; the mask after the enum's name selects the
/// bits.
macro_rules! numbers {
    (@from_number $name:ident: $int:ty, $($variant:ident = $number:literal,)*) => {
        impl $name {
            /// The variant with this number; `None` if it is undefined.
            pub const fn from_number(number: $int) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
    ($(#[$meta:meta])* pub enum $name:ident: $int:ty {
        $($(#[$doc:meta])* $variant:ident = $number:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($int)]
        pub enum $name { $($(#[$doc])* $variant = $number,)* }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];
        }

        numbers!(@from_number $name: $int, $($variant = $number,)*);

        impl From<$name> for u64 {
            fn from(value: $name) -> Self {
                value as Self
            }
        }
    };
    ($(#[$meta:meta])* pub enum $name:ident: $int:ty {
        $($(#[$doc:meta])* $variant:ident = $number:literal $text:literal,)*
    }) => {
        $crate::named! {
            $(#[$meta])*
            #[repr($int)]
            pub enum $name { $($(#[$doc])* $variant = $number $text,)* }
        }

        numbers!(@from_number $name: $int, $($variant = $number,)*);
    };
    ($(#[$meta:meta])* pub enum $name:ident: $mask:literal {
        $($(#[$doc:meta])* $variant:ident = $number:literal,)*
    } else {
        $(#[$other_doc:meta])* $other:ident
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            $(#[$other_doc])* $other(u8),
        }

        impl $name {
            /// The variant of these bits.
            pub const fn from_bits(bits: u8) -> Self {
                match bits & $mask {
                    $($number => Self::$variant,)*
                    other => Self::$other(other),
                }
            }

            /// The bits of the variant.
            pub const fn bits(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)*
                    Self::$other(bits) => bits & $mask,
                }
            }
        }

        impl $crate::macros::Bits for $name {
            fn from_field(bits: u64) -> Self {
                Self::from_bits(bits as u8)
            }
        }

        impl From<$name> for u64 {
            fn from(value: $name) -> Self {
                value.bits().into()
            }
        }
    };
}

/// A value of a fixed length within the bytes of a structure, little endian. Fields that share a
/// byte must be written over zeroes.
pub(crate) trait Field: Copy {
    /// Number of bytes.
    const SIZE: usize;

    /// The value at byte `at` of a structure. Panics if `bytes` is too short.
    fn get(bytes: &[u8], at: usize) -> Self;

    /// Writes the value at byte `at`.
    fn put(self, bytes: &mut [u8], at: usize);
}

macro_rules! integers {
    ($($int:ty)*) => {
        $(impl Field for $int {
            const SIZE: usize = size_of::<Self>();

            fn get(bytes: &[u8], at: usize) -> Self {
                let bytes = bytes[at..].first_chunk().expect("a structure that is long enough");
                Self::from_le_bytes(*bytes)
            }

            fn put(self, bytes: &mut [u8], at: usize) {
                bytes[at..at + Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }
        })*
    };
}
integers!(u8 u16 u32 u64 u128);

/// Bit 0.
impl Field for bool {
    const SIZE: usize = 1;

    fn get(bytes: &[u8], at: usize) -> Self {
        bytes[at] & 1 != 0
    }

    fn put(self, bytes: &mut [u8], at: usize) {
        bytes[at] |= u8::from(self);
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    const SIZE: usize = N * T::SIZE;

    fn get(bytes: &[u8], at: usize) -> Self {
        std::array::from_fn(|index| T::get(bytes, at + index * T::SIZE))
    }

    fn put(self, bytes: &mut [u8], at: usize) {
        (at..).step_by(T::SIZE).zip(self).for_each(|(at, value)| value.put(bytes, at));
    }
}

/// A structure of `Field`s. Each field has a byte offset; a part of a byte also has its lowest bit
/// and its number of bits. The structure is itself a `Field`. The words `decode encode` in front
/// add methods for exactly `LENGTH` bytes. The word `payload` adds a `decode` that reads the front
/// of a slice, and an `encode` that appends to a vector.
macro_rules! layout {
    (decode encode $(#[$meta:meta])* pub struct $name:ident: $length:expr, $fields:tt) => {
        layout! { $(#[$meta])* pub struct $name: $length, $fields }

        impl $name {
            /// Length in bytes.
            pub const LENGTH: usize = $length;

            /// Decodes the bytes. Reserved fields are dropped.
            pub fn decode(bytes: &[u8; $length]) -> Self {
                $crate::macros::Field::get(bytes, 0)
            }

            /// Encodes the structure.
            pub fn encode(&self) -> [u8; $length] {
                let mut bytes = [0; $length];
                $crate::macros::Field::put(*self, &mut bytes, 0);
                bytes
            }
        }
    };
    (payload $(#[$meta:meta])* pub struct $name:ident: $length:literal, $fields:tt) => {
        layout! { $(#[$meta])* pub struct $name: $length, $fields }

        impl $name {
            /// Length in bytes of the fixed part.
            pub const LENGTH: usize = $length;

            /// Reads the fixed part.
            ///
            /// # Errors
            /// [`Malformed::Short`] if there are fewer bytes.
            pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
                let bytes = bytes.get(..$length).ok_or(Malformed::Short)?;
                Ok($crate::macros::Field::get(bytes, 0))
            }

            /// Appends the fixed part.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let start = out.len();
                out.resize(start + $length, 0);
                $crate::macros::Field::put(*self, out, start);
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident: $length:expr, {
        $($(#[$doc:meta])* $field:ident: $type:ty = $at:literal $([$low:literal, $bits:literal])?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl $crate::macros::Field for $name {
            const SIZE: usize = $length;

            fn get(bytes: &[u8], at: usize) -> Self {
                Self { $($field: layout!(@get $type, bytes, at + $at $(, $low, $bits)?),)* }
            }

            fn put(self, bytes: &mut [u8], at: usize) {
                $(layout!(@put self.$field, bytes, at + $at $(, $low, $bits)?);)*
            }
        }
    };
    (@get $type:ty, $bytes:ident, $at:expr) => {
        <$type as $crate::macros::Field>::get($bytes, $at)
    };
    (@get $type:ty, $bytes:ident, $at:expr, $low:literal, $bits:literal) => {
        $bytes[$at] >> $low & ((1 << $bits) - 1)
    };
    (@put $value:expr, $bytes:ident, $at:expr) => {
        $crate::macros::Field::put($value, $bytes, $at)
    };
    (@put $value:expr, $bytes:ident, $at:expr, $low:literal, $bits:literal) => {
        $bytes[$at] |= ($value & ((1 << $bits) - 1)) << $low
    };
}

/// The value of a few bits of a [`register!`].
pub(crate) trait Bits: Copy + Into<u64> {
    /// The value of `bits`, of which the field's lowest bit is bit 0.
    fn from_field(bits: u64) -> Self;
}

impl Bits for bool {
    fn from_field(bits: u64) -> Self {
        bits != 0
    }
}

impl Bits for u8 {
    fn from_field(bits: u64) -> Self {
        bits as Self
    }
}

impl Bits for u64 {
    fn from_field(bits: u64) -> Self {
        bits
    }
}

impl Bits for u16 {
    fn from_field(bits: u64) -> Self {
        bits as Self
    }
}

/// A register of fields. Each field has its lowest bit and its number of bits.
macro_rules! register {
    ($(#[$meta:meta])* pub struct $name:ident: $int:ty, {
        $($(#[$doc:meta])* $field:ident: $type:ty = [$low:literal, $bits:literal],)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self::from_bits(0)
            }
        }

        impl $name {
            /// Decodes the register.
            pub fn from_bits(bits: $int) -> Self {
                let part = |low: u32, width: u32| u64::from(bits) >> low & ((1 << width) - 1);
                Self { $($field: $crate::macros::Bits::from_field(part($low, $bits)),)* }
            }

            /// Encodes the register.
            pub fn bits(self) -> $int {
                let part = |value: u64, low: u32, width: u32| (value & ((1 << width) - 1)) << low;
                [$(part(self.$field.into(), $low, $bits),)*].into_iter().sum::<u64>() as $int
            }
        }
    };
}

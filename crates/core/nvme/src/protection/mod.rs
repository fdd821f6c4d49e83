//! End-to-end data protection (NVMe 1.4, section 8.3): eight bytes of metadata protect the data and
//! the address of a block.

mod crc;

use crate::failure::Failure;
use crc::crc;
use wire::nvme::{
    ProtectionControl, ProtectionInformation, ProtectionTags, ProtectionType, StatusCode,
};

/// A command's settings for the protection information of consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protection {
    kind: ProtectionType,
    control: ProtectionControl,
    tags: ProtectionTags,
    slba: u64,
}

impl Protection {
    /// The settings for the blocks from `slba` on.
    ///
    /// # Errors
    /// Invalid Protection Information: with type 1 the reference tag is checked but is not the low
    /// 32 bits of `slba`, or with type 3 the reference tag is checked (section 8.3.1.5).
    pub(crate) fn new(
        kind: ProtectionType,
        control: ProtectionControl,
        tags: ProtectionTags,
        slba: u64,
    ) -> Result<Self, StatusCode> {
        let fits = match kind {
            ProtectionType::Type1 => tags.reference == slba as u32,
            ProtectionType::Type2 => true,
            ProtectionType::Type3 => false,
        };
        if control.reference && !fits {
            return Err(StatusCode::INVALID_PROTECTION_INFORMATION);
        }
        Ok(Self { kind, control, tags, slba })
    }

    /// PRACT: whether the controller inserts or strips the protection information.
    pub(crate) fn acts(&self) -> bool {
        self.control.action
    }

    /// PRCHK: whether any field is checked.
    pub(crate) fn checks(&self) -> bool {
        let ProtectionControl { reference, application, guard, .. } = self.control;
        reference || application || guard
    }

    /// The settings for the blocks that begin `blocks` blocks later.
    pub(crate) fn after(self, blocks: u64) -> Self {
        let reference = match self.kind {
            ProtectionType::Type3 => self.tags.reference,
            _ => self.tags.reference.wrapping_add(blocks as u32),
        };
        Self {
            tags: ProtectionTags { reference, ..self.tags },
            slba: self.slba.wrapping_add(blocks),
            ..self
        }
    }

    /// Checks the protection information of blocks of `block` bytes according to PRCHK (section
    /// 8.3.1.5).
    ///
    /// # Errors
    /// The first check that fails, with the LBA of the block.
    pub(crate) fn check(
        &self,
        block: usize,
        data: &[u8],
        information: &[u8],
    ) -> Result<(), Failure> {
        if !self.checks() {
            return Ok(());
        }
        let information = information.as_chunks::<{ ProtectionInformation::LENGTH }>().0;
        for ((data, information), number) in data.chunks_exact(block).zip(information).zip(0..) {
            let expected = self.after(number);
            let information = ProtectionInformation::decode(information);
            expected
                .check_block(data, information)
                .map_err(|code| Failure::permanent(code).at_lba(expected.slba))?;
        }
        Ok(())
    }

    fn check_block(&self, data: &[u8], found: ProtectionInformation) -> Result<(), StatusCode> {
        let escapes = found.application == u16::MAX
            && (self.kind != ProtectionType::Type3 || found.reference == u32::MAX);
        if escapes {
            return Ok(());
        }
        if self.control.guard && found.guard != crc(data) {
            return Err(StatusCode::GUARD_CHECK_ERROR);
        }
        let differs = (found.application ^ self.tags.application) & self.tags.mask;
        if self.control.application && differs != 0 {
            return Err(StatusCode::APPLICATION_TAG_CHECK_ERROR);
        }
        if self.control.reference && found.reference != self.tags.reference {
            return Err(StatusCode::REFERENCE_TAG_CHECK_ERROR);
        }
        Ok(())
    }

    /// The protection information of the blocks in `data`, which have `block` bytes each.
    pub(crate) fn insert(&self, block: usize, data: &[u8]) -> Vec<u8> {
        self.with_guards(data.chunks_exact(block).map(crc))
    }

    /// The protection information of `blocks` zeroed blocks, whose CRC is 0.
    pub(crate) fn insert_zeroes(&self, blocks: u64) -> Vec<u8> {
        self.with_guards((0..blocks).map(|_| 0))
    }

    fn with_guards(&self, guards: impl Iterator<Item = u16>) -> Vec<u8> {
        let information = |(guard, number)| {
            let ProtectionTags { application, reference, .. } = self.after(number).tags;
            ProtectionInformation { guard, application, reference }.encode()
        };
        guards.zip(0..).flat_map(information).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ProtectionControl =
        ProtectionControl { reference: true, application: true, guard: true, action: false };
    const TAGS: ProtectionTags =
        ProtectionTags { application: 0x1234, mask: 0xffff, reference: 0xffff_ffff };

    fn type2(control: ProtectionControl, tags: ProtectionTags) -> Protection {
        Protection::new(ProtectionType::Type2, control, tags, 7).unwrap()
    }

    #[test]
    fn inserted_protection_information_passes_checks() {
        let data: Vec<u8> = (0..4 * 512).map(|at| ((at * 7) >> 3) as u8).collect();
        let protection = type2(ALL, TAGS);
        let information = protection.insert(512, &data);
        assert_eq!(protection.check(512, &data, &information), Ok(()));
        // The reference tag wraps after its largest value.
        assert_eq!(information[8..16][2..], [0x12, 0x34, 0, 0, 0, 0]);
        assert_eq!(protection.insert(512, &[0; 2048]), protection.insert_zeroes(4));
    }

    #[test]
    fn first_protection_fault_is_reported_with_its_block() {
        use StatusCode as Code;
        let data = [7; 1024];
        let good = type2(ALL, TAGS).insert(512, &data);
        let failure = |at: usize, control| {
            let mut bad = good.clone();
            bad[8 + at] ^= 1;
            let failed = type2(control, TAGS).check(512, &data, &bad).err();
            failed.map(|failure| (failure.status.code, failure.lba))
        };
        let (guard, application, reference) = (
            ProtectionControl { guard: true, ..Default::default() },
            ProtectionControl { application: true, ..Default::default() },
            ProtectionControl { reference: true, ..Default::default() },
        );
        for control in [ALL, guard] {
            assert_eq!(failure(1, control), Some((Code::GUARD_CHECK_ERROR, Some(8))));
        }
        for control in [ALL, application] {
            assert_eq!(failure(3, control), Some((Code::APPLICATION_TAG_CHECK_ERROR, Some(8))));
        }
        for control in [ALL, reference] {
            assert_eq!(failure(7, control), Some((Code::REFERENCE_TAG_CHECK_ERROR, Some(8))));
        }
        assert_eq!(failure(7, guard), None);
        assert_eq!(failure(1, reference), None);
        // Only the bits in the mask are checked.
        let tags = ProtectionTags { application: 0x1235, mask: 0xfffe, ..TAGS };
        assert_eq!(type2(ALL, tags).check(512, &data, &good), Ok(()));
    }

    #[test]
    fn tags_of_all_ones_disable_the_checks() {
        let (data, ones, holed) = ([7; 512], [0xff; 8], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        let control = ProtectionControl { reference: false, ..ALL };
        for kind in ProtectionType::ALL {
            let protection = Protection::new(kind, control, TAGS, 7).unwrap();
            assert_eq!(protection.check(512, &data, &ones), Ok(()));
            let escapes = protection.check(512, &data, &holed).is_ok();
            assert_eq!(escapes, kind != ProtectionType::Type3);
        }
    }

    #[test]
    fn reference_tags_that_do_not_fit_are_refused() {
        let tags = |reference| ProtectionTags { reference, ..TAGS };
        let slba = 0x1_0000_0007;
        let new = |kind, control, tags| Protection::new(kind, control, tags, slba).is_ok();
        assert!(new(ProtectionType::Type1, ALL, tags(7)));
        assert!(!new(ProtectionType::Type1, ALL, tags(8)));
        assert!(!new(ProtectionType::Type3, ALL, tags(7)));
        let unchecked = ProtectionControl { reference: false, ..ALL };
        assert!(new(ProtectionType::Type1, unchecked, tags(8)));
        assert!(new(ProtectionType::Type3, unchecked, tags(8)));
        // With type 3 the tag does not change.
        let third = Protection::new(ProtectionType::Type3, unchecked, tags(9), slba).unwrap();
        assert_eq!(third.insert_zeroes(2)[12..], [0, 0, 0, 9]);
    }
}

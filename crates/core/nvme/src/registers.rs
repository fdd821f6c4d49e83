//! The register file in the first 4 KiB of BAR 0 (NVMe 1.4, section 3.1).

use wire::nvme::register::{
    ACQ, AQA, ASQ, AdminQueueAttributes, CAP, CC, CSTS, Capabilities, Configuration,
    ControllerStatus, INTMC, INTMS, VERSION_1_4, VS,
};

/// The stored registers. The interrupt masks are stored with the interrupts.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    pub capabilities: Capabilities,
    pub configuration: Configuration,
    pub status: ControllerStatus,
    pub admin_queues: AdminQueueAttributes,
    /// ASQ; bits 11:0 read as zero.
    pub admin_sq: u64,
    /// ACQ; bits 11:0 read as zero.
    pub admin_cq: u64,
}

impl Registers {
    /// The registers after a reset.
    pub(crate) fn new(capabilities: Capabilities) -> Self {
        Self { capabilities, ..Self::default() }
    }

    /// Copies the registers from byte `offset` on to `out`. Reserved registers and doorbells read
    /// as zero.
    pub(crate) fn read(&self, offset: u64, interrupt_mask: u32, out: &mut [u8]) {
        out.fill(0);
        let image = self.image(interrupt_mask);
        if let Some(from) = usize::try_from(offset).ok().filter(|from| *from < image.len()) {
            let length = out.len().min(image.len() - from);
            out[..length].copy_from_slice(&image[from..from + length]);
        }
    }

    fn image(&self, interrupt_mask: u32) -> [u8; 0x38] {
        let mut image = [0; 0x38];
        let mut put = |offset: u64, bytes: &[u8]| {
            image[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        };
        put(CAP, &self.capabilities.bits().to_le_bytes());
        put(VS, &VERSION_1_4.to_le_bytes());
        put(INTMS, &interrupt_mask.to_le_bytes());
        put(INTMC, &interrupt_mask.to_le_bytes());
        put(CC, &self.configuration.bits().to_le_bytes());
        put(CSTS, &self.status.bits().to_le_bytes());
        put(AQA, &self.admin_queues.bits().to_le_bytes());
        put(ASQ, &self.admin_sq.to_le_bytes());
        put(ACQ, &self.admin_cq.to_le_bytes());
        image
    }

    /// Writes one double word of AQA, ASQ or ACQ; ignores other registers.
    pub(crate) fn write_admin(&mut self, offset: u64, value: u32) {
        const PAGE: u64 = !0xfff;
        let low = |old: u64| (old & !0xffff_ffff | u64::from(value)) & PAGE;
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        match offset {
            AQA => self.admin_queues = AdminQueueAttributes::from_bits(value),
            ASQ => self.admin_sq = low(self.admin_sq),
            0x2c => self.admin_sq = high(self.admin_sq),
            ACQ => self.admin_cq = low(self.admin_cq),
            0x34 => self.admin_cq = high(self.admin_cq),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_read_back_in_pieces() {
        let capabilities = Capabilities { max_queue_entries: 4095, ..Capabilities::default() };
        let mut registers = Registers::new(capabilities);
        registers.write_admin(ASQ, 0x1234_5fff);
        registers.write_admin(ASQ + 4, 0x9);
        let mut out = [0xff; 8];
        registers.read(ASQ, 0, &mut out);
        assert_eq!(u64::from_le_bytes(out), 0x9_1234_5000);
        registers.read(CAP, 0, &mut out[..2]);
        assert_eq!(out[..2], [0xff, 0x0f]);
        registers.read(INTMC, 7, &mut out);
        assert_eq!(out[..4], [7, 0, 0, 0]);
        registers.read(0x34, 0, &mut out);
        assert_eq!(out, [0; 8]);
        registers.read(0x1000, 0, &mut out);
        assert_eq!(out, [0; 8]);
    }
}

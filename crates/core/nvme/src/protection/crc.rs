//! The guard of protection information: CRC-16 with the polynomial 8BB7h and the initial value 0,
//! neither reflected nor inverted (NVMe 1.4, section 8.3.1.1, which refers to SBC-3 of T10).

/// x^16 + x^15 + x^11 + x^9 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1.
const POLYNOMIAL: u16 = 0x8bb7;
/// Bytes per step.
const STEP: usize = 16;
/// Table `index` has the remainder of each byte that is followed by `index` zero bytes.
static TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder & 0x8000 != 0;
            remainder = if carry { remainder << 1 ^ POLYNOMIAL } else { remainder << 1 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut index = 1;
    while index < STEP {
        let mut byte = 0;
        while byte < 256 {
            let last = tables[index - 1][byte];
            tables[index][byte] = last << 8 ^ tables[0][(last >> 8) as usize];
            byte += 1;
        }
        index += 1;
    }
    tables
}

/// The CRC of a block.
pub(crate) fn crc(bytes: &[u8]) -> u16 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let remainder = steps.iter().fold(0, |remainder: u16, step| {
        let [high, low] = remainder.to_be_bytes();
        let first = TABLES[STEP - 1][usize::from(step[0] ^ high)];
        let second = TABLES[STEP - 2][usize::from(step[1] ^ low)];
        let others = step[2..].iter().zip(TABLES.iter().rev().skip(2));
        others.fold(first ^ second, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    rest.iter().fold(remainder, |remainder, byte| {
        remainder << 8 ^ TABLES[0][usize::from((remainder >> 8) as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_values() {
        // The check value of CRC-16/T10-DIF in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc(b"123456789"), 0xd0db);
        // SBC-3, "CRC test cases".
        let counting: Vec<u8> = (0..0x20).collect();
        let falling: Vec<u8> = (0xe0..=0xff).rev().collect();
        let begun = [&[0xff; 2][..], &[0; 30]].concat();
        assert_eq!(crc(&[0; 32]), 0);
        assert_eq!(crc(&[0xff; 32]), 0xa293);
        assert_eq!(crc(&counting), 0x0224);
        assert_eq!(crc(&begun), 0x21b8);
        assert_eq!(crc(&falling), 0xa0b7);
    }

    proptest! {
        #[test]
        fn crc_matches_bitwise_computation(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut remainder = 0u16;
            for byte in &bytes {
                remainder ^= u16::from(*byte) << 8;
                for _ in 0..8 {
                    let carry = remainder & 0x8000 != 0;
                    remainder = remainder << 1 ^ if carry { POLYNOMIAL } else { 0 };
                }
            }
            prop_assert_eq!(crc(&bytes), remainder);
        }
    }
}

/// The kernel's hash of Bob Jenkins, as nftables' `jhash` computes it: who knows the seed knows which connection has which mark.
///
/// # Source
/// `jhash()` of include/linux/jhash.h, which is `hashlittle()` of lookup3.c.
pub(crate) fn jhash(key: &[u8], seed: u32) -> u32 {
    let words: Vec<u32> = key.chunks(4).map(word).collect();
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = words.as_slice();
    while rest.len() > 3 {
        (a, b, c) = (a.wrapping_add(rest[0]), b.wrapping_add(rest[1]), c.wrapping_add(rest[2]));
        for turns in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turns[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turns[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turns[2]);
            b = b.wrapping_add(a);
        }
        rest = &rest[3..];
    }
    if rest.is_empty() {
        return c;
    }
    let at = |i: usize| rest.get(i).copied().unwrap_or(0);
    (a, b, c) = (a.wrapping_add(at(0)), b.wrapping_add(at(1)), c.wrapping_add(at(2)));
    let step = |x: u32, y: u32, turn: u32| (x ^ y).wrapping_sub(y.rotate_left(turn));
    for turns in [[14, 11, 25], [16, 4, 14]] {
        c = step(c, b, turns[0]);
        a = step(a, c, turns[1]);
        b = step(b, a, turns[2]);
    }
    step(c, b, 24)
}

/// In this machine's order, as the kernel takes it; what is missing of the last word counts as zeros.
fn word(bytes: &[u8]) -> u32 {
    let mut four = [0; 4];
    four[..bytes.len()].copy_from_slice(bytes);
    u32::from_ne_bytes(four)
}

#[cfg(test)]
mod tests {
    use super::jhash;

    #[test]
    fn the_values_that_the_hashs_author_published() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        let text = b"Four score and seven years ago";
        assert_eq!((jhash(text, 0), jhash(text, 1)), (0x1777_0551, 0xcd62_8161));
    }
}

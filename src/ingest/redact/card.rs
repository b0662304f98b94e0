//! Card numbers in text: a brand's prefix, that brand's length, Luhn. All three, because one in ten numbers passes Luhn
//! and epochs, order numbers and ids must stay readable. No other kind of secret is known here.

use std::ops::Range;

/// Groups in which cards are printed.
const GROUPINGS: [&[usize]; 4] = [&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 4, 3]];

/// Whether these bytes are just the digits of a card number.
pub fn is_card(digits: &[u8]) -> bool {
    (13..=19).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && has_brand(digits)
        && passes_luhn(digits.iter())
}

fn has_brand(digits: &[u8]) -> bool {
    let prefix = |n: usize| digits[..n].iter().fold(0_u32, |sum, b| sum * 10 + u32::from(b - b'0'));
    let length = digits.len();
    match (prefix(1), prefix(2), prefix(3), prefix(4)) {
        (4, ..) => matches!(length, 13 | 16 | 19),
        (_, 51..=55, ..) | (.., 2221..=2720) => length == 16,
        (_, 34 | 37, ..) => length == 15,
        (_, 36 | 38 | 39, ..) | (_, _, 300..=305, _) => (14..=19).contains(&length),
        (.., 3528..=3589) => (16..=19).contains(&length),
        // Discover, UnionPay, RuPay, Maestro.
        (_, 50 | 56..=58 | 60..=69 | 81 | 82, ..) => (16..=19).contains(&length),
        _ => false,
    }
}

fn passes_luhn<'a>(digits: impl DoubleEndedIterator<Item = &'a u8>) -> bool {
    let sum: u32 = digits
        .rev()
        .enumerate()
        .map(|(n, b)| {
            let digit = u32::from(b - b'0');
            match n % 2 {
                0 => digit,
                _ if digit > 4 => digit * 2 - 9,
                _ => digit * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Adds the spans of card numbers: 13 to 19 digits in one run, or in the groups that cards are printed in, parted by
/// single spaces, dashes, dots or plus signs.
pub fn find(text: &[u8], spans: &mut Vec<Range<usize>>) {
    let groups = digit_groups(text);
    let mut n = 0;
    while n < groups.len() {
        match card_at(text, &groups[n..]) {
            Some(count) => {
                spans.push(groups[n].start..groups[n + count - 1].end);
                n += count;
            }
            None => n += 1,
        }
    }
}

/// Runs of digits.
fn digit_groups(text: &[u8]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        if byte.is_ascii_digit() {
            match groups.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => groups.push(at..at + 1),
            }
        }
    }
    groups
}

/// How many of the first groups make up a card number.
fn card_at(text: &[u8], groups: &[Range<usize>]) -> Option<usize> {
    let first = groups.first()?;
    if is_card(&text[first.clone()]) && !is_in_hex_word(text, first) {
        return Some(1);
    }
    let fits = |grouping: &&&[usize]| {
        let Some(chosen) = groups.get(..grouping.len()) else { return false };
        let is_printed = chosen.iter().map(Range::len).eq(grouping.iter().copied())
            && chosen.windows(2).all(|pair| parted_alike(text, &chosen[0], pair));
        is_printed && is_card(&chosen.iter().flat_map(|g| text[g.clone()].iter().copied()).collect::<Vec<u8>>())
    };
    GROUPINGS.iter().rev().find(fits).map(|grouping| grouping.len())
}

fn parted_alike(text: &[u8], first: &Range<usize>, pair: &[Range<usize>]) -> bool {
    let sign = text[first.end];
    pair[1].start == pair[0].end + 1 && text[pair[0].end] == sign && matches!(sign, b' ' | b'-' | b'.' | b'+')
}

/// Whether a run of digits is a part of a word of hex digits with letters in it: a hash, not a card.
fn is_in_hex_word(text: &[u8], run: &Range<usize>) -> bool {
    // A hash is no longer than 128 digits.
    let before = text[..run.start].iter().rev().take(128).take_while(|b| b.is_ascii_alphanumeric());
    let after = text[run.end..].iter().take(128).take_while(|b| b.is_ascii_alphanumeric());
    let mut word = before.chain(after).peekable();
    word.peek().is_some() && word.all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut spans = Vec::new();
        find(text.as_bytes(), &mut spans);
        spans.into_iter().map(|s| &text[s]).collect()
    }

    #[test]
    fn every_brand_is_found_however_it_is_printed() {
        for card in [
            "4111111111111111",
            "4222222222222",
            "5555555555554444",
            "2223003122003222",
            "378282246310005",
            "6011111111111117",
            "3530111333300000",
            "30569309025904",
            "6200000000000005",
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "3782 822463 10005",
            "3056 930902 5904",
        ] {
            assert_eq!(found(&format!("order 7 card {card}, declined")), [card]);
            assert_eq!(found(&format!("card{card}x")), [card]);
        }
    }

    #[test]
    fn epochs_orders_hashes_and_wrong_check_digits_stay() {
        for text in [
            "4111111111111112",
            "1796112000000",
            "1796112000000000000",
            "0000000000000000",
            "a4111111111111111b",
            "411111111111111100000",
            "4111 1111 11111111",
            "4111 1111-1111 1111",
            "2026-11-30 08:00:00 1041 99",
        ] {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
    }
}

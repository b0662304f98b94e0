//! Short keys for long names: sixteen bytes that stand for an id, an item or a cause. Pure.

/// Sixteen bytes that stand for an id or another long key.
pub type Key = [u8; 16];

/// The key of an id: a UUID in its usual form is its own sixteen bytes, which keeps time-ordered ids in order; anything else is hashed.
pub fn key_of(text: &str) -> Key {
    uuid_bytes(text).unwrap_or_else(|| hash_key(&[text]))
}

/// Key of several parts, none of which can run into the next.
pub fn hash_key(parts: &[&str]) -> Key {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finish().as_ref()[..16]);
    key
}

/// The bytes of a lower-case UUID with hyphens.
fn uuid_bytes(text: &str) -> Option<Key> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut key = [0; 16];
    let mut digits = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let hyphen = matches!(at, 8 | 13 | 18 | 23);
        let digit = match byte {
            b'-' if hyphen => continue,
            b'0'..=b'9' if !hyphen => byte - b'0',
            b'a'..=b'f' if !hyphen => byte - b'a' + 10,
            _ => return None,
        };
        key[digits / 2] = (key[digits / 2] << 4) | digit;
        digits += 1;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_its_own_key_and_anything_else_is_hashed() {
        let id = "0c8f9a52-6a0e-4b0b-9a43-6f2f1b0f7d11";
        assert_eq!(key_of(id)[..4], [0x0c, 0x8f, 0x9a, 0x52]);
        assert_ne!(key_of(&id.to_uppercase()), key_of(id));
        assert_ne!(key_of("a"), key_of("b"));
        assert_ne!(hash_key(&["ab", "c"]), hash_key(&["a", "bc"]));
    }
}

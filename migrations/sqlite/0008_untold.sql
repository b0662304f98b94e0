-- Since when config no longer names a (digest, receiver) and nobody has taken its place; the operator was told then.
ALTER TABLE digest_cover ADD COLUMN left_at INTEGER;

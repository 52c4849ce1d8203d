//! Secrets of accounts: 256 random bits, kept as argon2id (RFC 9106) makes them.

use crate::protocol::Secret;
use crate::store::HashedSecret;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What hashing takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
}

impl Default for Cost {
    /// The least memory of the settings that OWASP's password storage cheat sheet calls equally strong (7 MiB, 5 passes, 1
    /// lane): the server is to run in 64 MiB. A stolen index is of no use even with less: secrets are random.
    fn default() -> Self {
        Self { memory_kib: 7168, passes: 5 }
    }
}

/// No randomness to be had.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// Hashes secrets, one at a time: whatever many connections ask, memory is taken once.
pub struct Hasher {
    cost: Cost,
    /// What an unknown account is compared with, so that it takes as long as a known one.
    nobody: HashedSecret,
    /// What hashing works in. Allocated once: freed by one thread after another it would stay with each of them.
    memory: Mutex<Vec<Block>>,
}

impl Hasher {
    /// # Errors
    /// [`NoRandomness`].
    pub fn new(cost: Cost) -> Result<Self, NoRandomness> {
        let nobody = HashedSecret {
            memory_kib: cost.memory_kib,
            passes: cost.passes,
            salt: random::<16>()?,
            hash: random::<32>()?,
        };
        Ok(Self { cost, nobody, memory: Mutex::default() })
    }

    /// A new secret, and how it is kept.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn make(&self) -> Result<(Secret, HashedSecret), NoRandomness> {
        let secret = Secret(random::<32>()?.iter().map(|byte| format!("{byte:02x}")).collect());
        let salt = random::<16>()?;
        let Cost { memory_kib, passes } = self.cost;
        let hash = hash(&mut self.memory(), &secret, memory_kib, passes, &salt);
        Ok((secret, HashedSecret { memory_kib, passes, salt, hash: hash.unwrap_or_default() }))
    }

    /// Whether it is the secret of an account, which may not be there: that takes as long, and is never so. Nor is it while
    /// nobody waits for the answer any more: that is asked when its turn has come.
    pub fn is(&self, secret: &Secret, kept: Option<&HashedSecret>, is_awaited: impl FnOnce() -> bool) -> bool {
        let against = kept.unwrap_or(&self.nobody);
        let mut memory = self.memory();
        if !is_awaited() {
            return false;
        }
        let Some(hash) = hash(&mut memory, secret, against.memory_kib, against.passes, &against.salt) else {
            return false;
        };
        let differs = hash.iter().zip(against.hash).fold(0, |differs, (a, b)| differs | (a ^ b));
        kept.is_some() && std::hint::black_box(differs) == 0
    }

    fn memory(&self) -> MutexGuard<'_, Vec<Block>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(memory: &mut Vec<Block>, secret: &Secret, memory_kib: u32, passes: u32, salt: &[u8]) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let params = Params::new(memory_kib, passes, 1, Some(hash.len())).ok()?;
    memory.resize(params.block_count(), Block::default());
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into_with_memory(secret.0.as_bytes(), salt, &mut hash, memory).ok()?;
    Some(hash)
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_again_and_no_other_is() {
        let hasher = Hasher::new(Cost { memory_kib: 64, passes: 1 }).unwrap();
        let (secret, kept) = hasher.make().unwrap();
        let (other, other_kept) = hasher.make().unwrap();
        assert_eq!(secret.0.len(), 64);
        let is = |secret: &Secret, kept| hasher.is(secret, kept, || true);
        assert!(is(&secret, Some(&kept)) && is(&other, Some(&other_kept)));
        assert!(!is(&other, Some(&kept)) && !is(&secret, None));
        assert!(!is(&Secret(String::new()), Some(&kept)));
        assert!(!hasher.is(&secret, Some(&kept), || false), "nobody waits for it");
        assert!(!format!("{kept:?}").contains("salt"));
    }

    #[test]
    fn a_secret_made_at_another_cost_is_known_still() {
        let (secret, kept) = Hasher::new(Cost { memory_kib: 64, passes: 1 }).unwrap().make().unwrap();
        assert!(Hasher::new(Cost { memory_kib: 128, passes: 2 }).unwrap().is(&secret, Some(&kept), || true));
    }
}

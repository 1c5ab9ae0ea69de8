//! Volumes that EC2 accepts at first and then deletes itself, for example because EC2 cannot use
//! their key (`CreateVolume` in the Amazon EC2 API Reference, `KmsKeyId`).

use super::{HomeRecord, ObservedHome, Volume};

impl ObservedHome {
    /// Whether EC2 shows no trace of a volume that it accepted, and that was never usable.
    pub fn was_taken_back(&self) -> bool {
        self.record.as_ref().is_some_and(|record| !record.is_made) && self.is_lost()
    }

    /// Asks for the volume again, with the same token. If the volume exists after all, EC2 answers
    /// with it. If EC2 took it back, the token is spent, and the next number follows.
    pub fn ask_again(&mut self) {
        if let Some(record) = &mut self.record {
            record.volume_id = None;
        }
    }
}

impl HomeRecord {
    /// The record of the source volume, after this copy of it was given up.
    #[must_use]
    pub fn back_to(&self, source: &Volume) -> Self {
        Self {
            zone: source.zone.clone(),
            size_gib: source.size_gib,
            volume_id: Some(source.id.clone()),
            is_made: source.is_made(),
            copy_of: None,
            asked_at: None,
            ..self.clone()
        }
    }
}

//! How long something takes, as this machine last saw it.

use std::path::PathBuf;
use std::time::Duration;

use crate::cache::{self, Cache};

/// What takes less had most of its work done before: it says nothing about the next time.
const WORTH_REMEMBERING: Duration = Duration::from_mins(1);

/// The usual duration of a named piece of work.
#[derive(Debug)]
pub struct Usual {
    file: PathBuf,
    typical: Duration,
}

impl Usual {
    /// What the cache remembers under that name; `typical` is the answer for a first time.
    pub fn of(cache: &Cache, name: &str, typical: Duration) -> Self {
        Self {
            file: cache.root().join("durations").join(name),
            typical,
        }
    }

    /// How long it took last time; else what is typical.
    pub fn duration(&self) -> Duration {
        let seconds = std::fs::read_to_string(&self.file)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        seconds.map_or(self.typical, Duration::from_secs)
    }

    /// Remembers a duration of a minute or more. One that cannot be written is forgotten:
    /// it only tells people what to expect.
    pub fn record(&self, took: Duration) {
        if took < WORTH_REMEMBERING {
            return;
        }
        if let Some(folder) = self.file.parent() {
            let _ = cache::create_folder(folder);
        }
        let _ = cache::write_whole(&self.file, took.as_secs().to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_expected_again_and_a_first_time_is_typical() {
        let folder = std::env::temp_dir().join(format!("durations-{}", std::process::id()));
        let cache = Cache::at(&folder);
        let usual = || Usual::of(&cache, "build-cluster", Duration::from_mins(10));
        assert_eq!(usual().duration(), Duration::from_mins(10));
        usual().record(Duration::from_millis(61_900));
        assert_eq!(usual().duration(), Duration::from_secs(61));
        usual().record(Duration::from_secs(1));
        assert_eq!(
            usual().duration(),
            Duration::from_secs(61),
            "a cached build"
        );
        std::fs::write(folder.join("durations/build-cluster"), "soon").unwrap();
        assert_eq!(usual().duration(), Duration::from_mins(10));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

use super::*;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn printed(work: impl FnOnce(&Progress)) -> String {
    let paper = Paper::default();
    work(&Progress::to(Box::new(paper.clone())));
    paper.text()
}

fn later(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[test]
fn a_step_that_ended_shows_what_came_of_it_and_its_time() {
    let ended = printed(|progress| progress.begin("program etcd").end("built"));
    let words: Vec<_> = ended.split_whitespace().collect();
    assert_eq!(words, ["program", "etcd", "built", "0.0", "s"]);
}

#[test]
fn a_step_that_an_error_cuts_short_does_not_look_finished() {
    let text = printed(|progress| drop(progress.begin("images")));
    assert!(text.contains("failed"), "{text}");
}

#[test]
fn what_takes_long_says_so_every_half_minute_and_not_more_often() {
    let text = printed(|progress| {
        let step = progress.begin("program etcd");
        progress.lock().draw(later(29));
        assert_eq!(progress.lock().running.len(), 1);
        progress.lock().draw(later(31));
        progress.lock().draw(later(45));
        progress.lock().draw(later(62));
        std::mem::forget(step);
    });
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("program etcd"), "{text}");
    assert!(
        lines[0].ends_with("0:31") || lines[0].ends_with("0:30"),
        "{text}"
    );
}

#[test]
fn people_see_how_far_it_is_and_how_long_it_usually_takes() {
    let text = printed(|progress| {
        let step = progress.begin("programs");
        step.expect(Duration::from_secs(605));
        step.follow(|| Some("120 of 4561 packages".to_owned()));
        for seconds in [3, 5, 40] {
            progress.lock().draw(later(seconds));
        }
        std::mem::forget(step);
    });
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert!(
            line.ends_with("of about 10:05, 120 of 4561 packages"),
            "{text}"
        );
    }
}

#[test]
fn steps_side_by_side_have_a_line_each() {
    let text = printed(|progress| {
        let (one, other) = (progress.begin("one"), progress.begin("other"));
        progress.lock().draw(later(40));
        other.end("built");
        one.end("cached");
    });
    let firsts: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(firsts, ["one", "other", "other", "one"], "{text}");
}

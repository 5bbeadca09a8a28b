//! The report in a real browser. Without Chromium and its driver every test here is listed as ignored, by name.
//!
//! `CHROMIUM` and `CHROMEDRIVER` name the programs if they are not on `PATH`; with `ONEWRITER_SCREENSHOTS=FOLDER` each
//! page is also saved as pictures, light and dark, wide and narrow.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod browser;
mod page;
mod recorded;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use browser::{Browser, Programs};

type Test = fn(&tokio::runtime::Runtime, &Programs);

const TESTS: [(&str, Test); 7] = [
    ("the_page_opens_from_disk_without_a_complaint_and_loads_nothing", page::opens_from_disk),
    ("every_site_has_its_lanes_and_marks_are_drawn_in_them", page::draws_lanes),
    ("filters_hide_what_does_not_match", page::filters),
    ("first_violation_shows_the_offending_call", page::jumps_to_the_first_violation),
    ("the_keyboard_reaches_every_event", page::keyboard),
    ("recorded_markup_is_shown_and_does_nothing", page::hostile_texts),
    ("a_hundred_thousand_events_are_shown_and_searched", page::hundred_thousand_events),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = Programs::find();
    let trial = |(name, test): (&'static str, Test)| {
        let (found, ready) = (programs.clone(), programs.is_some());
        let run = move || {
            let missing = "Chromium or its driver is missing: set CHROMIUM and CHROMEDRIVER";
            test(&tokio::runtime::Runtime::new()?, found.as_ref().ok_or(missing)?);
            Ok::<(), Failed>(())
        };
        let kind = if ready { "browser" } else { "no Chromium" };
        Trial::test(format!("report::{name}"), run).with_kind(kind).with_ignored_flag(!ready)
    };
    libtest_mimic::run(&arguments, TESTS.into_iter().map(trial).collect()).exit_code()
}

/// A browser with the page of a history in it.
fn open(
    runtime: &tokio::runtime::Runtime,
    programs: &Programs,
    name: &str,
    history: &onewriter_history::History,
) -> Browser {
    runtime.block_on(async {
        let browser = Browser::start(programs).await;
        browser.open(&recorded::page(history)).await;
        browser.pictures(name).await;
        browser
    })
}

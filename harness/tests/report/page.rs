//! What people do with the page.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::browser::Programs;
use crate::open;
use crate::recorded::{self, OFFENCE};

pub(crate) fn opens_from_disk(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "violating", &recorded::violating());
    runtime.block_on(async {
        let loaded =
            browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)").await;
        assert_eq!(loaded, json!([]));
        assert_eq!(browser.complaints().await, Vec::<Value>::new());
    });
}

pub(crate) fn draws_lanes(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "lanes", &recorded::violating());
    runtime.block_on(async {
        let timeline = browser.after("").await;
        // run: steps, declarations; east: faults, layout writes; west: layout writes, calls, status writes, pods
        assert_eq!(timeline["lanes"], "8");
        assert_eq!(timeline["count"], "10", "an answer has no mark of its own");
        for kind in ["step", "state", "fault", "layoutWrite", "call", "status", "pod"] {
            assert!(pixels(&browser, kind).await > 20, "marks of kind {kind} are drawn");
        }
        assert_eq!(pixels(&browser, "log").await, 0, "what did not happen is not drawn");
    });
}

/// How many pixels of the lanes have the colour of a kind.
async fn pixels(browser: &crate::browser::Browser, kind: &str) -> u64 {
    let script = format!(
        "const canvas = document.getElementById('lanes'), probe = new OffscreenCanvas(1, 1).getContext('2d');
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--kind-{kind}').trim();
        probe.fillRect(0, 0, 1, 1);
        const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
        const {{data}} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found++;
        return found;"
    );
    browser.run(&script).await.as_u64().unwrap()
}

pub(crate) fn filters(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "filters", &recorded::violating());
    runtime.block_on(async {
        let click = |value: &str| format!("document.querySelector('.chip input[value={value}]').click()");
        let type_in = |text: &str| {
            format!("const text = document.getElementById('text'); text.value = '{text}'; text.dispatchEvent(new Event('input'))")
        };
        let without_west = browser.after(&click("west")).await;
        assert_eq!((&without_west["count"], &without_west["lanes"]), (&json!("6"), &json!("4")));
        let without_faults = browser.after(&click("fault")).await;
        assert_eq!(without_faults["count"], "5");
        assert_eq!(pixels(&browser, "fault").await, 0);
        browser.after(&format!("{}; {}", click("west"), click("fault"))).await;
        assert_eq!(browser.after(&type_in("clusterLAYOUT")).await["count"], "3", "case does not matter");
        assert_eq!(browser.after(&type_in("no such text")).await["count"], "0");
        browser.after(&type_in("")).await;
        let choose = "const cell = document.getElementById('cell'); cell.value = '1'; cell.dispatchEvent(new Event('change'))";
        assert_eq!(browser.after(choose).await["count"], "9", "all but the run's own step");
        assert_eq!(browser.complaints().await, Vec::<Value>::new());
    });
}

pub(crate) fn jumps_to_the_first_violation(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "jump", &recorded::violating());
    runtime.block_on(async {
        // Hidden by a filter, and shown all the same: who jumps wants to see.
        browser.after("document.querySelector('.chip input[value=west]').click()").await;
        let there = browser.after("document.getElementById('first').click()").await;
        assert_eq!(there["selected"], OFFENCE.to_string());
        assert_eq!(there["count"], "10");
        let details = "const done = arguments[0], raw = document.querySelector('#details pre');
            const look = () => { if (raw.textContent !== '…') done(document.getElementById('details').textContent); };
            new MutationObserver(look).observe(raw, { childList: true, characterData: true, subtree: true });
            look();";
        let details = browser.answer(details).await;
        let details = details.as_str().unwrap();
        for part in ["POST /v2/UpdateClusterLayout", "follower-never-writes", "\"call.end\"", "\"seq\": 11"] {
            assert!(details.contains(part), "{part} in {details}");
        }
        assert_eq!(browser.run("return location.hash").await, "#event-11");
        browser.pictures("selected").await;
        assert_eq!(browser.complaints().await, Vec::<Value>::new());
    });
}

pub(crate) fn keyboard(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "keyboard", &recorded::violating());
    runtime.block_on(async {
        let press = |key: &str| {
            format!("document.getElementById('lanes').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")
        };
        let seen = browser.after(&press("v")).await;
        assert_eq!(seen["selected"], OFFENCE.to_string());
        // West's lanes from top to bottom: layout writes, calls, status writes, pods.
        let mut lanes = Vec::new();
        for _ in 0..3 {
            lanes.push(browser.after(&press("ArrowDown")).await["selected"].clone());
        }
        assert_eq!(lanes, ["6", "8", "9"]);
        assert_eq!(browser.after(&press("ArrowDown")).await["selected"], "9", "there is no further lane");
        for _ in 0..7 {
            browser.after(&press("ArrowUp")).await;
        }
        let first_step = browser.after(&press("ArrowLeft")).await["selected"].clone();
        let last_step = browser.after(&press("ArrowRight")).await["selected"].clone();
        assert_eq!((first_step, last_step), (json!("3"), json!("13")));
        assert_eq!(browser.after(&press("Escape")).await["selected"], "");
    });
}

pub(crate) fn hostile_texts(runtime: &Runtime, programs: &Programs) {
    let browser = open(runtime, programs, "hostile", &recorded::hostile());
    runtime.block_on(async {
        browser.after("document.getElementById('first').click()").await;
        assert_eq!(browser.run("return window.harmed ?? null").await, Value::Null);
        assert_eq!(browser.run("return document.images.length").await, 0);
        let title = browser.run("return document.title").await;
        assert!(title.as_str().unwrap().contains("<script>window.harmed"), "{title}");
        assert_eq!(browser.complaints().await, Vec::<Value>::new());
    });
}

pub(crate) fn hundred_thousand_events(runtime: &Runtime, programs: &Programs) {
    const COUNT: u64 = 100_000;
    let browser = open(runtime, programs, "large", &recorded::large(COUNT));
    runtime.block_on(async {
        let timeline = browser.after("").await;
        let marks: u64 = timeline["count"].as_str().unwrap().parse().unwrap();
        assert!(marks > COUNT / 2 && marks < COUNT, "{marks} marks");
        let there = browser.after("document.getElementById('first').click()").await;
        assert_eq!(there["selected"], (COUNT - 1).to_string());
        let type_in = "const text = document.getElementById('text'); text.value = 'UpdateClusterLayout'; text.dispatchEvent(new Event('input'))";
        assert_eq!(browser.after(type_in).await["count"], "1");
        assert_eq!(browser.complaints().await, Vec::<Value>::new());
    });
}

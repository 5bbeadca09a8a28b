//! A headless browser, driven through its driver (W3C Recommendation "`WebDriver`").

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The programs that are needed.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    chromium: PathBuf,
    driver: PathBuf,
}

impl Programs {
    /// Both, or nothing.
    pub(crate) fn find() -> Option<Self> {
        let chromium = named("CHROMIUM", &["chromium", "chromium-browser", "google-chrome"])?;
        Some(Self { chromium, driver: named("CHROMEDRIVER", &["chromedriver"])? })
    }
}

fn named(variable: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(path) = env::var_os(variable).filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let path = env::var_os("PATH")?;
    let at = |name: &&str| env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    names.iter().find_map(at)
}

/// A browser with one window, and a folder of its own that goes with it.
pub(crate) struct Browser {
    http: reqwest::Client,
    session: String,
    folder: TempDir,
    _driver: Driver,
}

/// How long a browser may take to end.
const QUIT: Duration = Duration::from_secs(10);

/// The driver's process, and the session that it holds.
struct Driver {
    process: Child,
    port: u16,
    session: Option<String>,
}

impl Drop for Driver {
    /// Also after a failed assertion: the browser is no child of ours, and would outlive its driver.
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            let request =
                format!("DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let ended = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
                stream.write_all(request.as_bytes())?;
                stream.set_read_timeout(Some(QUIT))?;
                // It answers when the browser is gone, and then keeps the connection.
                stream.read_exact(&mut [0])
            });
            // Nothing more can be done about a driver that does not answer.
            drop(ended);
        }
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Browser {
    pub(crate) async fn start(programs: &Programs) -> Self {
        let mut process =
            Command::new(&programs.driver).arg("--port=0").stdout(Stdio::piped()).spawn().unwrap();
        let port = port(&mut process);
        let mut driver = Driver { process, port, session: None };
        let base = format!("http://127.0.0.1:{port}");
        let folder = tempfile::tempdir().unwrap();
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1440,1000",
            &profile,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": programs.chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let made = send(&http, &format!("{base}/session"), &wanted).await;
        driver.session = made["sessionId"].as_str().map(str::to_owned);
        let session = format!("{base}/session/{}", driver.session.as_ref().unwrap());
        Self { http, session, folder, _driver: driver }
    }

    /// Opens a page from disk, and waits until it has drawn.
    pub(crate) async fn open(&self, html: &str) {
        let file = self.folder.path().join("report.html");
        std::fs::write(&file, html).unwrap();
        self.command("url", &json!({"url": format!("file://{}", file.display())})).await;
        let drawn = "const [done] = arguments, timeline = document.getElementById('timeline');
            const look = () => { if (timeline.dataset.state === 'ready') done(true); };
            new MutationObserver(look).observe(timeline, { attributes: true });
            look();";
        self.answer(drawn).await;
    }

    /// What a script returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []})).await
    }

    /// Runs a script and returns what the timeline says of itself after it has drawn again.
    pub(crate) async fn after(&self, script: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; {script};
            requestAnimationFrame(() => requestAnimationFrame(() => done({{...document.getElementById('timeline').dataset}})));"
        );
        self.answer(&script).await
    }

    /// What a script hands to the function that is its argument.
    pub(crate) async fn answer(&self, script: &str) -> Value {
        self.command("execute/async", &json!({"script": script, "args": []})).await
    }

    /// Everything that the browser complained about.
    pub(crate) async fn complaints(&self) -> Vec<Value> {
        let log = self.command("se/log", &json!({"type": "browser"})).await;
        log.as_array().unwrap().clone()
    }

    /// Saves the page in several sizes and both colour schemes, if pictures are wanted.
    pub(crate) async fn pictures(&self, name: &str) {
        let Some(folder) = env::var_os("ONEWRITER_SCREENSHOTS") else { return };
        for (scheme, width, height) in
            [("light", 1440, 1800), ("dark", 1440, 1800), ("light", 420, 2400), ("dark", 1920, 1080)]
        {
            self.look(scheme, width, height).await;
            self.save(&folder, &format!("{name}-{scheme}-{width}")).await;
        }
        self.look("light", 1440, 1000).await;
    }

    async fn look(&self, scheme: &str, width: u32, height: u32) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.command("goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": media}))
            .await;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let set = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.command("goog/cdp/execute", &set).await;
        self.after("").await;
    }

    async fn save(&self, folder: &OsStr, name: &str) {
        let answer = self.http.get(format!("{}/screenshot", self.session)).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        let picture = STANDARD.decode(answer["value"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(Path::new(folder).join(format!("{name}.png")), picture).unwrap();
    }

    async fn command(&self, command: &str, body: &Value) -> Value {
        send(&self.http, &format!("{}/{command}", self.session), body).await
    }
}

/// The port that the driver says it listens on.
fn port(driver: &mut Child) -> u16 {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let said = lines.find_map(|line| {
        let line = line.unwrap();
        line.contains("started successfully").then(|| line.rsplit(' ').next().unwrap().to_owned())
    });
    // Whatever else it says must go somewhere, or it stops at a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    said.unwrap().trim_end_matches('.').parse().unwrap()
}

async fn send(http: &reqwest::Client, url: &str, body: &Value) -> Value {
    let answer = http.post(url).json(body).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let value = answer["value"].clone();
    assert!(value.get("error").is_none(), "{url}: {value}");
    value
}

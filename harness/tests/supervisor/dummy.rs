//! A pair of dummies: parts that listen on the addresses a real pair would use.

use std::{
    ffi::OsString,
    future::pending,
    net::{SocketAddr, TcpListener},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use harness::{
    process::{Child, Launch},
    supervisor::{AnyError, Context, LogTail, Pair, PartDeath, Running, StartError},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What a dummy pair does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Script {
    /// How its start ends, once its parts run.
    pub(crate) start: Start,
    /// Never ends by itself.
    pub(crate) hang_stop: bool,
    /// Also starts a process that leaves its parent's group and session.
    pub(crate) stray: bool,
}

/// How a start ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Start {
    /// The pair can be used.
    #[default]
    Ready,
    /// Never.
    Hang,
    /// With an error.
    Fail,
    /// With a panic.
    Panic,
}

/// What is said once all parts run and the start goes no further.
pub(crate) const HANGING: &str = "hangs";

/// The hidden subcommand that is a part: listens on an address until it is killed.
pub(crate) const PART: &str = "__part";

pub(crate) fn part(args: &[OsString]) -> u8 {
    let address: SocketAddr = args[0].to_str().unwrap().parse().unwrap();
    let _listener = TcpListener::bind(address).unwrap();
    println!("listening on {address}");
    loop {
        std::thread::park();
    }
}

pub(crate) fn make() -> Arc<dyn Pair> {
    Arc::new(Dummy)
}

struct Dummy;

impl Pair for Dummy {
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Arc<dyn Running>, StartError>> {
        Box::pin(start(context))
    }
}

async fn start(context: Context) -> Result<Arc<dyn Running>, StartError> {
    let script: Script = serde_json::from_value(context.options.clone()).map_err(StartError::new)?;
    let node = SocketAddr::new(context.addresses.first_node().into(), 3903);
    let (dead, deaths) = mpsc::unbounded_channel();
    for (name, address) in [("hub", context.addresses.hub()), ("node", node)] {
        context.progress.report(name, "starts");
        let child = launch(&context, name, address).await.map_err(StartError::new)?;
        let dead = dead.clone();
        tokio::spawn(async move { dead.send(death(&child, child.exited().await)) });
    }
    if script.stray {
        stray(&context).await.map_err(StartError::new)?;
    }
    end_start(&context, script.start).await?;
    let deaths = tokio::sync::Mutex::new(deaths);
    Ok(Arc::new(Started { script, deaths, context, _dead: dead }))
}

async fn end_start(context: &Context, end: Start) -> Result<(), StartError> {
    match end {
        Start::Ready => Ok(()),
        Start::Hang => {
            context.progress.report("pair", HANGING);
            pending().await
        }
        Start::Fail => {
            let source = std::io::Error::new(std::io::ErrorKind::NotFound, "told to fail");
            Err(StartError::new(source).with_log(LogTail::read("hub", context.folder.join("hub.log"))))
        }
        Start::Panic => panic!("told to panic"),
    }
}

/// Starts a part and waits until it says that it listens, which is a line in its log.
async fn launch(context: &Context, name: &str, address: SocketAddr) -> Result<Child, AnyError> {
    let log = context.folder.join(format!("{name}.log"));
    let launch = Launch {
        name: name.into(),
        program: harness::entry::executable()?,
        args: vec![PART.into(), address.to_string().into()],
        env: Vec::new(),
        log,
    };
    let child = context.launcher.launch(launch).await?;
    tokio::select! {
        () = listens(address) => Ok(child),
        status = child.exited() => Err(format!("{name} ended with {status}: {}", child.log_tail(5)).into()),
    }
}

async fn listens(address: SocketAddr) {
    while tokio::net::TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// A part whose child leaves the group and the session, and ignores what it is told.
async fn stray(context: &Context) -> Result<(), AnyError> {
    let pipe = context.folder.join("stray.pid");
    crate::scene::make_pipe(&pipe);
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 60; done' & wait",
        pipe.display()
    );
    let launch = Launch {
        name: "stray".into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        log: context.folder.join("stray.log"),
    };
    context.launcher.launch(launch).await?;
    let pid = tokio::fs::read_to_string(&pipe).await?;
    context.progress.report("stray", pid.trim());
    Ok(())
}

fn death(child: &Child, status: ExitStatus) -> PartDeath {
    PartDeath {
        part: child.name().into(),
        status: status.to_string(),
        log: LogTail::read(child.name(), child.log()),
    }
}

struct Started {
    script: Script,
    context: Context,
    deaths: tokio::sync::Mutex<mpsc::UnboundedReceiver<PartDeath>>,
    _dead: mpsc::UnboundedSender<PartDeath>,
}

impl Running for Started {
    fn description(&self) -> Value {
        json!({ "hub": self.context.addresses.hub().to_string() })
    }

    fn died(&self) -> BoxFuture<'_, PartDeath> {
        Box::pin(async {
            match self.deaths.lock().await.recv().await {
                Some(death) => death,
                None => pending().await,
            }
        })
    }

    fn request(&self, body: Value) -> BoxFuture<'_, Result<Value, AnyError>> {
        Box::pin(async move {
            match body.get("echo") {
                Some(echo) => Ok(json!({ "echoed": echo })),
                None => Err("only echo is understood".into()),
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.script.hang_stop {
                pending::<()>().await;
            }
            self.context.launcher.stop_all(Duration::from_secs(5)).await;
        })
    }
}

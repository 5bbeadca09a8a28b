//! Doing to nodes what a session says.

use std::time::Duration;

use super::compare::Difference;
use super::script::{Operation, ScriptConfig, ScriptCut, ScriptLoss};
use super::session::{ExpectedExit, Session};
use crate::admin::Credentials;
use crate::mesh::{Cut, Loss, Mesh, NodeConfig, NodeIndex, Process, Time};

impl Session<'_> {
    pub(super) fn operate(&mut self, step: usize, operation: &Operation) {
        match operation {
            Operation::Start { nodes, config, clock_offset_ms } => {
                for name in nodes {
                    self.start(name, config, clock_offset_ms.get(name).copied().unwrap_or(0));
                }
            }
            Operation::StopAll => {
                let all: Vec<_> = self.nodes.values().copied().collect();
                self.each(all, Mesh::stop);
            }
            Operation::Kill { nodes } => self.each(self.indices(nodes), Mesh::kill),
            Operation::Pause { nodes } => self.each(self.indices(nodes), Mesh::freeze),
            Operation::Resume { nodes } => self.each(self.indices(nodes), Mesh::resume),
            Operation::Restart { nodes, signal, lose, config } => {
                for name in nodes {
                    self.restart(name, signal.as_deref(), *lose, config.as_ref());
                }
            }
            Operation::Partition { between: [one, other], kind } => {
                let (one, other) = (self.indices(one), self.indices(other));
                let cut = match kind {
                    ScriptCut::Silent => Cut::Silent,
                    ScriptCut::Reset => Cut::Reset,
                };
                self.cluster.alter(|mesh| mesh.partition(&one, &other, cut));
            }
            Operation::Heal => self.cluster.alter(Mesh::heal),
            Operation::ExpectExit { node, code, within_ms } => {
                let deadline = self.cluster.mesh().now() + Duration::from_millis(*within_ms);
                self.exits.push(ExpectedExit { step, node: node.clone(), code: *code, deadline });
                self.check_exits(self.cluster.mesh().now());
            }
            Operation::ExpectRunning { node } => self.expect_running(step, node),
            Operation::Note {} => {}
        }
        self.collect();
    }

    fn indices(&self, names: &[String]) -> Vec<NodeIndex> {
        names.iter().filter_map(|name| self.index(name)).collect()
    }

    fn each(&mut self, nodes: Vec<NodeIndex>, act: impl Fn(&mut Mesh, NodeIndex)) {
        for node in nodes {
            self.cluster.alter(|mesh| act(mesh, node));
        }
    }

    fn start(&mut self, name: &str, config: &ScriptConfig, clock_offset: i64) {
        let Some(script) = self.script.nodes.get(name) else { return };
        let id = script.id;
        let config_of = self.node_config(name, config, clock_offset);
        let node = match self.index(name) {
            Some(node) => {
                self.cluster.alter(|mesh| {
                    mesh.stop(node);
                    mesh.configure(node, config_of);
                    mesh.erase(node, id);
                    mesh.start(node);
                });
                node
            }
            None => self.cluster.alter(|mesh| mesh.add(id, config_of)),
        };
        self.nodes.insert(name.to_owned(), node);
        self.configured(name, node, config);
    }

    fn configured(&mut self, name: &str, node: NodeIndex, config: &ScriptConfig) {
        self.factors.insert(name.to_owned(), config.replication_factor);
        let token = |placeholder: &str| self.bindings.fill(placeholder);
        let credentials = Credentials {
            admin: config.admin_token.then(|| token("<ADMIN_TOKEN>")).into_iter().collect(),
            metrics: config.metrics_token.then(|| token("<METRICS_TOKEN>")),
            metrics_require_token: config.metrics_require_token,
        };
        self.cluster.set_credentials(node, credentials);
    }

    fn node_config(&self, name: &str, config: &ScriptConfig, clock_offset: i64) -> NodeConfig {
        let node = &self.script.nodes[name];
        NodeConfig {
            name: name.to_owned(),
            site: node.site.clone(),
            address: node.rpc.ip(),
            hostname: "replayed".to_owned(),
            region: "garage".to_owned(),
            factor: config.replication_factor,
            mode: config.consistency_mode,
            rpc_secret: config.rpc_secret.clone().unwrap_or_else(|| "same".to_owned()),
            clock_offset,
        }
    }

    fn restart(&mut self, name: &str, signal: Option<&str>, lose: ScriptLoss, config: Option<&ScriptConfig>) {
        let Some(node) = self.index(name) else { return };
        let offset = self.cluster.mesh().node(node).config().clock_offset;
        let changed = config.map(|config| self.node_config(name, config, offset));
        let loss_of_files = match lose {
            ScriptLoss::Nothing => Loss::Nothing,
            ScriptLoss::LayoutFile => Loss::LayoutFile,
            ScriptLoss::AllMetadata => Loss::AllMetadata,
        };
        self.cluster.alter(|mesh| {
            if signal == Some("SIGKILL") {
                mesh.kill(node);
            } else {
                mesh.stop(node);
            }
            if let Some(changed) = changed {
                mesh.configure(node, changed);
            }
            mesh.lose_files(node, loss_of_files);
            mesh.start(node);
        });
        if let Some(config) = config {
            self.configured(name, node, config);
        }
    }

    pub(super) fn check_exits(&mut self, now: Time) {
        for exit in std::mem::take(&mut self.exits) {
            let process = self.index(&exit.node).map(|node| self.cluster.mesh().node(node).process());
            match process {
                Some(Process::Ended { code }) if code == Some(exit.code) => self.report.compared += 1,
                Some(Process::Running | Process::Frozen) if now < exit.deadline => self.exits.push(exit),
                other => {
                    let expected = format!("exit with code {}", exit.code);
                    self.mismatch(
                        exit.step,
                        vec![Difference::new("(process)", expected, format!("{other:?}"))],
                    );
                }
            }
        }
    }

    fn expect_running(&mut self, step: usize, node: &str) {
        let running = self.index(node).is_some_and(|node| self.cluster.mesh().node(node).is_running());
        if running {
            self.report.compared += 1;
        } else {
            self.mismatch(step, vec![Difference::new("(process)", "running", "not running")]);
        }
    }
}

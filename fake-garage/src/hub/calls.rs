//! Calls on the nodes of a mesh: from the request to the answer, with what rules do to them.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::actor::{Inner, MeshActor};
use super::attribution::NodeTokens;
use super::body::BodyError;
use super::directory::SiteView;
use super::flight::{Amendment, Answer, Begun, CallInProgress, Pending};
use super::journal;
use super::rule::{CallFacts, Effect, Intervention};
use crate::admin::{ApiError, LayoutMark, Request, Response};
use crate::mesh::NodeIndex;

impl MeshActor {
    /// A request has reached a node: records it, does what rules say, and gives the answer.
    ///
    /// `None` means that there will be no answer: the connection closes. Dropping the future ends the call.
    pub async fn call(
        self: &Arc<Self>,
        node: NodeIndex,
        request: Request,
        host: Option<String>,
    ) -> Option<Response> {
        let (progress, held) = {
            let mut inner = self.now();
            if inner.has_ended(node) {
                // Its port closes just now: nobody has read this request.
                return None;
            }
            let Begun { progress, request, intervention } =
                self.begin_call(&mut inner, node, request, host.as_deref());
            if let Some(intervention) = intervention {
                (progress, Some((request, intervention)))
            } else {
                self.perform_now(&mut inner, &progress, request);
                (progress, None)
            }
        };
        if let Some((request, intervention)) = held {
            // The call may stay in flight for long: whoever reads the history finds it.
            self.shared.recorder.flush();
            self.intervene(&progress, request, intervention).await;
        }
        let recorder = &self.shared.recorder;
        let answer = match progress.try_answer() {
            Ok(answer) => answer?,
            Err(progress) => {
                // What takes long is in the history meanwhile.
                recorder.flush();
                progress.answer().await?
            }
        };
        // Nobody is told what is not in the history.
        if recorder.flushed(answer.recorded).await { answer.response } else { None }
    }

    /// Does to a call what a rule says.
    async fn intervene(&self, progress: &CallInProgress, request: Request, mut intervention: Intervention) {
        intervention.wait().await;
        match intervention.effect {
            Effect::Answer { status, body, perform } => {
                let replacement = Response::replaced(status, &body);
                if perform {
                    self.perform(progress, request, Some(Amendment::Replace(replacement)));
                } else {
                    self.answer_instead(progress, Some(replacement));
                }
            }
            Effect::Drop { perform: true } => self.perform(progress, request, Some(Amendment::Drop)),
            Effect::Drop { perform: false } => self.answer_instead(progress, None),
            Effect::LoseRace => {
                self.lock().cluster.lose_next_race(progress.node);
                self.perform(progress, request, None);
            }
            Effect::Delay { .. } | Effect::Hold { .. } => self.perform(progress, request, None),
        }
    }

    /// A request whose body could not be read: records it as a call that had no effect, and gives the answer.
    pub fn call_cut_short(
        self: &Arc<Self>,
        node: NodeIndex,
        request: Request,
        host: Option<&str>,
        error: &BodyError,
    ) -> Option<Response> {
        let error = ApiError::new(500, "InternalError", error.to_string());
        let (begun, response) = {
            let mut inner = self.now();
            let response = inner.cluster.refusal(&error, node, &request.path);
            if inner.has_ended(node) {
                return None;
            }
            (self.begin_call(&mut inner, node, request, host), response)
        };
        self.answer_instead(&begun.progress, Some(response.clone()));
        self.shared.recorder.flush();
        Some(response)
    }

    /// Attributes a call, records that it begins, and asks the rules.
    fn begin_call(
        self: &Arc<Self>,
        inner: &mut Inner,
        node: NodeIndex,
        request: Request,
        host: Option<&str>,
    ) -> Begun {
        let (sender, answer) = oneshot::channel();
        let call = self.shared.next_call();
        let absent = NodeTokens::default();
        let own = inner.own_tokens.get(&node).unwrap_or(&absent);
        let creator = |id: &str| inner.cluster.token_creator(id).cloned();
        let origin = inner.tokens.attribute(&request, own, creator);
        let request = Request { origin, ..request };
        let place = inner.cluster.mesh().node(node);
        let name = &place.config().name;
        let intervention = self.shared.rules.meet(CallFacts {
            mesh: &self.name,
            caller: request.origin.caller.as_deref(),
            node: name,
            method: &request.method,
            path: &request.path,
        });
        let recorder = &self.shared.recorder;
        recorder.call_begins(call, &self.name, place, &request, host);
        if let Some(intervention) = &intervention {
            recorder.enqueue(|| journal::intervention_event(&self.name, name, call, intervention));
        }
        inner.pending.insert(call, Pending { node, sender, amendment: None });
        let progress = CallInProgress::new(Arc::clone(self), call, node, answer);
        Begun { progress, request, intervention }
    }

    fn perform(&self, progress: &CallInProgress, request: Request, amendment: Option<Amendment>) {
        let mut inner = self.now();
        if let Some(pending) = inner.pending.get_mut(&progress.call) {
            pending.amendment = amendment;
        }
        self.perform_now(&mut inner, progress, request);
    }

    fn perform_now(&self, inner: &mut Inner, progress: &CallInProgress, request: Request) {
        let site = inner.cluster.mesh().node(progress.node).config().site.clone();
        let around = SiteView { directory: &self.shared.directory, site: &site, mesh: &self.name };
        inner.cluster.handle(progress.call, progress.node, request, &around);
        self.tell(inner);
        self.wake_driver(inner);
    }

    /// Ends a call without performing it.
    fn answer_instead(&self, progress: &CallInProgress, response: Option<Response>) {
        let mut inner = self.lock();
        let after = inner.cluster.layout_mark(progress.node);
        self.finish(&mut inner, progress.call, response, &after);
    }

    pub(super) fn finish(
        &self,
        inner: &mut Inner,
        call: u64,
        response: Option<Response>,
        after: &LayoutMark,
    ) {
        let Some(pending) = inner.pending.remove(&call) else { return };
        let response = match pending.amendment {
            None => response,
            Some(Amendment::Replace(replacement)) => Some(replacement),
            Some(Amendment::Drop) => None,
        };
        let recorded = self.shared.recorder.call_ends(call, response.as_ref(), after);
        // The caller may have gone away just now; the answer is recorded all the same.
        drop(pending.sender.send(Answer { response, recorded }));
    }

    /// Ends a call whose caller has gone away.
    pub(super) fn abandon(&self, call: u64, node: NodeIndex) {
        let mut inner = self.lock();
        if inner.pending.remove(&call).is_some() {
            inner.cluster.abandon(call);
            let after = inner.cluster.layout_mark(node);
            self.shared.recorder.call_ends(call, None, &after);
            drop(inner);
            self.shared.recorder.flush();
        }
    }

    /// Ends the calls on a process that has ended, those included that a rule holds.
    pub(super) fn end_calls(&self, inner: &mut Inner, node: NodeIndex) {
        let calls = inner.pending.iter().filter(|(_, pending)| pending.node == node);
        let calls: Vec<_> = calls.map(|(call, _)| *call).collect();
        for call in calls {
            let after = inner.cluster.layout_mark(node);
            self.finish(inner, call, None, &after);
        }
    }
}

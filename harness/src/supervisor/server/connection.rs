//! One client's connection.

use std::io;

use tokio::{
    io::BufReader,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinHandle,
};

use super::super::protocol::{self, Hello, Message, Question, Reply};

/// What connections tell the desk.
#[derive(Debug)]
pub(super) enum Event {
    /// A client introduced itself.
    Hello(u64, Box<Hello>),
    /// A client asks for something.
    Question(u64, Question),
    /// The pair itself answers a client's question.
    Answer(u64, u64, Reply),
    /// The connection ended.
    Gone(u64),
}

/// The desk's end of a connection. Messages queue, so that a client that does not read stops nobody but itself.
#[derive(Debug)]
pub(super) struct Connection {
    messages: mpsc::UnboundedSender<Message>,
    writer: JoinHandle<()>,
    /// Whether the client holds the pair: then it hears of what happens to it.
    pub(super) holds: bool,
}

impl Connection {
    /// Starts to read from and write to a client.
    pub(super) fn open(number: u64, stream: UnixStream, events: mpsc::UnboundedSender<Event>) -> Self {
        let (reader, writer) = stream.into_split();
        let (messages, queue) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            if let Err(error) = read(number, reader, &events).await {
                tracing::warn!(number, %error, "cannot understand a client");
            }
            drop(events.send(Event::Gone(number)));
        });
        let writer = tokio::spawn(write(writer, queue));
        Self { messages, writer, holds: false }
    }

    pub(super) fn send(&self, message: Message) {
        // A client that has gone needs no message.
        drop(self.messages.send(message));
    }

    /// Nothing more will be sent; resolves when everything has been.
    pub(super) fn finish(self) -> JoinHandle<()> {
        self.writer
    }
}

async fn read(number: u64, reader: OwnedReadHalf, events: &mpsc::UnboundedSender<Event>) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let Some(hello) = protocol::read::<Hello>(&mut reader).await? else { return Ok(()) };
    let mut open = events.send(Event::Hello(number, Box::new(hello))).is_ok();
    while open {
        let Some(question) = protocol::read::<Question>(&mut reader).await? else { break };
        open = events.send(Event::Question(number, question)).is_ok();
    }
    Ok(())
}

async fn write(mut writer: OwnedWriteHalf, mut queue: mpsc::UnboundedReceiver<Message>) {
    while let Some(message) = queue.recv().await {
        if protocol::write(&mut writer, &message).await.is_err() {
            // The reader sees the end as well, and says so.
            return;
        }
    }
}

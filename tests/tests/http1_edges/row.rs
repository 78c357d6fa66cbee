//! A request with the way it is sent, and the check that all of them share.

use std::net::SocketAddr;

use retry_tests::agent::{Agent, Edge, Exec, Finished};
use retry_tests::origin::{End, Origin, Reply};
use retry_tests::wire::{self, Act, Saw, Script};

/// A path that is always answered 200.
const HEALTHY: &str = "GET /healthy HTTP/1.1\r\nHost: edges\r\n\r\n";

/// One request.
pub struct Row {
    /// What is special about it.
    pub sentence: &'static str,
    /// The acts that send it.
    pub send: Vec<Act>,
    /// Whether its answer has no body.
    pub bodiless: bool,
    /// Whether its head comes in several packets. The first of them go on to the server before the last decides.
    pub split_head: bool,
}

impl Row {
    /// A request in one piece.
    pub fn new(sentence: &'static str, text: &str) -> Self {
        Self::cut(sentence, text, &[])
    }

    /// A request in pieces that end at these places.
    pub fn cut(sentence: &'static str, text: &str, cuts: &[usize]) -> Self {
        let head_len = text.find("\r\n\r\n").expect("a whole head") + 4;
        let split_head = cuts.iter().any(|cut| *cut < head_len);
        let send = vec![Act::Send { text: text.to_owned(), cuts: cuts.to_vec() }];
        Self { sentence, send, bodiless: text.starts_with("HEAD "), split_head }
    }

    /// A request byte by byte.
    pub fn bytewise(sentence: &'static str, text: &str) -> Self {
        Self::cut(sentence, text, &(1..text.len()).collect::<Vec<_>>())
    }

    /// The same with this after it.
    #[must_use]
    pub fn and(mut self, act: Act) -> Self {
        self.send.push(act);
        self
    }

    /// Sends it and reads the answer.
    fn exchange(&self, script: Script) -> Script {
        let sent = self.send.iter().fold(script, |script, act| script.then(act.clone()));
        sent.then(Act::Answer { bodiless: self.bodiless })
    }

    fn path(&self) -> String {
        let Act::Send { text, .. } = &self.send[0] else { panic!("a row begins with text") };
        let target = text.split(' ').nth(1).expect("a target");
        target.split('?').next().expect("a path").to_owned()
    }
}

/// Every row fails and is sent again, on the same connection and on a new one. Under observation all three arrive
/// as they were sent; without a budget only the first does.
///
/// All rows are played in one run, each with a server of its own, because loading the agent is what takes time.
pub fn check(agent: &Agent, rows: &[Row]) {
    observed(agent, rows);
    denied(agent, rows);
}

/// One row, or one way to play it, with its server.
struct Play<'a> {
    row: &'a Row,
    sentence: String,
    origin: Origin,
    script: Script,
}

impl<'a> Play<'a> {
    fn new(row: &'a Row, place: &str, script: impl FnOnce(&Row, SocketAddr) -> Script) -> Self {
        let origin = Origin::start();
        origin.plan(&row.path(), Reply::status(503));
        let sentence = format!("{}{place}", row.sentence);
        let script = script(row, origin.address());
        Self { row, sentence, origin, script }
    }

    fn edge<'b>(&self, finished: &'b Finished) -> &'b Edge {
        finished.edge(self.origin.address())
    }
}

/// Plays all in one run; gives what was seen of each.
fn run(exec: &Exec, plays: &[Play<'_>]) -> (Finished, Vec<Vec<Saw>>) {
    let all = plays.iter().fold(Script::default(), |script, play| {
        script.then(Act::Mark(play.sentence.clone())).and(play.script.clone())
    });
    let finished = exec.run_well(&all.command());
    let saw = wire::saw(&finished.ended.stdout);
    let parts = saw.split(|saw| matches!(saw, Saw::Mark(_))).skip(1).map(<[Saw]>::to_vec).collect();
    (finished, parts)
}

fn observed(agent: &Agent, rows: &[Row]) {
    let script = |row: &Row, to| row.exchange(row.exchange(Script::to(to)).connect(to)).exchange(HEALTHY);
    let plays: Vec<_> = rows.iter().map(|row| Play::new(row, "", script)).collect();
    let (finished, parts) = run(&agent.observe(), &plays);
    for (play, saw) in plays.iter().zip(parts) {
        let (sentence, origin) = (&play.sentence, &play.origin);
        assert_eq!(answers(&saw), [(503, None), (503, None), (200, None)], "{sentence}: {saw:?}");
        let requests = origin.requests();
        assert_eq!(requests.len(), 3, "{sentence}");
        assert_eq!(
            (requests[0].wire_len, requests[0].body_hash),
            (requests[1].wire_len, requests[1].body_hash)
        );
        assert_eq!(origin.stray_bytes(), 0, "{sentence}");
        let edge = play.edge(&finished);
        assert_eq!(
            (edge.attempts, edge.calls, edge.retries_by("repetition")),
            (3, 2, 1),
            "{sentence}: {edge:#?}"
        );
        assert_eq!((edge.denied, edge.opaque), (0, 0), "{sentence}: {edge:#?}");
        assert_eq!(edge.failures_by("status_503"), 2, "{sentence}: {edge:#?}");
    }
}

fn denied(agent: &Agent, rows: &[Row]) {
    let rest = |row: &Row, script, to| row.exchange(script).then(Act::End).connect(to).exchange(HEALTHY);
    let same = |row: &Row, to| rest(row, row.exchange(Script::to(to)), to);
    let new = |row: &Row, to| rest(row, row.exchange(Script::to(to)).connect(to), to);
    let on_same = rows.iter().map(|row| Play::new(row, ", on the same connection", same));
    let plays: Vec<_> =
        on_same.chain(rows.iter().map(|row| Play::new(row, ", on a new connection", new))).collect();
    let (finished, parts) = run(&agent.enforce("none"), &plays);
    for (play, saw) in plays.iter().zip(parts) {
        let sentence = &play.sentence;
        let none = Some("none".to_owned());
        assert_eq!(answers(&saw), [(503, None), (503, none), (200, None)], "{sentence}: {saw:?}");
        assert!(saw.contains(&Saw::Ended { how: "eof".to_owned(), bytes: 0 }), "{sentence}: {saw:?}");
        let edge = play.edge(&finished);
        assert_eq!((edge.attempts, edge.calls, edge.denied), (3, 2, 1), "{sentence}: {edge:#?}");
        assert_untouched(play);
    }
}

/// The server has the first request and the healthy one, and was told by RST that no more comes.
fn assert_untouched(play: &Play<'_>) {
    let (sentence, origin) = (&play.sentence, &play.origin);
    origin.wait_for_ends();
    assert_eq!(origin.requests().len(), 2, "{sentence}: {:#?}", origin.requests());
    let resets = origin.connections().iter().filter(|connection| connection.end == End::Reset).count();
    assert_eq!(resets, 1, "{sentence}: {:?}", origin.connections());
    if play.row.split_head {
        let whole = origin.requests()[0].wire_len;
        assert!(origin.stray_bytes() < whole, "{sentence}: the server got a whole request");
    } else {
        assert_eq!(origin.stray_bytes(), 0, "{sentence}: bytes of a denied request reached the server");
    }
}

/// Status and giver of every answer; a denial without `Retry-After` counts as none.
fn answers(saw: &[Saw]) -> Vec<(u16, Option<String>)> {
    let answer = |saw: &Saw| match saw {
        Saw::Answer(answer) => {
            let denied_by = answer.header("retry-after").and(answer.denied_by());
            Some((answer.status, denied_by.map(str::to_owned)))
        }
        _ => None,
    };
    saw.iter().filter_map(answer).collect()
}

//! The Rust client of the kernel tests: reqwest with reqwest-retry, see `tests/clients/README.md`.

use std::time::Duration;

use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let attempts: u32 = args[0].parse().expect("a number of attempts");
    let pause = Duration::from_millis(10);
    let policy =
        ExponentialBackoff::builder().retry_bounds(pause, pause).build_with_max_retries(attempts - 1);
    let plain = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
    let client = ClientBuilder::new(plain.expect("a client"))
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    for call in args[1..].chunks_exact(2) {
        println!("{}", make(&client, &call[0], &call[1]).await);
    }
}

async fn make(client: &ClientWithMiddleware, kind: &str, url: &str) -> Value {
    let request = match kind {
        "get" => client.get(url),
        "post" => client.post(url).header("content-type", "application/json").body(r#"{"order":1}"#),
        "upload" => client.post(url).body(vec![b'u'; 5_000_000]),
        _ => panic!("unknown kind {kind}"),
    };
    match request.send().await {
        Ok(answer) => {
            let header =
                |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let line = json!({
                "status": answer.status().as_u16(),
                "retry_after": header("retry-after"),
                "denied": header("x-retry-denied"),
            });
            match answer.bytes().await {
                Ok(_) => line,
                Err(error) => json!({ "error": format!("{error:?}") }),
            }
        }
        Err(error) => json!({ "error": format!("{error:?}") }),
    }
}

//! The bytes of a denial.
use crate::abi::{ANSWER_LEN, Answer};

/// A clean HTTP/1.1 503 (RFC 9110, 15.6.4) with Retry-After (10.2.3) and the name of the budget that was
/// spent. It closes the connection, because the server's side of it is reset.
///
/// `budget` longer than fits is cut; every result is a complete answer.
pub fn render(budget: &str, retry_after_s: u32) -> Answer {
    let mut writer = Writer { answer: Answer { len: 0, reserved: 0, bytes: [0; ANSWER_LEN] } };
    writer.text("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: ");
    writer.number(retry_after_s);
    writer.text("\r\nx-retry-denied: ");
    writer.text(budget.get(..budget.len().min(64)).unwrap_or("budget"));
    writer.text("\r\nConnection: close\r\n\r\n");
    writer.answer
}

struct Writer {
    answer: Answer,
}

impl Writer {
    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(place) = self.answer.bytes.get_mut(self.answer.len as usize) {
                *place = byte;
                self.answer.len += 1;
            }
        }
    }

    fn number(&mut self, number: u32) {
        let mut digits = [0_u8; 10];
        let (mut at, mut rest) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(core::str::from_utf8(&digits[at..]).unwrap_or("1"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[test]
    fn a_parser_of_others_reads_it() {
        for (budget, after) in [("share", 1), ("token_pool", 0), ("none", u32::MAX)] {
            let answer = render(budget, after);
            let bytes = &answer.bytes[..answer.len as usize];
            let mut headers = [httparse::EMPTY_HEADER; 8];
            let mut response = httparse::Response::new(&mut headers);
            assert!(response.parse(bytes).expect("well formed").is_complete());
            assert_eq!(response.code, Some(503));
            let value = |name: &str| {
                let header = response.headers.iter().find(|header| header.name == name).expect("present");
                String::from_utf8_lossy(header.value).into_owned()
            };
            assert_eq!(value("x-retry-denied"), budget);
            assert_eq!(value("Retry-After"), std::format!("{after}"));
            assert_eq!(value("Content-Length"), "0");
        }
    }

    #[test]
    fn a_long_name_still_gives_a_complete_answer() {
        let answer = render(&"x".repeat(500), 1);
        assert!(answer.bytes[..answer.len as usize].ends_with(b"\r\n\r\n"));
    }
}

//! A small mail server, and what a mail looks like in a browser. It takes every mail, as the SMTP of the service sends it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A mail that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// Mailboxes of the envelope.
    pub to: Vec<String>,
    /// As it came, lines ended by CRLF.
    pub raw: String,
}

/// Talks with one client until it leaves; hands over each mail.
///
/// # Errors
/// When the line breaks.
pub async fn converse(stream: TcpStream, keep: impl Fn(Mail)) -> io::Result<()> {
    let mut line = BufReader::new(stream);
    let mut mail = Mail::default();
    say(&mut line, "220 demo.matins ESMTP").await?;
    while let Some(said) = hear(&mut line).await? {
        let verb = said.get(..4).unwrap_or(&said).to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" | "HELO" => say(&mut line, "250-demo.matins\r\n250 8BITMIME").await?,
            "RCPT" => {
                mail.to
                    .extend(said.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(a, _)| a.to_owned()));
                say(&mut line, "250 ok").await?;
            }
            "DATA" => {
                say(&mut line, "354 go ahead").await?;
                mail.raw = hear_text(&mut line).await?;
                keep(std::mem::take(&mut mail));
                say(&mut line, "250 taken").await?;
            }
            "MAIL" | "RSET" => {
                mail = Mail::default();
                say(&mut line, "250 ok").await?;
            }
            "QUIT" => return say(&mut line, "221 bye").await,
            _ => say(&mut line, "250 ok").await?,
        }
    }
    Ok(())
}

async fn say(line: &mut BufReader<TcpStream>, text: &str) -> io::Result<()> {
    line.write_all(format!("{text}\r\n").as_bytes()).await
}

async fn hear(line: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = line.read_until(b'\n', &mut bytes).await?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((read > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Up to the line with a single dot; doubled dots are single again.
async fn hear_text(line: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut raw = String::new();
    while let Some(text) = hear(line).await?.filter(|text| text != ".") {
        raw.push_str(text.strip_prefix('.').unwrap_or(&text));
        raw.push_str("\r\n");
    }
    Ok(raw)
}

/// Writes a mail as `<name>.eml` and what a reader sees of it as `<name>.html`; gives the path of the latter.
///
/// # Errors
/// When a file can't be written.
pub fn save(raw: &str, folder: &Path, name: &str) -> io::Result<PathBuf> {
    std::fs::write(folder.join(format!("{name}.eml")), raw)?;
    let path = folder.join(format!("{name}.html"));
    std::fs::write(&path, page(raw))?;
    Ok(path)
}

/// The HTML part with its pictures inside, so that a browser shows it as it is.
fn page(raw: &str) -> String {
    let parts = parts(raw);
    let html = parts.iter().find(|part| part.header("content-type").starts_with("text/html"));
    let mut page = html.map_or_else(
        || format!("<pre>{}</pre>", escape(raw)),
        |part| String::from_utf8_lossy(&part.bytes()).into_owned(),
    );
    for part in parts.iter().filter(|part| part.header("content-type").starts_with("image/")) {
        let cid = part.header("content-id").trim_matches(['<', '>']).to_owned();
        let picture = BASE64.encode(part.bytes());
        page = page.replace(&format!("cid:{cid}"), &format!("data:image/png;base64,{picture}"));
    }
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

struct Part<'a> {
    head: &'a str,
    body: &'a str,
}

impl Part<'_> {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(n, _)| n.trim().eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.trim())
    }

    fn bytes(&self) -> Vec<u8> {
        match self.header("content-transfer-encoding").to_ascii_lowercase().as_str() {
            "quoted-printable" => unquote(self.body),
            "base64" => BASE64.decode(self.body.split_whitespace().collect::<String>()).unwrap_or_default(),
            _ => self.body.as_bytes().to_vec(),
        }
    }
}

/// Every part at whatever depth, head and body apart. A part ends at a line that is one of the mail's boundaries.
fn parts(raw: &str) -> Vec<Part<'_>> {
    let named = raw.split("boundary=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let boundaries: Vec<&str> = named.map(|(boundary, _)| boundary).collect();
    let ends = |line: &str| {
        let marked = line.trim_end().strip_prefix("--");
        marked.is_some_and(|mark| boundaries.contains(&mark.strip_suffix("--").unwrap_or(mark)))
    };
    let (mut texts, mut start, mut at) = (Vec::new(), 0, 0);
    for line in raw.split_inclusive("\r\n") {
        if ends(line) {
            texts.push(&raw[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    texts.push(&raw[start..]);
    texts.into_iter().filter_map(|part| part.split_once("\r\n\r\n")).map(|(head, body)| Part { head, body }).collect()
}

/// Quoted-printable as bytes.
fn unquote(text: &str) -> Vec<u8> {
    let joined = text.replace("=\r\n", "");
    let mut pieces = joined.split('=');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(piece[2..].bytes());
            }
            None => bytes.extend(format!("={piece}").bytes()),
        }
    }
    bytes
}

/// The subject of a mail, whose words may be encoded.
pub fn subject(raw: &str) -> String {
    let head = raw.split("\r\n\r\n").next().unwrap_or_default().replace("\r\n ", " ");
    let line = head.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
    line.split(' ').map(decode_word).collect::<Vec<_>>().join(" ")
}

/// `=?utf-8?b?…?=` as text; every other word as it is.
fn decode_word(word: &str) -> String {
    let inner = word.strip_prefix("=?utf-8?b?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| BASE64.decode(inner).ok());
    bytes.map_or_else(|| word.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::email::eml;
    use crate::render::{InlineImage, MailContent};
    use tokio::net::TcpListener;

    fn raw() -> String {
        let content = MailContent {
            subject: "order-to-crm: 1 order – not in hubspot [#1]".to_owned(),
            text: "plain".to_owned(),
            html: format!(
                "<p>2 × 3 = 6 {}</p>{}<img src=\"cid:plot-1\">",
                "long line ".repeat(200),
                "<!--x-->".repeat(99)
            ),
            message_id: "1@x.example".to_owned(),
            references: vec![],
            list_id: "daily.x.example".to_owned(),
            images: vec![InlineImage::new("plot-1", b"png")],
        };
        let bytes = eml(&content, "Matins <m@x.example>", &["a@x.example".to_owned()], chrono::DateTime::UNIX_EPOCH);
        String::from_utf8(bytes.unwrap()).unwrap()
    }

    #[test]
    fn a_browser_sees_the_html_part_with_its_pictures() {
        let page = page(&raw());
        assert!(page.starts_with("<p>2 × 3 = 6 long line"), "{page}");
        assert!(page.contains("src=\"data:image/png;base64,cG5n"), "{page}");
        assert_eq!(page.matches("<!--x-->").count(), 99, "lines of the encoding may begin as boundaries do");
        assert!(!page.contains("plain"), "{page}");
    }

    #[test]
    fn a_subject_is_read_though_its_words_are_encoded() {
        assert_eq!(subject(&raw()), "order-to-crm: 1 order – not in hubspot [#1]");
    }

    #[test]
    fn what_is_no_mail_is_shown_as_it_is() {
        assert_eq!(page("a <b>"), "<pre>a &lt;b></pre>");
        assert_eq!(unquote("a=zz=3D"), b"a=zz=");
    }

    #[tokio::test]
    async fn a_conversation_hands_over_the_mail_with_its_dots() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        client
            .write_all(b"EHLO x\r\nMAIL FROM:<m@x>\r\nRCPT TO:<a@x>\r\nDATA\r\nhi\r\n..dot\r\n.\r\nQUIT\r\n")
            .await
            .unwrap();
        let kept = std::sync::Mutex::new(Vec::new());
        let (stream, _) = listener.accept().await.unwrap();
        converse(stream, |mail| kept.lock().unwrap().push(mail)).await.unwrap();
        let expected = Mail { to: vec!["a@x".to_owned()], raw: "hi\r\n.dot\r\n".to_owned() };
        assert_eq!(kept.into_inner().unwrap(), [expected]);
    }
}

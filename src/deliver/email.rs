//! A mail as it goes over the wire: multipart/alternative, related with inline pictures, ASCII headers, short lines.
//! Pure: the same content gives the same bytes. The conversation with the server is `smtp`'s.

use crate::mailbox;
use crate::render::words::one_line;
use crate::render::{InlineImage, MailContent};
use chrono::{DateTime, Utc};
use lettre::message::header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body, Mailbox, Message, MultiPart, SinglePart};
use ring::digest::{SHA256, digest};

/// Why a mail can't be built.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// A mailbox is not `a@b` or `Name <a@b>`.
    #[error("{0:?} is no mailbox")]
    Mailbox(String),
    /// A stored picture can't be read.
    #[error("picture {0:?} can't be read")]
    Image(String),
    /// The parts don't make a mail.
    #[error("mail: {0}")]
    Build(#[from] lettre::error::Error),
}

/// Reads `Name <a@b>` or `a@b` for a header.
///
/// # Errors
/// When it is neither.
pub fn read_mailbox(text: &str) -> Result<Mailbox, MailError> {
    let wrong = || MailError::Mailbox(text.to_owned());
    let read = mailbox::Mailbox::parse(text).ok_or_else(wrong)?;
    let address = read.address.parse().map_err(|_| wrong())?;
    Ok(Mailbox::new(read.name.as_deref().map(one_line), address))
}

/// The bytes of a mail, lines ended by CRLF. `from` and `to` are mailboxes as in config.
///
/// # Errors
/// When a mailbox or a picture can't be read.
pub fn eml(content: &MailContent, from: &str, to: &[String], date: DateTime<Utc>) -> Result<Vec<u8>, MailError> {
    let mut builder = Message::builder().from(read_mailbox(from)?);
    for mailbox in to {
        builder = builder.to(read_mailbox(mailbox)?);
    }
    builder = builder
        .subject(one_line(&content.subject))
        .date(date.into())
        .message_id(Some(bracketed(&content.message_id)))
        .header(AutoSubmitted)
        .header(ListId(bracketed(&content.list_id)));
    if let Some(last) = content.references.last() {
        let thread: Vec<_> = content.references.iter().map(|id| bracketed(id)).collect();
        builder = builder.in_reply_to(bracketed(last)).references(thread.join(" "));
    }
    Ok(builder.multipart(parts(content)?)?.formatted())
}

fn parts(content: &MailContent) -> Result<MultiPart, MailError> {
    let alternative = MultiPart::alternative()
        .boundary(boundary(content, "alternative"))
        .singlepart(text_part(&content.text, ContentType::TEXT_PLAIN));
    let html = text_part(&content.html, ContentType::TEXT_HTML);
    if content.images.is_empty() {
        return Ok(alternative.singlepart(html));
    }
    let mut related = MultiPart::related().boundary(boundary(content, "related")).singlepart(html);
    for image in &content.images {
        related = related.singlepart(picture(image)?);
    }
    Ok(alternative.multipart(related))
}

fn text_part(text: &str, content_type: ContentType) -> SinglePart {
    let text = text.replace("\r\n", "\n");
    // Quoted-printable always fits: it is chosen unless the text is plain ASCII with short lines.
    let short = text.is_ascii() && text.lines().all(|line| line.len() <= 76);
    let body = if short {
        Body::new(text)
    } else {
        Body::new_with_encoding(text, ContentTransferEncoding::QuotedPrintable)
            .unwrap_or_else(|bytes| Body::new(String::from_utf8_lossy(&bytes).into_owned()))
    };
    SinglePart::builder().header(content_type).body(body)
}

fn picture(image: &InlineImage) -> Result<SinglePart, MailError> {
    let wrong = || MailError::Image(image.cid.clone());
    let png = image.png().map_err(|_| wrong())?;
    let content_type = ContentType::parse("image/png").map_err(|_| wrong())?;
    Ok(Attachment::new_inline(one_line(&image.cid)).body(png, content_type))
}

/// A boundary that follows from the message, so that resending gives the same bytes.
fn boundary(content: &MailContent, part: &str) -> String {
    let hash = digest(&SHA256, format!("{part} {}", content.message_id).as_bytes());
    hash.as_ref().iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// An id in brackets: printable ASCII without spaces or brackets, whatever it was made from.
fn bracketed(id: &str) -> String {
    let id: String = id.chars().filter(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>')).collect();
    format!("<{id}>")
}

#[derive(Clone)]
struct ListId(String);

impl Header for ListId {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("List-Id")
    }

    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self(text.to_owned()))
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), self.0.clone())
    }
}

/// RFC 3834: no out-of-office notes, please.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::{MessageParser, MimeHeaders as _};
    use proptest::prelude::*;

    fn content() -> MailContent {
        MailContent {
            subject: "Zahlung 🔥 – 14 orders".into(),
            text: "14 orders have not reached hubspot – Ü".into(),
            html: "<p>14 orders</p><img src=\"cid:plot\">".into(),
            message_id: "7.page@matins.example.com".into(),
            references: vec!["1.page@matins.example.com".into(), "2.page@matins.example.com".into()],
            list_id: "pages.matins.example.com".into(),
            images: vec![InlineImage::new("plot", b"\x89PNG fake")],
        }
    }

    fn bytes(content: &MailContent) -> Vec<u8> {
        let date = "2026-03-02T09:00:00Z".parse().unwrap();
        eml(content, "Büro Süd <matins@example.com>", &["Zoë Ñandú <zoe@example.com>".to_owned()], date).unwrap()
    }

    fn check_wire(raw: &[u8]) {
        let text = String::from_utf8(raw.to_vec()).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.is_ascii(), "{head}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "bare line ends");
        assert!(text.split("\r\n").all(|line| line.len() <= 998));
    }

    #[test]
    fn headers_are_ascii_and_read_back_as_written() {
        let raw = bytes(&content());
        check_wire(&raw);
        let mail = MessageParser::default().parse(&raw).unwrap();
        assert_eq!(mail.subject(), Some("Zahlung 🔥 – 14 orders"));
        let from = mail.from().unwrap().first().unwrap();
        assert_eq!((from.name(), from.address()), (Some("Büro Süd"), Some("matins@example.com")));
        assert_eq!(mail.to().unwrap().first().unwrap().name(), Some("Zoë Ñandú"));
        assert_eq!(mail.message_id(), Some("7.page@matins.example.com"));
        assert_eq!(mail.in_reply_to().as_text(), Some("2.page@matins.example.com"));
        let references = mail.references().as_text_list().unwrap();
        assert_eq!(references, ["1.page@matins.example.com", "2.page@matins.example.com"]);
        let head = String::from_utf8_lossy(&raw);
        assert!(head.contains("Auto-Submitted: auto-generated\r\n"));
        assert!(head.contains("List-Id: <pages.matins.example.com>\r\n"));
        assert!(head.contains("Date: Mon, 02 Mar 2026 09:00:00"));
    }

    #[test]
    fn text_comes_before_html_and_the_picture_is_inline() {
        let raw = bytes(&content());
        let mail = MessageParser::default().parse(&raw).unwrap();
        let kinds: Vec<_> = mail
            .parts
            .iter()
            .filter_map(|p| p.content_type().map(|t| format!("{}/{}", t.ctype(), t.subtype().unwrap_or_default())))
            .collect();
        assert_eq!(kinds, ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]);
        assert_eq!(mail.body_text(0).unwrap(), "14 orders have not reached hubspot – Ü");
        assert_eq!(mail.parts[4].content_id(), Some("plot"));
        assert_eq!(mail.parts[4].contents(), b"\x89PNG fake");
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(bytes(&content()), bytes(&content()));
    }

    #[test]
    fn nothing_opens_a_header_of_its_own() {
        let mut hostile = content();
        hostile.subject = "a\r\nBcc: evil@example.com\u{7}".into();
        hostile.message_id = "7\r\nX-Injected: yes@m".into();
        let raw = bytes(&hostile);
        check_wire(&raw);
        let mail = MessageParser::default().parse(&raw).unwrap();
        assert_eq!(mail.subject(), Some("a Bcc: evil@example.com"));
        assert!(mail.bcc().is_none() && mail.header("X-Injected").is_none());
    }

    #[test]
    fn a_name_can_neither_open_a_header_nor_turn_the_line() {
        let mailbox = read_mailbox("As\u{202e}ha\u{7} <asha@example.com>").unwrap();
        assert_eq!((mailbox.name.as_deref(), mailbox.email.to_string().as_str()), (Some("Asha"), "asha@example.com"));
        assert!(read_mailbox("nobody").is_err());
        assert!(read_mailbox("a@example.com\r\nBcc: b@example.com").is_err());
    }

    proptest! {
        #[test]
        fn any_text_travels_unharmed(text in "\\PC{0,2000}", subject in ".{0,200}") {
            let mut any = content();
            any.text = text.clone();
            any.subject = subject;
            let raw = bytes(&any);
            check_wire(&raw);
            let mail = MessageParser::default().parse(&raw).unwrap();
            let body = mail.body_text(0).unwrap();
            prop_assert_eq!(body.trim_end(), text.trim_end());
        }
    }
}

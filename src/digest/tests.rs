//! What a digest promises, over arbitrary input; and what one looks like, on every channel.

use super::sample::{large, night, nothing, quiet};
use super::*;
use crate::deliver::Channel;
use crate::render::{Content, MailFrame, Rendered, Renderer};

fn render(input: &DigestInput, channel: Channel) -> Content {
    let view = compose(input);
    let folder = format!("digest-{}", view.digest);
    let frame = MailFrame { images: view.plot.images(), ..MailFrame::default() };
    let Rendered { content, problem } =
        Renderer::new(&[]).0.render(&folder, channel, &serde_json::to_value(&view).unwrap(), &frame);
    assert_eq!(problem, None);
    content
}

#[test]
fn dump() {
    for (name, input) in [
        ("night", night("daily")),
        ("week", night("weekly")),
        ("hour", night("hourly")),
        ("large", large("daily", 120)),
        ("quiet", quiet("daily")),
        ("nothing", nothing("daily")),
    ] {
        let Content::Email(mail) = render(&input, Channel::Email) else { panic!() };
        let mut html = mail.html.clone();
        for image in &mail.images {
            html = html.replace(&format!("cid:{}", image.cid), &format!("data:image/png;base64,{}", image.png_base64));
        }
        std::fs::write(format!("/tmp/digest-out/{name}.html"), &html).unwrap();
        std::fs::write(format!("/tmp/digest-out/{name}.txt"), format!("{}\n\n{}", mail.subject, mail.text)).unwrap();
        println!("{name} {} {:?}", mail.html.len(), mail.images.iter().map(|i| i.png_base64.len()).collect::<Vec<_>>());
        let Content::Slack(slack) = render(&input, Channel::Slack) else { panic!() };
        std::fs::write(format!("/tmp/digest-out/{name}.json"), serde_json::to_string_pretty(&slack).unwrap()).unwrap();
    }
}

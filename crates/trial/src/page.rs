use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wt_units::{Bytes, counted};

/// One object of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageObject {
    /// What is asked for: the path and query of an HTTP request. `None` asks for the first `size` bytes of whatever the far
    /// end offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many bytes it has.
    pub size: Bytes,
}

/// A page as its objects: the first one alone, since it names the others; then these, over several connections at once, each
/// taking the next that nobody has asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// How it is called.
    pub name: String,
    /// The objects, in the order in which they are asked for.
    pub objects: Vec<PageObject>,
    /// How many connections.
    pub connections: u32,
    /// Whether it is loaded over HTTP/2: then there is one connection, and all objects but the first are asked for at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// Whether each object has a connection of its own, as from a server without keep-alive: then `connections` is how many
    /// there are at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close_each: bool,
    /// Whether a server that offers both is to be spoken to through TLS, as with HTTP/2 it always is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

/// Connections that browsers open to one host over HTTP/1.1.
///
/// # Source
/// Chromium, `kDefaultMaxSocketsPerGroup`; Firefox, `network.http.max-persistent-connections-per-server`: both 6.
pub const USUAL_CONNECTIONS: u32 = 6;

/// Objects of one page at most.
pub const MOST_OBJECTS: usize = 2_000;

/// What the built-in page has in bytes: the document, style sheets, scripts, pictures. The kinds are those of shop pages of
/// about 2012; number and sum are those of the page whose load times are in `studies/first-window-pages.csv`.
const BUILT_IN: [u32; 44] = [
    // The document, then 3 style sheets and 6 scripts.
    32_400, 16_200, 6_800, 3_100, 33_600, 21_500, 11_900, 7_300, 4_200, 2_600, // 8 pictures of goods.
    12_800, 11_400, 10_300, 9_700, 9_100, 8_600, 8_200, 7_800, // 12 thumbnails.
    3_900, 3_700, 3_500, 3_400, 3_200, 3_100, 2_900, 2_800, 2_700, 2_600, 2_400,
    2_300, // 13 icons, and one of a pixel.
    1_400, 1_200, 1_100, 1_000, 900, 800, 700, 600, 500, 450, 400, 350, 300, 1_400,
];

impl Page {
    /// The built-in page: 44 requests, 265,100 bytes, 6 connections.
    #[must_use]
    pub fn built_in() -> Self {
        let objects = BUILT_IN.iter().map(|size| PageObject { path: None, size: Bytes(u64::from(*size)) }).collect();
        Self {
            name: "built-in".to_owned(),
            objects,
            connections: USUAL_CONNECTIONS,
            http2: false,
            close_each: false,
            tls: false,
        }
    }

    /// One object over one connection.
    #[must_use]
    pub fn single(size: Bytes) -> Self {
        Self {
            name: format!("one object of {}", size.human()),
            objects: vec![PageObject { path: None, size }],
            connections: 1,
            http2: false,
            close_each: false,
            tls: false,
        }
    }

    /// The bytes of all objects.
    #[must_use]
    pub fn size(&self) -> Bytes {
        Bytes(self.objects.iter().map(|object| object.size.get()).sum())
    }
}

impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.connections as usize;
        let (objects, size) = (self.objects.len(), self.size().get() as f64 / 1e3);
        write!(f, "a page of {} ({size:.1} kB) over ", counted(objects, "object"))?;
        if self.close_each {
            write!(f, "a cold connection for each, {connections} at once")?;
        } else {
            write!(f, "{}", counted(connections, "cold connection"))?;
        }
        f.write_str(if self.http2 { " with HTTP/2" } else { "" })?;
        f.write_str(if self.tls && !self.http2 { " through TLS" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_page_is_that_of_the_study() {
        let page = Page::built_in();
        assert_eq!((page.objects.len(), page.size(), page.connections), (44, Bytes(265_100), 6));
        assert!(page.to_string().starts_with("a page of 44 objects (265.1 kB) over 6"), "{page}");
        let each = Page { close_each: true, ..page };
        assert!(each.to_string().ends_with("over a cold connection for each, 6 at once"), "{each}");
    }
}

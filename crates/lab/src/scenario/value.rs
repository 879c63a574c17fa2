//! Values of a TOML file that know where they stand, and errors that know their field.
//!
//! The `toml` crate reads the file's grammar; from its tree to our tables this goes by itself, so that what is wrong comes as
//! values (the field, what is known instead, whether it is the type) and nobody has to take a message apart.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::Range;
use toml::de::{DeInteger, DeTable, DeValue};

/// A value and the bytes of the file where it stands.
#[derive(Debug, Clone)]
pub(super) struct SpannedValue<T> {
    span: Range<usize>,
    value: T,
}

impl<T> SpannedValue<T> {
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn get_ref(&self) -> &T {
        &self.value
    }
}

/// What kind of mistake it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A field or a word that isn't known, and those that are.
    Unknown {
        /// What was written.
        word: String,
        /// What could have been.
        known: &'static [&'static str],
    },
    /// A value of another type: a number where a text must be.
    Type,
    /// Whatever else.
    Other,
}

/// What is wrong with a value.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct ValueError {
    pub(super) mistake: Mistake,
    pub(super) message: String,
    /// The byte at which it stands.
    pub(super) at: Option<usize>,
    /// The field and the tables that it is in, the innermost first.
    pub(super) path: Vec<String>,
    /// The place within the innermost list, if it is in one.
    pub(super) item: Option<u32>,
    /// The place within the outermost list of tables, if it is in one.
    pub(super) table: Option<u32>,
}

impl ValueError {
    fn new(mistake: Mistake, message: String) -> Self {
        Self { mistake, message, at: None, path: Vec::new(), item: None, table: None }
    }

    fn unknown(what: &str, word: &str, known: &'static [&'static str]) -> Self {
        let quoted: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
        let expected = match quoted.as_slice() {
            [] => "there are none".to_owned(),
            [one] => format!("expected {one}"),
            [one, other] => format!("expected {one} or {other}"),
            several => format!("expected one of {}", several.join(", ")),
        };
        let mistake = Mistake::Unknown { word: word.to_owned(), known };
        Self::new(mistake, format!("unknown {what} `{word}`, {expected}"))
    }

    fn at(mut self, span: &Range<usize>) -> Self {
        self.at.get_or_insert(span.start);
        self
    }

    fn within(mut self, table: &str) -> Self {
        self.path.push(table.to_owned());
        self
    }

    fn item(mut self, item: u32) -> Self {
        if self.path.is_empty() {
            self.item.get_or_insert(item);
        } else {
            self.table = Some(item);
        }
        self
    }
}

impl de::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(Mistake::Other, message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Mistake::Type, format!("invalid type: {unexpected}, expected {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown("variant", variant, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown("field", field, expected)
    }
}

/// Reads the whole of a file.
///
/// # Errors
/// [`ValueError`] of the first mistake.
pub(super) fn read<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, ValueError> {
    let root = DeTable::parse(text).map_err(|error| ValueError {
        at: error.span().map(|span| span.start),
        ..ValueError::new(Mistake::Other, error.message().to_owned())
    })?;
    T::deserialize(Node { span: 0..0, value: &DeValue::Table(root.into_inner()) })
}

/// What a table of a list of tables is called, in a file whose grammar is right: its field `name`.
pub(super) fn name_of(text: &str, list: &str, place: u32) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let DeValue::Array(tables) = root.get_ref().get(list)?.get_ref() else { return None };
    let DeValue::Table(table) = tables.get(place as usize)?.get_ref() else { return None };
    let DeValue::String(name) = table.get("name")?.get_ref() else { return None };
    Some(name.to_string())
}

/// One value of the tree.
#[derive(Clone)]
struct Node<'t> {
    span: Range<usize>,
    value: &'t DeValue<'t>,
}

fn integer<'de, V: Visitor<'de>>(number: &DeInteger<'_>, visitor: V) -> Result<V::Value, ValueError> {
    let (text, radix) = (number.as_str(), number.radix());
    if let Ok(number) = i64::from_str_radix(text, radix) {
        return visitor.visit_i64(number);
    }
    match u64::from_str_radix(text, radix) {
        Ok(number) => visitor.visit_u64(number),
        Err(_) => Err(de::Error::custom(format!("{number} is too large"))),
    }
}

impl<'de> Node<'_> {
    fn visit<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, ValueError> {
        match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => integer(number, visitor),
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(de::Error::custom(format!("{number} is no number"))),
            },
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Datetime(_) => Err(de::Error::invalid_type(Unexpected::Other("date or time"), &visitor)),
            DeValue::Array(values) => visitor.visit_seq(Items { values: values.iter(), next: 0 }),
            DeValue::Table(table) => visitor.visit_map(Entries { entries: table.iter(), value: None }),
        }
    }
}

/// What [`SpannedValue`] calls itself while it is read.
const SPANNED: &str = "Spanned with its place";

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.visit(visitor).map_err(|error| error.at(&self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        if name == SPANNED {
            visitor.visit_seq(PlacedValue { node: self, next: 0 })
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let word = match self.value {
            DeValue::String(word) => word,
            _ => return self.deserialize_str(visitor),
        };
        let read: Result<V::Value, ValueError> = visitor.visit_enum(StrDeserializer::new(word));
        read.map_err(|error| error.at(&self.span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple map
        struct identifier ignored_any
    }
}

/// The fields of a table.
struct Entries<'t, I> {
    entries: I,
    value: Option<(&'t str, Node<'t>)>,
}

type Key<'t> = toml::Spanned<toml::de::DeString<'t>>;

impl<'de, 't, I> MapAccess<'de> for Entries<'t, I>
where
    I: Iterator<Item = (&'t Key<'t>, &'t toml::Spanned<DeValue<'t>>)>,
{
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let name: &str = key.get_ref();
        self.value = Some((name, Node { span: value.span(), value: value.get_ref() }));
        let name: StrDeserializer<'_, ValueError> = name.into_deserializer();
        seed.deserialize(name).map(Some).map_err(|error| error.at(&key.span()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let Some((name, node)) = self.value.take() else { return Err(de::Error::custom("a value before its key")) };
        let span = node.span.clone();
        seed.deserialize(node).map_err(|error| error.at(&span).within(name))
    }
}

/// The items of a list.
struct Items<I> {
    values: I,
    next: u32,
}

impl<'de, 't, I: Iterator<Item = &'t toml::Spanned<DeValue<'t>>>> SeqAccess<'de> for Items<I> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ValueError> {
        let Some(value) = self.values.next() else { return Ok(None) };
        let item = self.next;
        self.next += 1;
        let node = Node { span: value.span(), value: value.get_ref() };
        seed.deserialize(node).map(Some).map_err(|error| error.at(&value.span()).item(item))
    }
}

/// The three parts of a [`SpannedValue`].
struct PlacedValue<'t> {
    node: Node<'t>,
    next: usize,
}

impl<'de> SeqAccess<'de> for PlacedValue<'_> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ValueError> {
        self.next += 1;
        match self.next {
            1 => seed.deserialize(self.node.span.start.into_deserializer()).map(Some),
            2 => seed.deserialize(self.node.span.end.into_deserializer()).map(Some),
            3 => seed.deserialize(self.node.clone()).map(Some),
            _ => Ok(None),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SpannedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = SpannedValue<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<SpannedValue<T>, A::Error> {
                let missing = || de::Error::custom("only a scenario file's values know where they stand");
                let start = parts.next_element()?.ok_or_else(missing)?;
                let end = parts.next_element()?.ok_or_else(missing)?;
                Ok(SpannedValue { span: start..end, value: parts.next_element()?.ok_or_else(missing)? })
            }
        }

        deserializer.deserialize_tuple_struct(SPANNED, 3, Parts(PhantomData))
    }
}

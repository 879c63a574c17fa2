//! Objects of JSON that are read by field and written again as they were.
//!
//! What the journal holds was written by every version of the program there ever was, and by others. Such an object is read
//! into a struct of optional fields; what isn't understood stays beside them in `more`, so that writing it again gives the
//! same JSON: fields that this version doesn't know, fields that are there without a value (`null`), and those whose value
//! is of another type or would be written differently.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::any::Any;

/// Reads one field. What can't be written again exactly as it is goes to `more` as well.
#[doc(hidden)]
pub fn take<T: DeserializeOwned + Serialize + 'static>(
    name: &str,
    value: Value,
    more: &mut Map<String, Value>,
) -> Option<T> {
    if value.is_null() {
        more.insert(name.to_owned(), value);
        return None;
    }
    let mut value = Some(value);
    // What is kept as it is needs no reading: it may be large.
    if let Some(value) = (&mut value as &mut dyn Any).downcast_mut::<Option<T>>() {
        return value.take();
    }
    let value = value.unwrap_or_default();
    let read = T::deserialize(&value).ok();
    let same = read.as_ref().is_some_and(|read| serde_json::to_value(read).is_ok_and(|again| again == value));
    if !same {
        more.insert(name.to_owned(), value);
    }
    read
}

/// Writes one field.
///
/// # Errors
/// That of a value that JSON can't say.
#[doc(hidden)]
pub fn put<T: Serialize>(name: &str, value: Option<&T>, map: &mut Map<String, Value>) -> Result<(), serde_json::Error> {
    if let Some(value) = value {
        map.insert(name.to_owned(), serde_json::to_value(value)?);
    }
    Ok(())
}

/// Adds what isn't understood. Where it is of a field that is, it is the field's own spelling; a `null` is older than the value.
#[doc(hidden)]
pub fn add(more: &Map<String, Value>, map: &mut Map<String, Value>) {
    for (name, value) in more {
        if !(value.is_null() && map.contains_key(name)) {
            map.insert(name.clone(), value.clone());
        }
    }
}

/// Declares a struct of optional fields that is read from an object of JSON, field by field under their own names, and is
/// written again as it was; `more` holds what isn't understood.
#[macro_export]
macro_rules! kept_object {
    ($(#[$about:meta])* pub struct $object:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $object {
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// What isn't understood, and what is there without a value: written again as it is.
            pub more: $crate::json::Map<String, $crate::json::Value>,
        }

        impl $object {
            fn take(&mut self, name: String, value: $crate::json::Value) {
                match name.as_str() {
                    $(stringify!($field) => self.$field = $crate::kept::take(&name, value, &mut self.more),)*
                    _ => drop(self.more.insert(name, value)),
                }
            }

            fn written(&self) -> Result<$crate::json::Map<String, $crate::json::Value>, $crate::json::Error> {
                let mut map = $crate::json::Map::new();
                $($crate::kept::put(stringify!($field), self.$field.as_ref(), &mut map)?;)*
                $crate::kept::add(&self.more, &mut map);
                Ok(map)
            }
        }

        impl From<$crate::json::Map<String, $crate::json::Value>> for $object {
            fn from(map: $crate::json::Map<String, $crate::json::Value>) -> Self {
                let mut object = Self::default();
                map.into_iter().for_each(|(name, value)| object.take(name, value));
                object
            }
        }

        impl serde::Serialize for $object {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.written().map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $object {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $object;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$object, A::Error> {
                        let mut object = $object::default();
                        while let Some((name, value)) = map.next_entry()? {
                            object.take(name, value);
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_map(Visitor)
            }
        }
    };
}

/// Says of these fields of a [`kept_object!`] that they have no value, where they have none: they are written as `null`.
#[macro_export]
macro_rules! say_none {
    ($object:expr; $($field:ident),* $(,)?) => {
        $(if $object.$field.is_none() {
            $object.more.insert(stringify!($field).to_owned(), $crate::json::Value::Null);
        })*
    };
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro makes public structs")]
mod tests {
    use serde_json::{Value, json};

    kept_object! {
        /// An object.
        pub struct Thing {
            /// A number.
            number: u64,
            /// A share.
            share: f64,
            /// A list.
            list: Vec<u64>,
            /// An object within.
            inner: Inner,
        }
    }

    kept_object! {
        /// Another one.
        pub struct Inner {
            /// A word.
            word: String,
        }
    }

    #[test]
    fn whatever_is_read_is_written_again_as_it_was() {
        for value in [
            json!({}),
            json!({"number": 5, "share": 0.5, "list": [1, 2], "inner": {"word": "a"}}),
            json!({"number": null, "share": null, "inner": null}),
            json!({"number": -5, "share": "half", "list": [1, null], "inner": [], "new": {"deep": [1.0, null]}}),
            json!({"number": 5.0, "share": 1, "inner": {"word": 7, "other": null}}),
        ] {
            let thing: Thing = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&thing).unwrap(), value, "{thing:?}");
        }
        assert!(serde_json::from_value::<Thing>(json!([1])).is_err());
    }

    #[test]
    fn what_is_spelt_differently_is_understood_all_the_same() {
        let thing: Thing = serde_json::from_value(json!({"share": 1, "number": 5.0})).unwrap();
        assert_eq!((thing.share, thing.number), (Some(1.0), None));
    }

    #[test]
    fn a_value_that_is_set_later_stands_in_place_of_none() {
        let mut thing = Thing { number: Some(5), ..Thing::default() };
        say_none!(thing; number, share);
        assert_eq!(serde_json::to_value(&thing).unwrap(), json!({"number": 5, "share": null}));
        thing.share = Some(0.25);
        assert_eq!(serde_json::to_value(&thing).unwrap()["share"], Value::from(0.25));
    }
}

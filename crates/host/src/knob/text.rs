use super::error::KnobError;
use super::kind::{Kind, Knob};
use super::value::{Value, three};
use wt_units::{Bytes, Multiple, parse_duration};

impl Knob {
    /// Reads a value of this setting.
    ///
    /// # Errors
    /// [`KnobError::BadValue`] with what is allowed.
    pub fn parse(&self, text: &str) -> Result<Value, KnobError> {
        self.parse_spelt(text, false)
    }

    /// The same; with the kernel's name for the setting, a number is the kernel's number.
    pub(super) fn parse_spelt(&self, text: &str, kernel: bool) -> Result<Value, KnobError> {
        let word = text.trim();
        let bad = || KnobError::BadValue { key: self.name, text: text.to_owned(), allowed: self.allowed() };
        if word.eq_ignore_ascii_case("auto") || word.eq_ignore_ascii_case("default") {
            return Ok(Value::Auto);
        }
        let within =
            |number: u64, min, max| if (min..=max).contains(&number) { Ok(Value::Number(number)) } else { Err(bad()) };
        let bytes = |word: &str| word.parse::<Bytes>().map(Bytes::get).map_err(|_| bad());
        match self.kind {
            Kind::Size { min, max } => within(bytes(word)?, min, max),
            Kind::Window { min, max } => match Multiple::read(word) {
                Some(Ok(Multiple::OfMss(times))) => Ok(Value::TimesMss(times)),
                Some(Ok(Multiple::OfMtu(times))) => Ok(Value::TimesMtu(times)),
                Some(Err(())) => Err(bad()),
                None => within(bytes(word)?, min, max),
            },
            Kind::Segment { .. } if matches!(word, "from-mtu" | "computed" | "mtu-40" | "mtu-60") => Ok(Value::FromMtu),
            Kind::Segment { min, max } => within(bytes(word)?, min, max),
            Kind::Number { zero_is_auto: true, .. } if word == "0" => Ok(Value::Auto),
            Kind::Number { min, max, .. } => within(word.replace('_', "").parse().map_err(|_| bad())?, min, max),
            Kind::Millis { min, max } => {
                let millis = match word.parse::<u64>() {
                    Ok(number) => number,
                    Err(_) => u64::try_from(parse_duration(word).map_err(|_| bad())?.as_millis()).unwrap_or(u64::MAX),
                };
                within(millis, min, max)
            }
            Kind::Choice(words) => choice(words, word, kernel).ok_or_else(bad),
            Kind::Three { min, max, .. } => {
                let parts: Vec<u64> = word
                    .split([' ', '\t', ','])
                    .filter(|part| !part.is_empty())
                    .map(bytes)
                    .collect::<Result<_, _>>()?;
                let parts: [u64; 3] = parts.try_into().map_err(|_| bad())?;
                let rising = parts[0] <= parts[1] && parts[1] <= parts[2];
                if rising && parts[0] >= min && parts[2] <= max { Ok(Value::Three(parts)) } else { Err(bad()) }
            }
            Kind::Name if is_name(word) => Ok(Value::word(word)),
            Kind::Names if !word.is_empty() && word.split([' ', ',']).all(is_name) => {
                Ok(Value::Word(word.replace(',', " ")))
            }
            Kind::Name | Kind::Names => Err(bad()),
        }
    }

    /// What may be written for it, as an error or a help text names it.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Size { min, max } => format!("auto or {min} to {max} bytes"),
            Kind::Window { min, max } => {
                format!("auto, {min} to {max} bytes, or a multiple of the MSS such as 4x or of the MTU such as 33xmtu")
            }
            Kind::Segment { min, max } => format!("auto, {min} to {max} bytes, or from-mtu (MTU - 40, IPv6 MTU - 60)"),
            Kind::Number { min, max, zero_is_auto: true } => format!("auto (or 0) or {min} to {max}"),
            Kind::Number { min, max, .. } => format!("auto or {min} to {max}"),
            Kind::Millis { min, max } => format!("auto or {min}ms to {max}ms"),
            Kind::Choice(words) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("auto, {}", words.join(", "))
            }
            Kind::Three { min, max, pages } => {
                let unit = if pages { "pages" } else { "bytes" };
                format!("auto or three rising sizes from {min} to {max} {unit}, such as \"4096 131072 6291456\"")
            }
            Kind::Name => "auto or a name of at most 15 letters, digits, _, - and .".to_owned(),
            Kind::Names => "names of at most 15 letters, digits, _, - and ., with spaces between them".to_owned(),
        }
    }

    /// The value that the kernel's text for it means.
    #[must_use]
    pub fn decode(&self, text: &str) -> Value {
        let word = text.trim();
        match self.kind {
            Kind::Choice(words) => {
                let number = word.parse().ok();
                let known = words.iter().find(|(_, code)| Some(*code) == number).map(|(word, _)| Value::word(word));
                known.or_else(|| number.map(Value::Number)).unwrap_or_else(|| Value::word(word))
            }
            Kind::Three { .. } => three(word).map_or_else(|| Value::word(word), Value::Three),
            Kind::Name | Kind::Names => Value::word(word),
            _ => word.parse().map_or_else(|_| Value::word(word), Value::Number),
        }
    }

    /// The kernel's text for a value; `None` for one that isn't resolved.
    #[must_use]
    pub fn encode(&self, value: &Value) -> Option<String> {
        match (self.kind, value) {
            (Kind::Choice(words), Value::Word(word)) => {
                words.iter().find(|(known, _)| known == word).map(|(_, code)| code.to_string())
            }
            (_, Value::Number(_) | Value::Word(_)) => Some(value.to_string()),
            (_, Value::Three(sizes)) => Some(sizes.map(|size| size.to_string()).join("\t")),
            _ => None,
        }
    }
}

fn choice(words: &[(&str, u64)], word: &str, kernel: bool) -> Option<Value> {
    let lower = word.to_ascii_lowercase();
    let named = |wanted: &str| words.iter().find(|(known, _)| *known == wanted).map(|(known, _)| Value::word(known));
    if let Some(value) = named(&lower) {
        return Some(value);
    }
    match lower.as_str() {
        "true" | "yes" | "1" if !kernel => return named("on"),
        "false" | "no" | "0" if !kernel => return named("off"),
        _ => {}
    }
    let number: u64 = lower.parse().ok()?;
    words.iter().find(|(_, code)| *code == number).map(|(known, _)| Value::word(known))
}

fn is_name(word: &str) -> bool {
    (1..=15).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

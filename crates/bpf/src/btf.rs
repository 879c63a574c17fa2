//! BTF: the types of the kernel, and those of an object.
//!
//! # Source
//! Documentation/bpf/btf.rst of Linux.

use crate::{FormatError, text_at, u16_at, u32_at};
use std::collections::HashMap;

/// Kinds of types.
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const ENUM64: u32 = 19;
/// Typedef, volatile, const, restrict, type tag: names and qualifiers of another type.
const ALIASES: [u32; 5] = [8, 9, 10, 11, 18];

/// Types, by number from 1.
#[derive(Debug, Clone)]
pub struct Btf {
    bytes: Vec<u8>,
    /// Where each type begins; the first one is `void`.
    types: Vec<usize>,
    /// Where the texts begin.
    texts: usize,
    /// Structs by their names; the first one of each.
    structs: HashMap<String, u32>,
}

/// A member of a struct, or an element of one of its arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its type.
    pub type_id: u32,
    /// From the beginning of the struct.
    pub bit_offset: u32,
    /// Bits of a bit field; 0 for anything else.
    pub bits: u32,
}

struct Member<'a> {
    name: &'a str,
    field: Field,
}

impl Btf {
    /// Reads what the kernel shows at `/sys/kernel/btf/vmlinux`, or an object's `.BTF`.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, FormatError> {
        if u16_at(&bytes, 0)? != 0xEB9F {
            return Err(FormatError::new("no BTF in this machine's byte order"));
        }
        let header = u32_at(&bytes, 4)? as usize;
        let from = header + u32_at(&bytes, 8)? as usize;
        let end = from + u32_at(&bytes, 12)? as usize;
        let texts = header + u32_at(&bytes, 16)? as usize;
        let mut types = vec![usize::MAX];
        let mut at = from;
        while at < end {
            types.push(at);
            let info = u32_at(&bytes, at + 4)?;
            let count = (info & 0xFFFF) as usize;
            at += 12
                + match info >> 24 & 0x1F {
                    INT | VAR | DECL_TAG => 4,
                    ARRAY => 12,
                    STRUCT | UNION | DATASEC | ENUM64 => 12 * count,
                    ENUM | FUNC_PROTO => 8 * count,
                    _ => 0,
                };
        }
        let mut btf = Self { bytes, types, texts, structs: HashMap::new() };
        for id in 1..btf.types.len() as u32 {
            if btf.kind(id)? == STRUCT {
                let name = btf.name(id)?.to_owned();
                btf.structs.entry(name).or_insert(id);
            }
        }
        Ok(btf)
    }

    fn at(&self, id: u32) -> Result<usize, FormatError> {
        let at = self.types.get(id as usize).copied().filter(|at| *at != usize::MAX);
        at.ok_or_else(|| FormatError::new(format!("BTF has no type {id}")))
    }

    fn kind(&self, id: u32) -> Result<u32, FormatError> {
        Ok(u32_at(&self.bytes, self.at(id)? + 4)? >> 24 & 0x1F)
    }

    /// The size of a type, or the type that it stands for.
    fn size_or_type(&self, id: u32) -> Result<u32, FormatError> {
        u32_at(&self.bytes, self.at(id)? + 8)
    }

    /// A text of the table.
    pub(crate) fn text(&self, offset: u32) -> Result<&str, FormatError> {
        text_at(&self.bytes, self.texts + offset as usize)
    }

    /// The name of a type; empty for one without.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn name(&self, id: u32) -> Result<&str, FormatError> {
        self.text(u32_at(&self.bytes, self.at(id)?)?)
    }

    /// The struct of this name.
    #[must_use]
    pub fn find_struct(&self, name: &str) -> Option<u32> {
        self.structs.get(name).copied()
    }

    /// The function of this name.
    #[must_use]
    pub fn find_function(&self, name: &str) -> Option<u32> {
        let is = |id: &u32| self.kind(*id).ok() == Some(FUNC) && self.name(*id).is_ok_and(|own| own == name);
        (1..self.types.len() as u32).find(is)
    }

    /// A type without its names and qualifiers.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn resolve(&self, mut id: u32) -> Result<u32, FormatError> {
        for _ in 0..32 {
            if id == 0 || !ALIASES.contains(&self.kind(id)?) {
                return Ok(id);
            }
            id = self.size_or_type(id)?;
        }
        Err(FormatError::new("BTF goes round in a circle"))
    }

    /// Bytes of a type.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn size(&self, id: u32) -> Result<u32, FormatError> {
        let id = self.resolve(id)?;
        match self.kind(id)? {
            POINTER => Ok(8),
            ARRAY => {
                let (element, count) = self.array(id)?;
                Ok(self.size(element)?.saturating_mul(count))
            }
            _ => self.size_or_type(id),
        }
    }

    /// An array's element and how many there are.
    fn array(&self, id: u32) -> Result<(u32, u32), FormatError> {
        let at = self.at(id)?;
        Ok((u32_at(&self.bytes, at + 12)?, u32_at(&self.bytes, at + 20)?))
    }

    fn members(&self, id: u32) -> Result<Vec<Member<'_>>, FormatError> {
        let at = self.at(id)?;
        let info = u32_at(&self.bytes, at + 4)?;
        let with_bits = info >> 31 == 1;
        let one = |index: usize| {
            let at = at + 12 + 12 * index;
            let offset = u32_at(&self.bytes, at + 8)?;
            let (bit_offset, bits) = if with_bits { (offset & 0xFF_FFFF, offset >> 24) } else { (offset, 0) };
            let field = Field { type_id: u32_at(&self.bytes, at + 4)?, bit_offset, bits };
            Ok(Member { name: self.text(u32_at(&self.bytes, at)?)?, field })
        };
        (0..(info & 0xFFFF) as usize).map(one).collect()
    }

    /// The number of members, and each one's name.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn member_names(&self, id: u32) -> Result<Vec<&str>, FormatError> {
        Ok(self.members(id)?.iter().map(|member| member.name).collect())
    }

    /// A member by its name, also within structs and unions that have none.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn member(&self, id: u32, name: &str) -> Result<Option<Field>, FormatError> {
        self.member_within(id, name, 8)
    }

    fn member_within(&self, id: u32, name: &str, depth: u32) -> Result<Option<Field>, FormatError> {
        for member in self.members(id)? {
            if member.name == name {
                return Ok(Some(member.field));
            }
            let inner = self.resolve(member.field.type_id)?;
            let nested = member.name.is_empty() && depth > 0 && inner != 0;
            if nested
                && matches!(self.kind(inner)?, STRUCT | UNION)
                && let Some(found) = self.member_within(inner, name, depth - 1)?
            {
                let bit_offset = found.bit_offset + member.field.bit_offset;
                return Ok(Some(Field { bit_offset, ..found }));
            }
        }
        Ok(None)
    }

    /// The name of the member with this number.
    pub(crate) fn member_name(&self, id: u32, number: usize) -> Result<&str, FormatError> {
        let members = self.members(id)?;
        members.get(number).map(|member| member.name).ok_or_else(|| FormatError::new("BTF has no such member"))
    }

    /// An element of an array; `None` for a type that isn't one.
    pub(crate) fn element(&self, field: Field, number: u32) -> Result<Option<Field>, FormatError> {
        let id = self.resolve(field.type_id)?;
        if id == 0 || self.kind(id)? != ARRAY {
            return Ok(None);
        }
        let (element, _) = self.array(id)?;
        let bit_offset = field.bit_offset + number.saturating_mul(self.size(element)?).saturating_mul(8);
        Ok(Some(Field { type_id: element, bit_offset, bits: 0 }))
    }
}

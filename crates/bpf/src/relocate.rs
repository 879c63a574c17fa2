//! CO-RE: moves each access to a kernel struct to where the running kernel has the field.
//!
//! # Source
//! Documentation/bpf/btf.rst and Documentation/bpf/llvm_reloc.rst of Linux, "CO-RE Relocations"; `struct bpf_core_relo` of
//! linux/bpf.h.

use crate::btf::{Btf, Field};
use crate::{FormatError, u32_at};

const BYTE_OFFSET: u32 = 0;
const BYTE_SIZE: u32 = 1;
const EXISTS: u32 = 2;
const SHIFT_LEFT: u32 = 4;
const SHIFT_RIGHT: u32 = 5;

/// One access.
#[derive(Debug, Clone)]
pub struct Access {
    /// The section of its instruction.
    pub section: String,
    /// The instruction, bytes from the beginning of the section.
    pub offset: usize,
    /// The struct within the object's types.
    pub type_id: u32,
    /// Numbers of members and elements, the first one of which is 0.
    pub path: Vec<u32>,
    /// What is wanted of the field.
    pub kind: u32,
}

/// Reads the accesses that an object's `.BTF.ext` lists.
///
/// # Errors
/// [`FormatError`].
pub fn accesses(extension: &[u8], own: &Btf) -> Result<Vec<Access>, FormatError> {
    let header = u32_at(extension, 4)? as usize;
    if header < 32 {
        return Ok(Vec::new());
    }
    let from = header + u32_at(extension, 24)? as usize;
    let end = from + u32_at(extension, 28)? as usize;
    let mut found = Vec::new();
    if end <= from {
        return Ok(found);
    }
    let size = u32_at(extension, from)? as usize;
    let mut at = from + 4;
    while at < end {
        let section = own.text(u32_at(extension, at)?)?;
        let count = u32_at(extension, at + 4)? as usize;
        at += 8;
        for _ in 0..count {
            let path = own.text(u32_at(extension, at + 8)?)?;
            let path: Result<Vec<u32>, _> = path.split(':').map(str::parse).collect();
            found.push(Access {
                section: section.to_owned(),
                offset: u32_at(extension, at)? as usize,
                type_id: u32_at(extension, at + 4)?,
                path: path.map_err(|_| FormatError::new("an access that isn't a list of numbers"))?,
                kind: u32_at(extension, at + 12)?,
            });
            at += size;
        }
    }
    Ok(found)
}

/// A field within its struct, and how it is called.
struct NamedField {
    name: String,
    field: Field,
    size: u32,
}

/// Follows an access in the object's own types and, by names, in the kernel's.
fn follow(access: &Access, own: &Btf, kernel: &Btf) -> Result<(NamedField, NamedField), FormatError> {
    let own_root = own.resolve(access.type_id)?;
    let root = own.name(own_root)?;
    let kernel_root =
        kernel.find_struct(root).ok_or_else(|| FormatError::new(format!("this kernel has no struct {root}")))?;
    let begin = |type_id| Field { type_id, bit_offset: 0, bits: 0 };
    let (mut here, mut there) = (begin(own_root), begin(kernel_root));
    let mut name = root.to_owned();
    for number in access.path.iter().skip(1) {
        if let Some(element) = own.element(here, *number)? {
            here = element;
            there =
                kernel.element(there, *number)?.ok_or_else(|| FormatError::new(format!("{name} isn't an array")))?;
            continue;
        }
        let (inner, outer) = (own.resolve(here.type_id)?, kernel.resolve(there.type_id)?);
        let member = own.member_name(inner, *number as usize)?;
        name = format!("{name}.{member}");
        let missing = || FormatError::new(format!("this kernel has no {name}"));
        let step = |from: Field, to: Field| Field { bit_offset: from.bit_offset + to.bit_offset, ..to };
        here = step(here, own.member(inner, member)?.ok_or_else(missing)?);
        there = step(there, kernel.member(outer, member)?.ok_or_else(missing)?);
    }
    let (own_size, kernel_size) = (own.size(here.type_id)?, kernel.size(there.type_id)?);
    Ok((
        NamedField { name: name.clone(), field: here, size: own_size },
        NamedField { name, field: there, size: kernel_size },
    ))
}

/// Where a bit field is to be loaded from, and how many bytes: the smallest aligned word that holds it.
fn word(field: Field, size: u32) -> (u32, u32) {
    let mut size = size.max(1);
    let mut at = field.bit_offset / 8 / size * size;
    if field.bits != 0 {
        while field.bit_offset + field.bits - at * 8 > size * 8 && size < 8 {
            size *= 2;
            at = field.bit_offset / 8 / size * size;
        }
    } else {
        at = field.bit_offset / 8;
    }
    (at, size)
}

/// The value that an access wants of the running kernel.
fn value(kind: u32, found: &NamedField) -> Result<u32, FormatError> {
    let (at, size) = word(found.field, found.size);
    let bits = if found.field.bits == 0 { found.size * 8 } else { found.field.bits };
    match kind {
        BYTE_OFFSET => Ok(at),
        BYTE_SIZE => Ok(size),
        EXISTS => Ok(1),
        SHIFT_LEFT if cfg!(target_endian = "little") => Ok(64 - (found.field.bit_offset + bits - at * 8)),
        SHIFT_LEFT => Ok((8 - size) * 8 + (found.field.bit_offset - at * 8)),
        SHIFT_RIGHT => Ok(64 - bits),
        other => Err(FormatError::new(format!("an access of kind {other}, which this loader doesn't know"))),
    }
}

/// Patches the instruction of an access.
///
/// # Errors
/// [`FormatError`]: a field is missing or has another size in this kernel, or the instruction isn't one that accesses a field.
pub fn apply(access: &Access, code: &mut [u8], own: &Btf, kernel: &Btf) -> Result<(), FormatError> {
    /// Classes of instructions: the low three bits.
    const LOAD: u8 = 1;
    const STORES: [u8; 2] = [2, 3];
    const ARITHMETIC: [u8; 2] = [4, 7];
    let (here, there) = follow(access, own, kernel)?;
    let wanted = value(access.kind, &there)?;
    let wrong = |what: String| FormatError::new(format!("{}: {what}", there.name));
    let instruction = code
        .get_mut(access.offset..access.offset + 8)
        .ok_or_else(|| wrong("an access outside of its section".to_owned()))?;
    let class = instruction[0] & 7;
    if class == LOAD || STORES.contains(&class) {
        if here.field.bits == 0 && here.size != there.size && there.size != 0 {
            return Err(wrong(format!("it has {} bytes in this kernel and {} here", there.size, here.size)));
        }
        let offset = i16::try_from(wanted).map_err(|_| wrong("it is too far from the beginning".to_owned()))?;
        instruction[2..4].copy_from_slice(&offset.to_ne_bytes());
    } else if ARITHMETIC.contains(&class) || instruction[0] == 0x18 {
        instruction[4..8].copy_from_slice(&wanted.to_ne_bytes());
    } else {
        return Err(wrong(format!("instruction {:#x} can't be moved", instruction[0])));
    }
    Ok(())
}

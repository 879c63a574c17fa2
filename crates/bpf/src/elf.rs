//! Relocatable ELF files of 64 bits in this machine's byte order, as clang makes them for BPF.
//!
//! # Source
//! elf(5).

use crate::{FormatError, text_at, u16_at, u32_at, u64_at};

/// A section.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// `SHT_…`.
    pub kind: u32,
    /// For relocations: the section that they are for.
    pub info: usize,
    /// How long it is, bytes; `.bss` has a length and no content.
    pub size: u64,
    /// Its content.
    pub data: &'a [u8],
}

/// A symbol.
#[derive(Debug, Clone, Copy)]
pub struct Symbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where within its section.
    pub value: u64,
    /// Its section.
    pub section: usize,
}

/// A relocation: what at this offset refers to.
#[derive(Debug, Clone, Copy)]
pub struct Relocation {
    /// Within the section that it is for.
    pub offset: usize,
    /// Into the table of symbols.
    pub symbol: usize,
}

/// A parsed file.
#[derive(Debug, Clone)]
pub struct Elf<'a> {
    /// In the file's order.
    pub sections: Vec<Section<'a>>,
    /// In the file's order.
    pub symbols: Vec<Symbol<'a>>,
}

const SYMBOLS: u32 = 2;
const NO_CONTENT: u32 = 8;
const RELOCATIONS: u32 = 9;
const MACHINE_BPF: u16 = 247;
/// Bytes of a section header (`Elf64_Shdr` of elf(5)).
const HEADER: usize = 64;

impl<'a> Elf<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn parse(file: &'a [u8]) -> Result<Self, FormatError> {
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        if file.get(..6) != Some(&[0x7F, b'E', b'L', b'F', 2, order]) || u16_at(file, 18)? != MACHINE_BPF {
            return Err(FormatError::new("not an ELF file for BPF in this machine's byte order"));
        }
        let (table, size) = (u64_at(file, 40)? as usize, usize::from(u16_at(file, 58)?));
        let (count, names) = (usize::from(u16_at(file, 60)?), usize::from(u16_at(file, 62)?));
        let header = |index: usize| {
            let at = table.saturating_add(index * size);
            file.get(at..at.saturating_add(HEADER))
                .ok_or_else(|| FormatError::new("a section header outside of the file"))
        };
        let content = |header: &[u8]| -> Result<&'a [u8], FormatError> {
            if u32_at(header, 4)? == NO_CONTENT {
                return Ok(&[]);
            }
            let (from, length) = (u64_at(header, 24)? as usize, u64_at(header, 32)? as usize);
            let end = from.checked_add(length);
            end.and_then(|end| file.get(from..end)).ok_or_else(|| FormatError::new("a section outside of the file"))
        };
        let texts = content(header(names)?)?;
        let mut sections = Vec::with_capacity(count);
        let mut links = Vec::with_capacity(count);
        for index in 0..count {
            let header = header(index)?;
            sections.push(Section {
                name: text_at(texts, u32_at(header, 0)? as usize)?,
                kind: u32_at(header, 4)?,
                info: u32_at(header, 44)? as usize,
                size: u64_at(header, 32)?,
                data: content(header)?,
            });
            links.push(u32_at(header, 40)? as usize);
        }
        let symbols = symbols(&sections, &links)?;
        Ok(Self { sections, symbols })
    }

    /// A section by its name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The relocations of a section.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn relocations(&self, section: usize) -> Result<Vec<Relocation>, FormatError> {
        let tables = self.sections.iter().filter(|table| table.kind == RELOCATIONS && table.info == section);
        tables
            .flat_map(|table| table.data.chunks_exact(16))
            .map(|entry| {
                let symbol = (u64_at(entry, 8)? >> 32) as usize;
                Ok(Relocation { offset: u64_at(entry, 0)? as usize, symbol })
            })
            .collect()
    }
}

fn symbols<'a>(sections: &[Section<'a>], links: &[usize]) -> Result<Vec<Symbol<'a>>, FormatError> {
    let Some(at) = sections.iter().position(|section| section.kind == SYMBOLS) else { return Ok(Vec::new()) };
    let texts = sections.get(links[at]).ok_or_else(|| FormatError::new("symbols without names"))?.data;
    let entries = sections[at].data.chunks_exact(24);
    entries
        .map(|entry| {
            Ok(Symbol {
                name: text_at(texts, u32_at(entry, 0)? as usize)?,
                section: usize::from(u16_at(entry, 6)?),
                value: u64_at(entry, 8)?,
            })
        })
        .collect()
}

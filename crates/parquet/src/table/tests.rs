use super::*;
use crate::from_csv;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use std::io::Cursor;

/// The rows of a file, as the crate's own reader has them.
fn rows(file: &[u8]) -> Vec<Vec<(String, Field)>> {
    let mut kept = tempfile::tempfile().unwrap();
    kept.write_all(file).unwrap();
    let reader = SerializedFileReader::new(kept).unwrap();
    let row = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

fn groups(file: &[u8]) -> usize {
    let mut kept = tempfile::tempfile().unwrap();
    kept.write_all(file).unwrap();
    SerializedFileReader::new(kept).unwrap().metadata().num_row_groups()
}

#[test]
fn values_of_every_kind_and_missing_ones_come_back() {
    let kinds = [
        ("text", ColumnKind::Text),
        ("integer", ColumnKind::Integer),
        ("unsigned", ColumnKind::Unsigned),
        ("real", ColumnKind::Real),
        ("switch", ColumnKind::Switch),
        ("moment", ColumnKind::Moment),
    ];
    let mut table = ParquetTable::new(Vec::new(), kinds).unwrap();
    let (text, micros) = ("a \"word\",\nü", 1_795_248_900_000_001);
    table
        .row([
            Cell::Text(text),
            Cell::Integer(i64::MIN),
            Cell::Unsigned(u64::MAX),
            Cell::Real(0.1),
            Cell::Switch(true),
            Cell::Integer(micros),
        ])
        .unwrap();
    table.row([Cell::Missing; 6]).unwrap();
    let found = rows(&table.finish().unwrap());
    let fields: Vec<&Field> = found[0].iter().map(|(_, field)| field).collect();
    assert_eq!(fields[0], &Field::Str(text.to_owned()));
    assert_eq!((fields[1], fields[2]), (&Field::Long(i64::MIN), &Field::ULong(u64::MAX)));
    assert_eq!((fields[3], fields[4]), (&Field::Double(0.1), &Field::Bool(true)));
    assert_eq!(fields[5], &Field::TimestampMicros(micros));
    assert!(found[1].iter().all(|(_, field)| *field == Field::Null), "{:?}", found[1]);
    assert_eq!(found.len(), 2);
}

#[test]
fn many_rows_are_written_in_groups_and_a_table_may_have_none() {
    let count = GROUP_ROWS * 2 + 1;
    let mut table = ParquetTable::new(Vec::new(), [("n", ColumnKind::Integer), ("t", ColumnKind::Text)]).unwrap();
    for n in 0..count {
        table.row([Cell::Integer(n as i64), Cell::from((n % 2 == 0).then_some("even"))]).unwrap();
        assert!(table.waiting.0 < GROUP_ROWS, "memory is bounded");
    }
    let file = table.finish().unwrap();
    assert_eq!(groups(&file), 3);
    let found = rows(&file);
    assert_eq!(found.len(), count);
    assert!(found.iter().enumerate().all(|(at, row)| row[0].1 == Field::Long(at as i64)));
    assert_eq!((&found[2].clone()[1].1, &found[3][1].1), (&Field::Str("even".to_owned()), &Field::Null));
    let long = "x".repeat(GROUP_TEXT / 2);
    let mut table = ParquetTable::new(Vec::new(), [("t", ColumnKind::Text)]).unwrap();
    for n in 0..4 {
        table.row([Cell::Text(&format!("{n}{long}"))]).unwrap();
    }
    assert_eq!(groups(&table.finish().unwrap()), 2, "long texts end a group, too");
    let none = ParquetTable::new(Vec::new(), [("n", ColumnKind::Integer)]).unwrap().finish().unwrap();
    assert!(rows(&none).is_empty());
}

#[test]
fn a_row_of_another_form_is_an_error() {
    let mut table = ParquetTable::new(Vec::new(), [("n", ColumnKind::Integer), ("u", ColumnKind::Unsigned)]).unwrap();
    for wrong in [
        &[Cell::Integer(1)][..],
        &[Cell::Integer(1), Cell::Unsigned(1), Cell::Missing],
        &[Cell::Real(1.0), Cell::Unsigned(1)],
        &[Cell::Integer(1), Cell::Integer(1)],
    ] {
        assert!(table.row(wrong.iter().copied()).is_err(), "{wrong:?}");
    }
}

/// Refuses everything after so many bytes, as a full disk does.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_happens() {
    for room in [0, 3, 40, 60] {
        let write = || -> Result<(), Error> {
            let mut table = ParquetTable::new(Full(room), [("t", ColumnKind::Text)])?;
            table.row([Cell::Text("a word")])?;
            table.finish().map(drop)
        };
        assert!(write().is_err(), "{room} bytes");
    }
}

#[test]
fn columns_of_csv_are_what_all_their_cells_are() {
    let csv = "name,whole,zip,part,mixed,is,none,known,a b\nx,1,007,1.5,1,true,,3,\"q\"\"\n\"\ny,-20,12,2e3,two,false,,,\n,,,,,,,,\n";
    let file = from_csv(Cursor::new(csv), Vec::new(), &[("known", ColumnKind::Real)]).unwrap();
    let found = rows(&file);
    let fields = |row: usize| found[row].iter().map(|(_, field)| field.clone()).collect::<Vec<_>>();
    let text = |text: &str| Field::Str(text.to_owned());
    assert_eq!(
        fields(0),
        [
            text("x"),
            Field::Long(1),
            text("007"),
            Field::Double(1.5),
            text("1"),
            Field::Bool(true),
            Field::Null,
            Field::Double(3.0),
            text("q\"\n")
        ]
    );
    assert_eq!((fields(1)[1].clone(), fields(1)[3].clone()), (Field::Long(-20), Field::Double(2_000.0)));
    assert!(fields(2).iter().all(|field| *field == Field::Null));
    assert_eq!(found[0][8].0, "a b");
    let wrong = from_csv(Cursor::new("n\nx\n"), Vec::new(), &[("n", ColumnKind::Integer)]).unwrap_err();
    assert!(wrong.to_string().contains("column n has \"x\""), "{wrong}");
    let ragged = from_csv(Cursor::new("a,b\n1\n"), Vec::new(), &[]);
    assert!(ragged.is_err());
}

#[test]
fn whole_numbers_of_csv_keep_all_their_digits() {
    let text = |text: &str| Field::Str(text.to_owned());
    for (cells, kept) in [
        ("18446744073709551615\n0", Field::ULong(u64::MAX)),
        ("9223372036854775807\n-1", Field::Long(i64::MAX)),
        ("18446744073709551615\n-1", text("18446744073709551615")),
        ("12345678901234567890123", text("12345678901234567890123")),
        (&"9".repeat(60), text(&"9".repeat(60))),
        // What a program writes of such a number in its own shortest way is read again as it was.
        ("123456789012345680000\n0.5", Field::Double(123_456_789_012_345_680_000.0)),
        ("9007199254740992\n0.5", Field::Double(9_007_199_254_740_992.0)),
        ("9007199254740993\n0.5", text("9007199254740993")),
    ] {
        let file = from_csv(Cursor::new(format!("n\n{cells}\n")), Vec::new(), &[]).unwrap();
        assert_eq!(rows(&file)[0][0].1, kept, "{cells}");
    }
}

#[test]
fn what_looks_like_a_number_in_words_is_text() {
    for cell in ["nan", "inf", "-0", "01", "00.5", "1_000", "0x10", "+5", " 1", "1e999"] {
        let file = from_csv(Cursor::new(format!("n\n{cell}\n")), Vec::new(), &[]).unwrap();
        let kept = rows(&file)[0][0].1.clone();
        let is_number = matches!(kept, Field::Long(_)) || matches!(kept, Field::Double(n) if n.to_string() != cell);
        assert!(!is_number || cell == "-0" || cell == "+5", "{cell}: {kept:?}");
    }
}

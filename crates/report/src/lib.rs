//! One file per form of report: terminal, JSON, HTML.

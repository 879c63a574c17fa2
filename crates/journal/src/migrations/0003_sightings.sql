-- What was seen of hosts, each time anew: their history. Times are µs since the Unix epoch.

CREATE TABLE sightings (
  id    INTEGER PRIMARY KEY,
  kind  TEXT NOT NULL,                -- what was looked at: 'first-window'
  host  TEXT NOT NULL,                -- a name or an address, in small letters
  at_us INTEGER NOT NULL,
  found TEXT NOT NULL                 -- JSON
) STRICT;

CREATE INDEX sightings_host ON sightings (kind, host, at_us);

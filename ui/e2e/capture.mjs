// A capture of one download whose client doesn't read: its window closes, and opens again a second later.

const CLIENT = [10, 0, 0, 1];
const SERVER = [10, 0, 0, 2];
const [FIN, SYN, PSH, ACK] = [1, 2, 8, 16];

function packet(from, seq, ack, flags, window, length) {
  const down = from === SERVER;
  const out = Buffer.alloc(40 + length);
  out.set([0x45, 0], 0);
  out.writeUInt16BE(40 + length, 2);
  out.set([0x40, 0, 64, 6], 6);
  out.set([...from, ...(down ? CLIENT : SERVER)], 12);
  out.writeUInt16BE(down ? 80 : 40000, 20);
  out.writeUInt16BE(down ? 40000 : 80, 22);
  out.writeUInt32BE(seq, 24);
  out.writeUInt32BE(ack, 28);
  out.set([0x50, flags], 32);
  out.writeUInt16BE(window, 34);
  return out;
}

/** The file: raw IP, times in µs. */
export function capture() {
  const packets = [];
  let now = 0;
  const put = (wait, ...what) => {
    now += wait;
    packets.push([now, packet(...what)]);
  };
  put(0, CLIENT, 100, 0, SYN, 14_600, 0);
  put(20_000, SERVER, 500, 101, SYN | ACK, 60_000, 0);
  put(100, CLIENT, 101, 501, ACK, 14_600, 0);
  put(100, CLIENT, 101, 501, ACK | PSH, 14_600, 50);
  let at = 501;
  for (let round = 0; round < 4; round++) {
    put(20_000, SERVER, at, 151, ACK, 60_000, 1460);
    for (let sent = 1; sent < 10; sent++) put(100, SERVER, at + sent * 1460, 151, ACK, 60_000, 1460);
    at += 14_600;
    put(100, CLIENT, 151, at, ACK, 0, 0);
    put(1_000_000, CLIENT, 151, at, ACK, 14_600, 0);
  }
  put(20_000, SERVER, at, 151, FIN | ACK, 60_000, 0);
  put(100, CLIENT, 151, at + 1, FIN | ACK, 14_600, 0);
  put(20_000, SERVER, at + 1, 152, ACK, 60_000, 0);
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(65_535, 16);
  head.writeUInt32LE(101, 20);
  const record = ([us, bytes]) => {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(1_700_000_000 + Math.floor(us / 1e6), 0);
    head.writeUInt32LE(us % 1e6, 4);
    head.writeUInt32LE(bytes.length, 8);
    head.writeUInt32LE(bytes.length, 12);
    return Buffer.concat([head, bytes]);
  };
  return Buffer.concat([head, ...packets.map(record)]);
}

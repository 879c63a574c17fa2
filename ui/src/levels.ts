/**
 * A long series at several resolutions, so that any part of it is drawn from a few thousand points.
 *
 * Each level keeps of eight neighbours (of the level below: of as many pairs) the smallest and the largest value, in their order,
 * so that no peak gets lost. NaN stands where there is nothing.
 */
export class Levels {
  private readonly levels: { x: Float64Array; y: Float64Array }[];
  /** The largest value there is; 0 of nothing. */
  readonly most: number;

  constructor(x: Float64Array, y: Float64Array) {
    this.levels = [{ x, y }];
    for (let at = this.levels[0]!; at.x.length > SMALLEST; ) {
      at = coarser(at.x, at.y);
      this.levels.push(at);
    }
    const top = this.levels.at(-1)!.y;
    this.most = top.reduce((most, value) => (value > most ? value : most), 0);
  }

  /** The ends of the horizontal axis. */
  get ends(): [number, number] {
    const { x } = this.levels[0]!;
    return [x[0] ?? 0, x.at(-1) ?? 1];
  }

  get length(): number {
    return this.levels[0]!.x.length;
  }

  /** At most about `most` points that show this part, and one on either side of it. */
  part(from: number, to: number, most: number): [number[], (number | null)[]] {
    for (const { x, y } of this.levels) {
      const first = Math.max(0, search(x, from) - 1);
      const last = Math.min(x.length, search(x, to) + 1);
      if (last - first <= most || x.length <= SMALLEST) {
        const values: (number | null)[] = new Array(last - first);
        for (let at = first; at < last; at++) values[at - first] = Number.isNaN(y[at]) ? null : y[at]!;
        return [Array.from(x.subarray(first, last)), values];
      }
    }
    return [[], []];
  }
}

/** Of so many points there is no need to make fewer. */
const SMALLEST = 512;
/** So many points become two. */
const BLOCK = 8;

function coarser(x: Float64Array, y: Float64Array): { x: Float64Array; y: Float64Array } {
  const blocks = Math.ceil(x.length / BLOCK);
  const [to, values] = [new Float64Array(blocks * 2), new Float64Array(blocks * 2)];
  for (let block = 0; block < blocks; block++) {
    const end = Math.min(x.length, (block + 1) * BLOCK);
    let [low, high] = [-1, -1];
    for (let at = block * BLOCK; at < end; at++) {
      const value = y[at]!;
      if (Number.isNaN(value)) continue;
      if (low < 0 || value < y[low]!) low = at;
      if (high < 0 || value > y[high]!) high = at;
    }
    const [one, two] = low < 0 ? [block * BLOCK, end - 1] : low <= high ? [low, high] : [high, low];
    to[block * 2] = x[one]!;
    to[block * 2 + 1] = x[two]!;
    values[block * 2] = low < 0 ? NaN : y[one]!;
    values[block * 2 + 1] = low < 0 ? NaN : y[two]!;
  }
  return { x: to, y: values };
}

/** The first place whose value isn't smaller. */
function search(x: Float64Array, value: number): number {
  let [low, high] = [0, x.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

import { get, isMissing } from "./api";
import { missed, onBack } from "./connection";

/** One event: which it is, and its object. */
export interface Told {
  kind: string;
  data: unknown;
}

/** What follows the events of a run. */
export interface Follower {
  /** One more. */
  heard: (told: Told) => void;
  /** All of them from the first on, in place of those that were heard. */
  anew: (all: Told[]) => void;
  /** The server doesn't know the run. */
  gone: () => void;
}

const KINDS = ["begin", "start", "sample", "trial", "round", "line", "epoch", "progress", "stopped", "holdback", "draining", "scanning", "scanned", "note", "warning", "result", "end"];
/** How a transfer stands: without a number, and told anew by each stream for as long as the trial goes on. */
const SAMPLE = "sample";

/**
 * The events of one run, by one stream for all who follow it on this page, and by none while the page is hidden: each stream holds one of
 * the six connections that a browser opens to a server, over all its tabs. Once the page is seen it goes on behind the last event.
 */
class RunStream {
  readonly followers = new Set<Follower>();
  private source: EventSource | null = null;
  private told: Told[] = [];
  private samples: Told[] = [];
  /** The number of the last event that has one. */
  private last = "";
  private over = false;
  private missing = false;
  private retry = 0;

  constructor(private readonly id: string) {}

  join(follower: Follower): void {
    this.followers.add(follower);
    follower.anew([...this.told, ...this.samples]);
    if (this.missing) follower.gone();
    this.open();
  }

  open(): void {
    if (this.source || this.over || this.missing || this.followers.size === 0 || document.hidden) return;
    clearTimeout(this.retry);
    const source = new EventSource(`/api/v1/runs/${this.id}/events${this.last && `?after=${this.last}`}`);
    this.source = source;
    source.onopen = () => this.forget();
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => this.hear(kind, event as MessageEvent<string>));
    }
    source.onerror = () => {
      if (source !== this.source) return;
      void missed();
      // The browser tries again by itself, unless it has given up.
      if (source.readyState !== EventSource.CLOSED) return;
      this.close();
      get(`runs/${this.id}`).then(
        () => (this.retry = window.setTimeout(() => this.open(), 1000)),
        (error) => isMissing(error) && this.lose(),
      );
    };
  }

  close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  private hear(kind: string, event: MessageEvent<string>): void {
    const told: Told = { kind, data: JSON.parse(event.data) };
    if (kind === SAMPLE) this.samples.push(told);
    else {
      this.told.push(told);
      this.last = event.lastEventId || this.last;
      // Those of a trial are of interest only while it goes on.
      if (kind === "trial" || kind === "end") this.samples = [];
    }
    if (kind === "end") {
      this.over = true;
      this.close();
    }
    this.followers.forEach((follower) => follower.heard(told));
  }

  /** A stream that begins tells all samples of the trial that goes on. */
  private forget(): void {
    if (this.samples.length === 0) return;
    this.samples = [];
    this.followers.forEach((follower) => follower.anew(this.told));
  }

  private lose(): void {
    this.missing = true;
    this.followers.forEach((follower) => follower.gone());
  }
}

/** Those that are followed, by the run's name. */
const streams = new Map<string, RunStream>();

document.addEventListener("visibilitychange", () => streams.forEach((stream) => (document.hidden ? stream.close() : stream.open())));
onBack(() =>
  streams.forEach((stream) => {
    stream.close();
    stream.open();
  }),
);

/** Follows the events of a run, from the first on; answers what ends that. */
export function followRun(id: string, follower: Follower): () => void {
  const stream = streams.get(id) ?? new RunStream(id);
  streams.set(id, stream);
  stream.join(follower);
  return () => {
    stream.followers.delete(follower);
    if (stream.followers.size > 0) return;
    stream.close();
    if (streams.get(id) === stream) streams.delete(id);
  };
}

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { takeToken } from "./api";
import { PendingBar } from "./change";
import { useConnection } from "./connection";
import { Shown } from "./parts";
import { follow, useAddress } from "./route";
import "./style.css";
import { Analysis } from "./views/analysis";
import { Calculator } from "./views/calculator";
import { Controls } from "./views/controls";
import { Doctor } from "./views/doctor";
import { Experiment } from "./views/experiment";
import { File } from "./views/file";
import { FirstWindow } from "./views/firstwindow";
import { History } from "./views/history";
import { Host } from "./views/host";
import { Lab } from "./views/lab";
import { Path } from "./views/path";
import { Fleet } from "./views/fleet";
import { Past } from "./views/past";
import { Stacks } from "./views/stacks";
import { Start } from "./views/start";
import { Tests } from "./views/tests";
import { Traffic } from "./views/traffic";
import { Waterfall } from "./views/waterfall";
import { WhatIf } from "./views/whatif";

interface Way {
  path: string;
  name: string;
  view: (props: { part: string }) => preact.JSX.Element | null;
  /** Whether the address may name something of it: `/report/NAME`. */
  part?: boolean;
  /** Whether it is no view of its own in the bar, but belongs to this one. */
  of?: string;
}

const WAYS: Way[] = [
  { path: "/", name: "Start", view: Start },
  { path: "/host", name: "Host", view: Host },
  { path: "/controls", name: "Congestion controls", view: Controls, part: true, of: "/host" },
  { path: "/path", name: "Path", view: Path },
  { path: "/first-window", name: "First window", view: FirstWindow, of: "/path" },
  { path: "/experiment", name: "Experiment", view: Experiment, part: true },
  { path: "/tests", name: "Logged tests", view: Tests, part: true, of: "/experiment" },
  { path: "/traffic", name: "Traffic", view: Traffic, part: true },
  { path: "/fleet", name: "Fleet", view: Fleet },
  { path: "/analysis", name: "Analysis", view: Analysis },
  { path: "/file", name: "File", view: File },
  { path: "/what-if", name: "What if", view: WhatIf },
  { path: "/lab", name: "Lab", view: Lab },
  { path: "/stacks", name: "TCP/IP stacks", view: Stacks, of: "/lab" },
  { path: "/history", name: "History", view: History },
  { path: "/report", name: "Report", view: Past, part: true, of: "/history" },
  { path: "/waterfall", name: "Page waterfall", view: Waterfall, part: true, of: "/history" },
  { path: "/calculator", name: "Calculator", view: Calculator },
  { path: "/doctor", name: "Doctor", view: Doctor },
];

/** Views of something that the address must name. */
const NAMED = new Set(["/report", "/waterfall"]);

/** Where an address leads, and the part of it that names something. */
function lookUp(pathname: string): [Way | null, string] {
  const [, first = "", ...rest] = pathname.replace(/\/+$/, "").split("/");
  const way = WAYS.find((way) => way.path === `/${first}`) ?? null;
  const part = decode(rest.join("/"));
  return way && (part === "" ? !NAMED.has(way.path) : way.part) ? [way, part] : [null, ""];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function App() {
  const { pathname } = useAddress();
  const [way, part] = lookUp(pathname);
  const { lost } = useConnection();
  useEffect(() => {
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, []);
  useEffect(() => {
    document.title = `${part ? `${part} – ` : ""}${way?.name ?? "Not found"} – Windtunnel`;
  }, [way, part]);
  const here = way?.of ?? way?.path;
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="bar">
        <span class="brand">
          <img src="/icon.svg" alt="" width="26" height="26" />
          Windtunnel
        </span>
        <nav aria-label="Views">
          {WAYS.filter(({ of }) => !of).map(({ path, name }) => (
            <a href={path} aria-current={path === here ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <div class="notes">
        {lost && (
          <div class="trouble lost" role="alert">
            <strong>The connection to windtunnel web is lost.</strong> Trying again every second; this page goes on by itself once the server is back.
          </div>
        )}
        <PendingBar />
      </div>
      <main id="main" tabIndex={-1}>
        {way ? (
          <Shown key={`${way.path}/${part}`}>
            <way.view part={part} />
          </Shown>
        ) : (
          <Nowhere pathname={pathname} />
        )}
      </main>
    </>
  );
}

/** An address that leads nowhere says so. */
function Nowhere({ pathname }: { pathname: string }) {
  return (
    <>
      <h1>Not found</h1>
      <p>
        There is no page <code>{pathname}</code> here.
      </p>
      <p>
        <a href="/">Go to the start</a>, or to the <a href="/history">History</a> of experiments.
      </p>
    </>
  );
}

takeToken();
const root = document.getElementById("app");
if (root) render(<App />, root);

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { takeToken } from "./api";
import "./style.css";
import { Analysis } from "./views/analysis";
import { Calculator } from "./views/calculator";
import { Experiment } from "./views/experiment";
import { History } from "./views/history";
import { Host } from "./views/host";
import { Lab } from "./views/lab";
import { Path } from "./views/path";
import { WhatIf } from "./views/whatif";

const VIEWS = [
  { path: "/host", name: "Host", view: Host },
  { path: "/path", name: "Path", view: Path },
  { path: "/experiment", name: "Experiment", view: Experiment },
  { path: "/analysis", name: "Analysis", view: Analysis },
  { path: "/what-if", name: "What if", view: WhatIf },
  { path: "/lab", name: "Lab", view: Lab },
  { path: "/history", name: "History", view: History },
  { path: "/calculator", name: "Calculator", view: Calculator },
];

function App() {
  const [path, setPath] = useState(location.pathname);
  const view = VIEWS.find((view) => path.startsWith(view.path)) ?? VIEWS[0]!;
  useEffect(() => {
    const moved = (): void => setPath(location.pathname);
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  useEffect(() => {
    document.title = `${view.name} – Windtunnel`;
  }, [view]);
  const go = (event: MouseEvent, to: string): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    history.pushState(null, "", to);
    setPath(to);
    document.getElementById("main")?.focus();
    scrollTo(0, 0);
  };
  const View = view.view;
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
          {VIEWS.map(({ path, name }) => (
            <a href={path} aria-current={path === view.path ? "page" : undefined} onClick={(event) => go(event, path)}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <View key={view.path} />
      </main>
    </>
  );
}

takeToken();
const root = document.getElementById("app");
if (root) render(<App />, root);

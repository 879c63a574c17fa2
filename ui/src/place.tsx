import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Token } from "./change";
import { drawn } from "./drawn";
import { Choice, Fetched, Text, useGet } from "./parts";

/** The names of the lab's paths. */
export interface Presets {
  presets: { name: string; title: string }[];
}

const DRAWN = "(drawn)";

/** Where something is to be done, and the fields that ask for it. */
export interface Place {
  /** What a request says of it. */
  request: Record<string, unknown>;
  /** A path of the lab that is shipped, if it is one. */
  preset: string | null;
  /** Whether it is on a real path. */
  real: boolean;
  /** Whether all is said. */
  complete: boolean;
  /** The fields. */
  fields: ComponentChildren;
  /** What is needed besides. */
  token: ComponentChildren;
}

/** In words: which path of the lab is named first, and how a real path is called and asked for. */
export interface PlaceWords {
  lab: string;
  real: string;
  label: string;
  placeholder: string;
  hint: string;
  doing: string;
}

/** A choice between the paths of the lab, the one that was drawn, and a real one. */
export function usePlace(words: PlaceWords): Place {
  const own = drawn();
  const [presets, again] = useGet<Presets>("lab/presets");
  const [where, setWhere] = useState("lab");
  const [target, setTarget] = useState("");
  const [lab, setLab] = useState(own && location.search === "?drawn" ? DRAWN : words.lab);
  const real = where === "target";
  const paths = (
    <Fetched of={presets} again={again}>
      {({ presets }) => {
        const shipped = presets.map(({ name, title }): [string, string] => [name, title]);
        return <Choice label="Path" size="long" value={lab} set={setLab} options={own ? [[DRAWN, `${own.title || "drawn"} (drawn in Lab)`], ...shipped] : shipped} />;
      }}
    </Fetched>
  );
  return {
    request: real ? { target: target.trim() } : lab === DRAWN ? { path: own } : { lab },
    preset: real || lab === DRAWN ? null : lab,
    real,
    complete: !real || target.trim() !== "",
    fields: (
      <div class="row">
        <Choice
          label="Where"
          value={where}
          set={setWhere}
          size="short"
          options={[
            ["lab", "in the lab"],
            ["target", words.real],
          ]}
        />
        {real ? <Text label={words.label} size="long" value={target} set={setTarget} placeholder={words.placeholder} hint={words.hint} /> : paths}
      </div>
    ),
    token: real && <Token what={words.doing} />,
  };
}

import type { ComponentChildren } from "preact";
import { Token } from "./change";
import { drawn } from "./drawn";
import { Choice, Fetched, Text, useGet } from "./parts";
import { useQuery } from "./route";
import type { PresetsAnswer as Presets } from "./schema";

/** What the path that was drawn in Lab is called in addresses. */
export const DRAWN = "drawn";

/** Where something is to be done, and the fields that ask for it. */
export interface Place {
  /** What a request says of it. */
  request: Record<string, unknown>;
  /** A path of the lab that is shipped, if it is one. */
  preset: string | null;
  /** Whether it is on a real path. */
  real: boolean;
  /** Which, then. */
  target: string;
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

/** A path of the lab, and the field that asks for it. */
export interface LabPlace {
  /** What a request says of it. */
  request: Record<string, unknown>;
  /** A path that is shipped, if it is one. */
  preset: string | null;
  /** What a terminal calls it. */
  word: string;
  /** The field. */
  field: ComponentChildren;
}

/** A choice between the paths of the lab and the one that was drawn. */
export function useLab(first: string): LabPlace {
  const own = drawn();
  const [presets, again] = useGet<Presets>("lab/presets");
  const [{ lab: wanted }, set] = useQuery({ lab: first });
  const lab = wanted === DRAWN && !own ? first : wanted;
  return {
    request: lab === DRAWN ? { path: own } : { lab },
    preset: lab === DRAWN ? null : lab,
    word: lab === DRAWN ? "drawn.toml" : lab,
    field: (
      <Fetched of={presets} again={again}>
        {({ presets }) => {
          const shipped = presets.map(({ name, title }): [string, string] => [name, title]);
          return <Choice label="Path" size="long" value={lab} set={(lab) => set({ lab })} options={own ? [[DRAWN, `${own.title || "drawn"} (drawn in Lab)`], ...shipped] : shipped} />;
        }}
      </Fetched>
    ),
  };
}

/** A choice between the paths of the lab, the one that was drawn, and a real one. */
export function usePlace(words: PlaceWords): Place {
  const lab = useLab(words.lab);
  const [{ where, target }, set] = useQuery({ where: "lab", target: "" });
  const real = where === "target";
  return {
    request: real ? { target: target.trim() } : lab.request,
    preset: real ? null : lab.preset,
    real,
    target: target.trim(),
    complete: !real || target.trim() !== "",
    fields: (
      <div class="row">
        <Choice
          label="Where"
          value={where}
          set={(where) => set({ where })}
          size="short"
          options={[
            ["lab", "in the lab"],
            ["target", words.real],
          ]}
        />
        {real ? <Text label={words.label} size="long" value={target} set={(target) => set({ target })} placeholder={words.placeholder} hint={words.hint} /> : lab.field}
      </div>
    ),
    token: real && <Token what={words.doing} />,
  };
}

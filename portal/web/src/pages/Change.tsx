import { type FormEvent, useEffect, useState } from "react";
import { type Complaint, Refused, type Row, ask, asked } from "../api";
import { lines, patch, values as written } from "../form/change";
import { Fields } from "../form/Fields";
import { Forecast } from "../form/Outlook";
import {
  type Schema,
  type Values,
  elsewhere,
  parameters,
  pointers,
} from "../form/schema";
import { complained, problems } from "../form/problems";
import { usePreview } from "../form/usePreview";
import { text } from "../text";

type Parameters = Record<string, unknown>;
// The parameters that a person edits, and the tag of their state.
type Known = { schema: Schema; parameters: Parameters; tag: string };
type Props = { row: Row; onNote: (note: string) => void };

const ROOT = "/parameters";
// They say whose it is and where it runs: another workspace is made for that.
const FIXED = ["owner", "placement", "region"].map((name) => `${ROOT}/${name}`);

// The settings of a workspace, for editing.
export function Change(props: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <section aria-labelledby="change">
      <h3 id="change">{text.change}</h3>
      {isOpen ? (
        <Editing {...props} onEnd={() => setOpen(false)} />
      ) : (
        <button onClick={() => setOpen(true)}>{text.changeOpen}</button>
      )}
    </section>
  );
}

function Editing({ row, onNote, onEnd }: Props & { onEnd: () => void }) {
  const path = `/api/v1/workspaces/${row.namespace}/${row.name}`;
  const [known, setKnown] = useState<Known>();
  const [values, setValues] = useState<Values>({});
  const [refused, setRefused] = useState<readonly Complaint[]>([]);
  const [isOutdated, setOutdated] = useState(false);

  async function read() {
    const found = await current(path).catch(() => undefined);
    setKnown(found);
    setValues(found ? written(found.schema, found.parameters, ROOT) : {});
    setOutdated(false);
    setRefused([]);
  }
  useEffect(() => void read(), [path]);

  const wanted = known && parameters(known.schema, values, ROOT);
  const change = known && wanted ? patch(known.parameters, wanted) : {};
  const isChanged = Object.keys(change).length > 0;
  const outlook = usePreview(`${path}/preview`, isChanged ? change : undefined);
  if (!known) return <p>{text.loading}</p>;

  async function save(event: FormEvent) {
    event.preventDefault();
    setRefused([]);
    try {
      await ask("PATCH", `${path}/parameters`, change, { tag: known?.tag });
      onNote(text.changed(row.name));
      onEnd();
    } catch (error) {
      const isStale = error instanceof Refused && error.problem.status === 412;
      if (isStale) setOutdated(true);
      else setRefused(problems(error));
    }
  }

  const errors = complained(refused, outlook);
  const rest = elsewhere(errors, pointers(known.schema, ROOT));
  return (
    <form onSubmit={save} noValidate>
      <div className="wish">
        <div className="settings">
          <Fields
            schema={known.schema}
            pointer={ROOT}
            without={FIXED}
            values={values}
            errors={errors}
            onChange={(pointer, value) => {
              setRefused([]);
              setValues((before) => ({ ...before, [pointer]: value }));
            }}
          />
        </div>
        {outlook && <Forecast outlook={outlook} />}
      </div>
      {rest.length > 0 && <p role="alert">{rest.join("; ")}</p>}
      {isOutdated && (
        <p role="alert">
          {text.outdated}{" "}
          <button type="button" onClick={read}>
            {text.readAgain}
          </button>
        </p>
      )}
      {row.fromGit ? (
        isChanged && <ForGit change={change} />
      ) : (
        <button disabled={!isChanged}>{text.save}</button>
      )}
      <button type="button" onClick={onEnd}>
        {text.cancel}
      </button>
    </form>
  );
}

// Argo CD would undo a change here, so the page shows what to commit.
function ForGit({ change }: { change: Parameters }) {
  return (
    <>
      <p>{text.commitThis}</p>
      <pre>{["spec:", "  parameters:", ...lines(change)].join("\n")}</pre>
    </>
  );
}

async function current(path: string): Promise<Known> {
  const [schema, found] = await Promise.all([
    ask<Schema>("GET", "/api/v1/schemas/workspace"),
    asked<Parameters>("GET", `${path}/parameters`),
  ]);
  return { schema, parameters: found.content, tag: found.tag };
}

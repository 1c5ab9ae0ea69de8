import { type FormEvent, useState } from "react";
import { type Catalogue, type Complaint, type Me, ask } from "../api";
import { Fields, Labelled, One } from "../form/Fields";
import { Machine, PLATFORM, chosen } from "../form/Machine";
import { Forecast } from "../form/Outlook";
import {
  type Schema,
  type Values,
  complaints,
  elsewhere,
  fields,
  parameters,
  pointers,
} from "../form/schema";
import { complained, problems } from "../form/problems";
import { usePreview } from "../form/usePreview";
import { text } from "../text";
import { useAnswer } from "../useAnswer";

type Props = { me: Me | undefined; onNote: (note: string) => void };

const ROOT = "/parameters";
// The choice of a machine writes these, and the portal the owner.
const MACHINE = ["flavor", "placement"].map((name) => `${ROOT}/${name}`);
const HIDDEN = [...MACHINE, `${ROOT}/owner`];
// A field of its own, which the choice of a machine also writes.
const TYPE = `${ROOT}/instanceType`;
// What nearly everybody has to say. All other fields are under "More".
const FIRST = [`${ROOT}/ssh`];

export function Create({ me, onNote }: Props) {
  const [values, setValues] = useState<Values>({});
  const [machine, setMachine] = useState(PLATFORM);
  const [refused, setRefused] = useState<readonly Complaint[]>([]);
  const [isBusy, setBusy] = useState(false);
  const schema = useAnswer<Schema>("/api/v1/schemas/workspace");
  const catalogue = useAnswer<Catalogue>("/api/v1/catalogue");
  const wish = wished(schema, values, machine);
  const outlook = usePreview("/api/v1/preview", wish.name === "" ? undefined : wish);
  const errors = complained(refused, outlook);
  // What the person did not write into its own field comes from the choice of the machine.
  const ofMachine = values[TYPE] ? MACHINE : [...MACHINE, TYPE];

  function change(pointer: string, value: string) {
    setRefused([]);
    setValues((known) => ({ ...known, [pointer]: value }));
  }

  async function create(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    setBusy(true);
    setRefused([]);
    try {
      await ask("POST", "/api/v1/workspaces", wish);
      setValues({});
      setMachine(PLATFORM);
      onNote(text.created(wish.name));
    } catch (error) {
      setRefused(problems(error));
    } finally {
      setBusy(false);
    }
  }

  const others = errors.filter(({ pointer }) => !ofMachine.includes(pointer));
  const shared = { values, errors: others, onChange: change };
  const shown = ["/name", "/namespace", ...MACHINE, ...pointers(schema ?? {}, ROOT)];
  const rest = elsewhere(others, shown);
  return (
    <section aria-labelledby="create">
      <h2 id="create">{text.create}</h2>
      <form onSubmit={create} noValidate>
        <div className="wish">
          <div>
            <Plain id="name" label={text.createName} help={text.createNameHelp} {...shared} />
            {me && !me.namespace && (
              <Plain
                id="namespace"
                label={text.createNamespace}
                help={text.createNamespaceHelp}
                {...shared}
              />
            )}
            <Machine
              catalogue={catalogue}
              value={machine}
              errors={ofMachine.flatMap((pointer) => complaints(errors, pointer))}
              onChange={(value) => {
                setRefused([]);
                setMachine(value);
              }}
            />
            {schema && <First schema={schema} {...shared} />}
            {schema && <More schema={schema} {...shared} />}
          </div>
          {outlook && <Forecast outlook={outlook} />}
        </div>
        {rest.length > 0 && <p role="alert">{rest.join("; ")}</p>}
        <button disabled={isBusy}>{isBusy ? text.creating : text.createButton}</button>
      </form>
    </section>
  );
}

type Shared = {
  values: Values;
  errors: readonly Complaint[];
  onChange: (pointer: string, value: string) => void;
};

// The fields that are not under "More".
function First({ schema, ...shared }: Shared & { schema: Schema }) {
  return fields(schema, ROOT)
    .filter((group) => FIRST.includes(group.pointer))
    .flatMap((group) => fields(group.schema, group.pointer))
    .map((field) => <One key={field.pointer} field={field} {...shared} />);
}

// The other fields. They open if one of them is wrong.
function More({ schema, ...shared }: Shared & { schema: Schema }) {
  const [isOpen, setOpen] = useState(false);
  const without = [...HIDDEN, ...FIRST];
  const inside = fields(schema, ROOT).filter((field) => !without.includes(field.pointer));
  const isWrong = inside.some((field) => complaints(shared.errors, field.pointer).length > 0);
  return (
    <details open={isOpen || isWrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{text.more}</summary>
      <div className="settings">
        <Fields schema={schema} pointer={ROOT} without={without} {...shared} />
      </div>
    </details>
  );
}

type PlainProps = Shared & { id: "name" | "namespace"; label: string; help: string };

// A field that is no parameter.
function Plain({ id, label, help, values, errors, onChange }: PlainProps) {
  const found = complaints(errors, `/${id}`);
  return (
    <Labelled id={id} label={label} help={help} errors={found}>
      <input
        id={id}
        autoComplete="off"
        spellCheck={false}
        required
        value={values[`/${id}`] ?? ""}
        onChange={(event) => onChange(`/${id}`, event.target.value)}
        aria-describedby={`${id}-help`}
        aria-invalid={found.length > 0}
      />
    </Labelled>
  );
}

// What is sent for a form.
function wished(schema: Schema | undefined, values: Values, machine: string) {
  const namespace = values["/namespace"]?.trim();
  return {
    name: values["/name"]?.trim() ?? "",
    ...(namespace && { namespace }),
    parameters: { ...(schema && parameters(schema, values, ROOT)), ...chosen(machine) },
  };
}

import { type FormEvent, useState } from "react";
import { Refused, ask } from "../api";
import { text } from "../text";

type Field = "name" | "instanceType";
type Errors = Partial<Record<Field | "whole", string>>;

export function Create({ onNote }: { onNote: (note: string) => void }) {
  const [errors, setErrors] = useState<Errors>({});
  const [isBusy, setBusy] = useState(false);

  async function create(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const name = String(fields.get("name"));
    const instanceType = String(fields.get("instanceType"));
    const parameters = instanceType === "" ? {} : { instanceType };
    setBusy(true);
    setErrors({});
    try {
      await ask("POST", "/api/v1/workspaces", { name, parameters });
      form.reset();
      onNote(text.created(name));
    } catch (error) {
      setErrors(marked(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <section aria-labelledby="create">
      <h2 id="create">{text.create}</h2>
      <form onSubmit={create}>
        <Input name="name" label={text.createName} help={text.createNameHelp} error={errors.name} required />
        <Input
          name="instanceType"
          label={text.createType}
          help={text.createTypeHelp}
          error={errors.instanceType}
        />
        {errors.whole && <p role="alert">{errors.whole}</p>}
        <button disabled={isBusy}>{isBusy ? text.creating : text.createButton}</button>
      </form>
    </section>
  );
}

type InputProps = {
  name: Field;
  label: string;
  help: string;
  error: string | undefined;
  required?: boolean;
};

function Input({ name, label, help, error, required }: InputProps) {
  return (
    <p className="field">
      <label htmlFor={name}>{label}</label>
      <input
        id={name}
        name={name}
        required={required}
        aria-describedby={`${name}-help`}
        aria-invalid={error !== undefined}
        autoComplete="off"
      />
      <small id={`${name}-help`}>{error ? <span role="alert">{error}</span> : help}</small>
    </p>
  );
}

// What was refused, at its fields.
function marked(error: unknown): Errors {
  if (!(error instanceof Refused)) return { whole: text.failed };
  const errors: Errors = {};
  for (const { pointer, detail } of error.problem.errors ?? []) {
    if (pointer === "/name" || pointer === "/metadata/name") errors.name = detail;
    else if (pointer.endsWith("/instanceType")) errors.instanceType = detail;
    else errors.whole = detail;
  }
  if (Object.keys(errors).length === 0) {
    errors.whole = `${error.message} (${text.request(error.request)})`;
  }
  return errors;
}

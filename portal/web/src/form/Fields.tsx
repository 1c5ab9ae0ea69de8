import type { ReactNode } from "react";
import type { Complaint } from "../api";
import { text } from "../text";
import {
  type Field,
  type Schema,
  type Values,
  complaints,
  fields,
  isGroup,
  isList,
  summary,
  title,
} from "./schema";

type Props = {
  schema: Schema;
  pointer: string;
  values: Values;
  errors: readonly Complaint[];
  // Pointers of fields that are drawn elsewhere.
  without: readonly string[];
  onChange: (pointer: string, value: string) => void;
};

// A field for everything in a schema.
export function Fields({ schema, pointer, ...rest }: Props) {
  return fields(schema, pointer)
    .filter((field) => !rest.without.includes(field.pointer))
    .map((field) =>
      isGroup(field.schema) ? (
        <fieldset key={field.pointer}>
          <legend>{title(field.name, text.spellings)}</legend>
          <small>{summary(field.schema.description)}</small>
          <Fields schema={field.schema} pointer={field.pointer} {...rest} />
        </fieldset>
      ) : (
        <One key={field.pointer} field={field} {...rest} />
      ),
    );
}

type OneProps = Omit<Props, "schema" | "pointer" | "without"> & { field: Field };

export function One({ field: { pointer, name, schema }, values, errors, onChange }: OneProps) {
  const found = complaints(errors, pointer);
  const attributes = {
    id: pointer,
    value: values[pointer] ?? "",
    "aria-describedby": `${pointer}-help`,
    "aria-invalid": found.length > 0,
    onChange: (event: { target: { value: string } }) => onChange(pointer, event.target.value),
  };
  return (
    <Labelled id={pointer} label={title(name, text.spellings)} help={summary(schema.description)} errors={found}>
      <Control schema={schema} attributes={attributes} />
    </Labelled>
  );
}

type Attributes = {
  id: string;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
};

function Control({ schema, attributes }: { schema: Schema; attributes: Attributes }) {
  if (schema.enum || schema.type === "boolean") {
    const options = schema.enum ?? ["true", "false"];
    return (
      <select {...attributes}>
        <option value="">{text.platformsChoice}</option>
        {options
          .filter((option) => option !== null)
          .map((option) => (
            <option key={option} value={option}>
              {text.choices[option] ?? option}
            </option>
          ))}
      </select>
    );
  }
  if (isList(schema)) return <textarea rows={2} spellCheck={false} {...attributes} />;
  const isNumber = schema.type === "integer" || schema.type === "number";
  return (
    <input
      autoComplete="off"
      spellCheck={false}
      maxLength={schema.maxLength}
      inputMode={isNumber ? "numeric" : "text"}
      {...attributes}
    />
  );
}

type LabelledProps = {
  id: string;
  label: string;
  help: string;
  errors: readonly string[];
  children: ReactNode;
};

export function Labelled({ id, label, help, errors, children }: LabelledProps) {
  return (
    <p className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      <small id={`${id}-help`}>
        {errors.length > 0 ? <span role="alert">{errors.join("; ")}</span> : help}
      </small>
    </p>
  );
}

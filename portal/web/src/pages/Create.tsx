import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { type Offer, Refused, ask } from "../api";
import { dollars } from "../money";
import { text } from "../text";

type Field = "name" | "machine" | "instanceType";
type Errors = Partial<Record<Field | "whole", string>>;

// Values of the choice of a machine that are no offers.
const DEFAULT = "";
const OTHER = "other";

export function Create({ onNote }: { onNote: (note: string) => void }) {
  const [errors, setErrors] = useState<Errors>({});
  const [isBusy, setBusy] = useState(false);
  const [machine, setMachine] = useState(DEFAULT);
  const offers = useOffers();

  async function create(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const name = String(fields.get("name"));
    setBusy(true);
    setErrors({});
    try {
      const parameters = wanted(machine, String(fields.get("instanceType") ?? ""));
      await ask("POST", "/api/v1/workspaces", { name, parameters });
      form.reset();
      setMachine(DEFAULT);
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
        <Labelled name="name" label={text.createName} help={text.createNameHelp} error={errors.name}>
          <input id="name" name="name" required autoComplete="off" {...described("name", errors)} />
        </Labelled>
        <Labelled
          name="machine"
          label={text.createOffer}
          help={text.createOfferHelp}
          error={errors.machine}
        >
          <select
            id="machine"
            value={machine}
            onChange={(event) => setMachine(event.target.value)}
            {...described("machine", errors)}
          >
            <option value={DEFAULT}>{text.createDefault}</option>
            {offers.map((offer) => (
              <option key={value(offer)} value={value(offer)}>
                {label(offer)}
              </option>
            ))}
            <option value={OTHER}>{text.createOther}</option>
          </select>
        </Labelled>
        {machine === OTHER && (
          <Labelled
            name="instanceType"
            label={text.createType}
            help={text.createTypeHelp}
            error={errors.instanceType}
          >
            <input
              id="instanceType"
              name="instanceType"
              required
              autoComplete="off"
              {...described("instanceType", errors)}
            />
          </Labelled>
        )}
        {errors.whole && <p role="alert">{errors.whole}</p>}
        <button disabled={isBusy}>{isBusy ? text.creating : text.createButton}</button>
      </form>
    </section>
  );
}

// What the platform offers. Types, prices and names come from there, and none is in the app.
function useOffers(): Offer[] {
  const [offers, setOffers] = useState<Offer[]>([]);
  useEffect(() => {
    ask<{ offers: Offer[] }>("GET", "/api/v1/catalogue").then(
      (found) => setOffers(found.offers),
      () => undefined,
    );
  }, []);
  return offers;
}

const value = (offer: Offer) => `${offer.placement}/${offer.flavor}`;

function label({ flavor, placement, gpu, description, hourlyUsd }: Offer): string {
  const price = hourlyUsd === undefined ? undefined : text.perHour(dollars(hourlyUsd));
  const parts = [flavor, gpu ?? description, text.placement[placement] ?? placement, price];
  return parts.filter((part) => part !== undefined).join(" · ");
}

// The parameters of a claim.
function wanted(machine: string, instanceType: string): Record<string, string> {
  if (machine === DEFAULT) return {};
  if (machine === OTHER) return { instanceType };
  const [placement = "", ...flavor] = machine.split("/");
  return { placement, flavor: flavor.join("/") };
}

type LabelledProps = {
  name: Field;
  label: string;
  help: string;
  error: string | undefined;
  children: ReactNode;
};

function Labelled({ name, label, help, error, children }: LabelledProps) {
  return (
    <p className="field">
      <label htmlFor={name}>{label}</label>
      {children}
      <small id={`${name}-help`}>{error ? <span role="alert">{error}</span> : help}</small>
    </p>
  );
}

const described = (name: Field, errors: Errors) => ({
  "aria-describedby": `${name}-help`,
  "aria-invalid": errors[name] !== undefined,
});

// What was refused, at its fields.
function marked(error: unknown): Errors {
  if (!(error instanceof Refused)) return { whole: text.failed };
  const errors: Errors = {};
  for (const { pointer, detail } of error.problem.errors ?? []) {
    if (pointer === "/name" || pointer === "/metadata/name") errors.name = detail;
    else if (pointer.endsWith("/instanceType")) errors.instanceType = detail;
    else if (pointer.endsWith("/flavor")) errors.machine = detail;
    else errors.whole = detail;
  }
  if (Object.keys(errors).length === 0) {
    errors.whole = `${error.message} (${text.request(error.request)})`;
  }
  return errors;
}

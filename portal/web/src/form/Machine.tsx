import type { Catalogue, Offer, OfferedType } from "../api";
import { dollars } from "../money";
import { text } from "../text";
import { Labelled } from "./Fields";

// The choice of the platform.
export const PLATFORM = "";

type Props = {
  catalogue: Catalogue | undefined;
  value: string;
  errors: readonly string[];
  onChange: (value: string) => void;
};

// The machines of the platform. Types, prices and names come from there, and none is in the app.
export function Machine({ catalogue, value, errors, onChange }: Props) {
  const region = catalogue?.ec2.defaults?.region;
  return (
    <Labelled id="machine" label={text.createOffer} help={text.createOfferHelp} errors={errors}>
      <select
        id="machine"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby="machine-help"
        aria-invalid={errors.length > 0}
      >
        <option value={PLATFORM}>{text.createDefault}</option>
        <optgroup label={text.flavors}>
          {catalogue?.offers.map((offer) => (
            <option key={ofFlavor(offer)} value={ofFlavor(offer)}>
              {label(offer)}
            </option>
          ))}
        </optgroup>
        <optgroup label={text.instanceTypes}>
          {catalogue?.ec2.instanceTypes.map((type) => (
            <option key={type.name} value={`type/${type.name}`} disabled={type.refused !== undefined}>
              {described(type, region)}
            </option>
          ))}
        </optgroup>
      </select>
    </Labelled>
  );
}

// The parameters of a choice.
export function chosen(machine: string): Record<string, string> {
  const [kind = "", placement = "", ...flavor] = machine.split("/");
  if (kind === "type") return { instanceType: placement };
  if (kind === "flavor") return { placement, flavor: flavor.join("/") };
  return {};
}

const ofFlavor = (offer: Offer) => `flavor/${offer.placement}/${offer.flavor}`;

function label({ flavor, placement, gpu, description, hourlyUsd }: Offer): string {
  const price = hourlyUsd === undefined ? undefined : text.perHour(dollars(hourlyUsd));
  const parts = [flavor, gpu ?? description, text.placement[placement] ?? placement, price];
  return parts.filter((part) => part !== undefined).join(" · ");
}

function described(type: OfferedType, region: string | undefined): string {
  const prices = type.hourlyUsd ?? {};
  const price = region ? prices[region] : Object.values(prices)[0];
  const parts = [
    type.name,
    type.gpu && `${type.gpus ?? 1} × ${type.gpu} ${type.gpuMemory ?? ""}`.trim(),
    price !== undefined && text.perHour(dollars(price)),
    type.refused && text.notAllowedHere,
  ];
  return parts.filter(Boolean).join(" · ");
}

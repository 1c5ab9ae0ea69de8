import type { Outlook } from "../api";
import { dollars } from "../money";
import { text } from "../text";

// What a workspace would get, before it exists.
export function Forecast({ outlook }: { outlook: Outlook }) {
  const { machines = [], region, image, obstacle, notice, limits, budget } = outlook;
  const names = machines.map(({ name, count }) => (count > 1 ? `${count} × ${name}` : name));
  const machine = [names.join(text.or), region, image].filter(Boolean).join(" · ");
  return (
    <section aria-labelledby="outlook" aria-live="polite" className="outlook">
      <h3 id="outlook">{text.outlook}</h3>
      {outlook.isOn && <Effect outlook={outlook} />}
      {obstacle && <p role="alert">{text.wouldNotStart(obstacle.message)}</p>}
      {outlook.errors.length > 0 && <p>{text.notAllowed}</p>}
      <dl>
        <Line term={text.machine} value={machine} />
        <Line term={text.price} value={price(outlook)} />
        <Line term={text.stops} value={stops(limits)} />
        <Line
          term={text.budget}
          value={
            budget &&
            text.budgetOf(
              dollars(budget.monthlyUsd),
              dollars(budget.spentUsd),
              dollars(budget.reservedUsd),
              dollars(budget.askedUsd),
            )
          }
        />
      </dl>
      {notice && <p>{notice}</p>}
    </section>
  );
}

function Effect({ outlook: { effect, effectMessage } }: { outlook: Outlook }) {
  const said = effect && text.effects[effect];
  if (!said) return null;
  return (
    <p role={effect === "Replaced" || effect === "Stopped" ? "alert" : undefined}>
      {said}
      {effectMessage && <small>{effectMessage}</small>}
    </p>
  );
}

function Line({ term, value }: { term: string; value: string | undefined }) {
  if (!value) return null;
  return (
    <>
      <dt>{term}</dt>
      <dd>{value}</dd>
    </>
  );
}

function price({ hourlyUsd, runUsd }: Outlook): string | undefined {
  if (hourlyUsd === undefined) return undefined;
  const hourly = text.atMost(text.perHour(dollars(hourlyUsd)));
  return runUsd === undefined ? hourly : `${hourly}, ${text.forRun(dollars(runUsd))}`;
}

function stops(limits: Outlook["limits"]): string | undefined {
  const { maxLifetime, stopAfterIdle } = limits ?? {};
  const parts = [
    maxLifetime && text.stopsAfter(maxLifetime),
    stopAfterIdle && text.stopsUnused(stopAfterIdle),
  ];
  return parts.filter(Boolean).join(", ");
}

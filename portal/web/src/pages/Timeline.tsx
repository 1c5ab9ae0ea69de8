import type { Row, Timeline as Told } from "../api";
import { text } from "../text";
import { useAnswer } from "../useAnswer";

// What has happened, as far as it is still known. The page asks again when the workspace changes.
export function Timeline({ row }: { row: Row }) {
  const told = useAnswer<Told>(`/api/v1/workspaces/${row.namespace}/${row.name}/timeline`, row);
  if (!told) return null;
  return (
    <section aria-labelledby="timeline">
      <h3 id="timeline">{text.timeline}</h3>
      <p>
        <small>{text.timelineHelp}</small>
        {told.withoutEvents && <small>{text.withoutEvents(told.withoutEvents)}</small>}
      </p>
      <ol className="timeline">
        {told.entries.map((entry) => (
          <li key={`${entry.at} ${entry.what}`}>
            <time dateTime={entry.at}>{new Date(entry.at).toLocaleString()}</time>{" "}
            <strong className={entry.isWarning ? "warning" : undefined}>
              {text.happened[entry.what] ?? entry.what}
            </strong>
            {entry.count > 1 && ` ${text.times(entry.count)}`}
            {entry.message && <small>{entry.message}</small>}
          </li>
        ))}
      </ol>
    </section>
  );
}
